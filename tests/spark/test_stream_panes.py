"""Windows over panes in the workers, and parts that grow, against slow and obvious twins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ids.errors import StateError
from ids.exact import Parts, split
from ids.language import parse
from ids.model import MAX_ROWS, Kind
from ids.plan import Registry, SelectPlan, plan_select
from ids.spark.spark_evaluate import Layout
from ids.spark.spark_prepare import COUNT
from ids.spark.stream_panes import AT, PaneWindows, Span, both_ranges, relaid, widened

KEYS = ("ids_k0", "ids_k1")

_TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "b", "é"]))
_NUMBERS = st.one_of(
    st.none(), st.sampled_from([0.0, -1.5, 2.0, float("nan"), float("inf"), float("-inf")])
)
# a key, a pane, a value, and the batch that brings the row if its pane is still open then
_ROWS = st.lists(
    st.tuples(
        st.tuples(_TEXTS, _NUMBERS),
        st.integers(-6, 9),
        st.one_of(st.none(), st.integers(-9, 9)),
        st.integers(0, 5),
    ),
    max_size=25,
)

Row = tuple[tuple[str | None, float | None], int, int | None, int]


def plan_of(items: str) -> SelectPlan:
    (select,) = parse(
        f"SELECT {items} FROM t WINDOW w AS (PARTITION BY k, l ORDER BY t "
        "RANGE INTERVAL '1' SECOND PRECEDING SLIDE INTERVAL '1' SECOND) EMIT CHANGES",
        ("SUM", "COUNT", "VAR_POP"),
    )
    kinds = {"x": Kind.NUMBER, "t": Kind.TIME, "k": Kind.TEXT, "l": Kind.NUMBER}
    return plan_select(select, kinds, Registry())  # type: ignore[arg-type]


PLAN = plan_of(
    "SHAPLEY_ATTRIBUTE(SUM(x), x > 0) AS a, SHAPLEY_DELTA(SUM(x), x > 0) AS d, SUM(x) AS s, "
    "COUNT(*) AS c"
)
LAYOUT = Layout.of(PLAN, [Parts.fit(16.0, 1.0, degree) for degree in PLAN.degrees])


def ranked(key: tuple[str | None, float | None]) -> tuple[object, ...]:
    """A key that sorts as Spark sorts: NULL first, NaN last."""
    text, number = key
    nan = number is not None and number != number
    return (text is not None, text or "", number is not None, nan, 0.0 if nan else number or 0.0)


def summed(plan: SelectPlan, layout: Layout, values: Sequence[float | None]) -> dict[str, int]:
    """The sums of some rows, each with its x."""
    found = dict.fromkeys(layout.sums, 0) | {COUNT: len(values)}
    for number, (measure, parts) in enumerate(zip(plan.measures, layout.parts, strict=True)):
        for value in values:
            if measure is not None and value is None:
                continue
            first, second = split(np.array(value), parts) if parts.levels else ((), ())
            for item in layout.items(number):
                if item.predicate is None or (value is not None and value > 0):
                    row = [1, *map(int, first), *map(int, second)]
                    for name, part in zip(item.columns(parts), row, strict=True):
                        found[name] += part
    return found


class Sums:
    """Rows for ``PaneWindows``."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []

    def add(self, rows: Iterable[Row], at: int | None = None) -> None:
        """The sums of each key's rows of a pane; under the number ``at``, of all its rows."""
        grouped: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for row in rows:
            grouped[ranked(row[0]), row[1] if at is None else at].append(row)
        for (_, place), some in grouped.items():
            sums = summed(PLAN, LAYOUT, [row[2] for row in some])
            self._rows.append(dict(zip(KEYS, some[0][0], strict=True)) | {AT: place} | sums)

    def table(self, seed: int) -> pa.Table:
        """In any order."""
        longs = [(name, pa.int64()) for name in (AT, *LAYOUT.sums)]
        schema = pa.schema([(KEYS[0], pa.string()), (KEYS[1], pa.float64()), *longs])
        order = np.random.default_rng(seed).permutation(len(self._rows))
        rows = [self._rows[place] for place in order]
        columns = {
            name: pa.array([row[name] for row in rows], schema.field(name).type, from_pandas=False)
            for name in schema.names
        }
        return pa.table(columns, schema=schema)


def emitted(table: pa.Table, span: Span, since: int, reach: int = 0) -> list[tuple[Any, ...]]:
    work = PaneWindows(PLAN, LAYOUT, KEYS, span, since, reach)
    return listed(work.emits(table)) if table.num_rows else []


def listed(emits: pa.Table) -> list[tuple[Any, ...]]:
    keys = zip(*(emits.column(name).to_pylist() for name in KEYS), strict=True)
    rest = emits.drop_columns([*KEYS])
    assert rest.column_names == ["ids_i", COUNT, "a", "d", "s", "c"]
    rows = zip(*(column.to_pylist() for column in rest.columns), strict=True)
    return [(ranked(key), *row) for key, row in zip(keys, rows, strict=True)]


def recounted(rows: Sequence[Row], width: int, since: int, until: int) -> list[tuple[Any, ...]]:
    """The emits, each from the rows of its window and of the one before: slow and obvious."""

    def inside(key: object, instant: int) -> list[int | None]:
        return [x for k, p, x, _ in rows if ranked(k) == key and instant - width < p <= instant]

    def positive(values: list[int | None]) -> int:
        return sum(x for x in values if x is not None and x > 0)

    found = []
    for instant in range(since + 1, until + 1):
        for key in sorted({ranked(row[0]) for row in rows}):
            now, before = inside(key, instant), inside(key, instant - 1)
            if now:
                known = [x for x in now if x is not None]
                a = positive(now)
                total = sum(known) if known else None
                found.append((key, instant, len(now), a, a - positive(before), total, len(now)))
    return found


@given(_ROWS, st.integers(1, 4), st.integers(-8, 8), st.integers(0, 12), st.integers(0, 9))
def test_windows_of_panes_alone_are_those_recounted(
    rows: list[Row], width: int, since: int, many: int, seed: int
) -> None:
    span, sums = Span(since - width, since + many, width), Sums()
    sums.add([row for row in rows if span.start < row[1] <= span.until])
    found = emitted(sums.table(seed), span, since)
    assert found == recounted(rows, width, since, span.until)


@given(
    _ROWS,
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=5),
    st.integers(0, 9),
)
def test_any_batches_with_or_without_windows_that_stand_speak_as_one(
    rows: list[Row], width: int, steps: list[tuple[int, bool]], seed: int
) -> None:
    """A row comes while its pane is open; after a batch the windows may be written down."""
    instants = np.cumsum([-7, *(step for step, _ in steps)]).tolist()
    closing = [next((n for n, t in enumerate(instants[1:]) if row[1] <= t), 9) for row in rows]
    held, standing, stands = list[Row](), list[Row](), None
    found = []
    for number, (since, until) in enumerate(pairwise(instants)):
        held += [r for r, last in zip(rows, closing, strict=True) if min(r[3], last) == number]
        span, sums = Span(since - width if stands is None else stands, until, width), Sums()
        ranges = span.ranges(stands is not None)
        sums.add([row for row in held if any(a < row[1] <= b for a, b in ranges)])
        sums.add(standing, span.oldest)
        found += emitted(sums.table(seed), span, since)
        if steps[number][1]:
            standing, stands = [r for r in held if until - width < r[1] <= until], until
        oldest = (until if stands is None else stands) - width
        held = [row for row in held if row[1] > oldest]
    assert found == recounted(rows, width, instants[0], instants[-1])


@given(_ROWS, st.integers(1, 4), st.integers(0, 2), st.integers(0, 40))
def test_instants_before_are_answered_and_arrow_batches_do_not_matter(
    rows: list[Row], width: int, reach: int, cut: int
) -> None:
    span, sums = Span(-7, 6, width), Sums()
    sums.add(rows)
    table = sums.table(cut)
    found = emitted(table, span, 0, reach)
    wanted = recounted(rows, width, -reach, 6)
    changing = 4
    assert [e[:changing] + e[changing + 1 :] for e in found] == [
        e[:changing] + e[changing + 1 :] for e in wanted
    ]
    assert [e for e in found if e[1] > 0] == [e for e in wanted if e[1] > 0]
    work = PaneWindows(PLAN, LAYOUT, KEYS, span, 0, reach)
    parts = [*table[:cut].to_batches(), *table[:0].to_batches(), *table[cut:].to_batches()]
    assert [e for batch in work(iter(parts)) for e in listed(pa.table(batch))] == found


def test_a_window_of_too_many_rows_is_refused() -> None:
    span, sums = Span(1, 3, 1), Sums()
    sums.add([(("a", 1.0), 3, 1, 0)])
    table = sums.table(0)
    for rows in (MAX_ROWS, MAX_ROWS + 1):
        wide = table.set_column(table.column_names.index(COUNT), COUNT, pa.array([rows]))
        if rows == MAX_ROWS:
            assert [emit[2] for emit in emitted(wide, span, 2)] == [MAX_ROWS]
        else:
            with pytest.raises(StateError, match=r"at most .* are summed exactly"):
                emitted(wide, span, 2)


_MAGNITUDES = st.builds(
    lambda m, e: m * 2.0**e,
    st.floats(-1, 1, allow_nan=False),
    st.one_of(st.integers(-30, 30), st.integers(-900, 900)),
).filter(lambda x: x == 0 or abs(x) > 2.0**-960)


@given(st.lists(st.lists(_MAGNITUDES, max_size=4), min_size=1, max_size=6), st.booleans())
def test_parts_that_grow_hold_what_they_held(batches: list[list[float]], squares: bool) -> None:
    """Summed batch by batch under the parts of the day, or all at once under the last ones."""
    plan = plan_of(f"SHAPLEY_ATTRIBUTE({'VAR_POP' if squares else 'SUM'}(x), x > 0) AS a")
    degree = plan.degrees[0]
    reach, parts = None, Parts.fit(0.0, 0.0, degree)
    layout = Layout.of(plan, [parts])
    sums = dict.fromkeys(layout.sums, 0)
    for values in batches:
        found = [abs(v) for v in values if v]
        further = both_ranges(reach, (max(found), min(found)) if found else None)
        if further is not None and further != reach:
            parts = widened(parts, reach, further, degree)
            wider = Layout.of(plan, [parts])
            moved = relaid(layout, wider)
            sums = {name: sums[moved[name]] if name in moved else 0 for name in wider.sums}
            layout, reach = wider, further
        sums = {name: sums[name] + more for name, more in summed(plan, layout, values).items()}
    every = [value for batch in batches for value in batch]
    assert _numbers(layout, sums) == _numbers(layout, summed(plan, layout, every))
    for value in every:
        first, _ = split(np.array(value), parts)
        held = sum(int(a) * 2 ** (28 * (parts.levels - 1 - k)) for k, a in enumerate(first))
        assert Fraction(held) * Fraction(2) ** (parts.exponent - 28 * parts.levels) == value


def _numbers(layout: Layout, sums: dict[str, int]) -> list[int]:
    """The counts and sums that the limbs stand for; the same number has limbs of many kinds."""
    parts, found = layout.parts[0], [sums[COUNT]]
    for item in layout.items(0):
        found.append(sums[item.count])
        for limbs, name in ((parts.levels, item.first), (parts.squares, item.second)):
            found.append(sum(sums[name(k)] * 2 ** (28 * (limbs - 1 - k)) for k in range(limbs)))
    return found
