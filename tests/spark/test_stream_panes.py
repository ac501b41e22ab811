"""Panes, windows over them and parts that grow, on the driver, against slow and obvious twins."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ids.exact import Parts, split
from ids.language import parse
from ids.model.table import Kind
from ids.plan import Registry, SelectPlan, plan_select
from ids.spark.panes import Layout
from ids.spark.streaming.pane_table import Panes
from ids.spark.streaming.standing import instants, standing
from ids.spark.streaming.widening import farther, resized, widened

_KEYS = st.one_of(st.none(), st.sampled_from(["", "a", "b", "é"]))
_NUMBERS = st.one_of(st.none(), st.sampled_from([0.0, -1.5, 2.0, float("nan"), float("inf")]))
_ROWS = st.lists(
    st.tuples(_KEYS, _NUMBERS, st.integers(-6, 9), st.integers(1, 5), st.integers(-9, 9)),
    max_size=25,
)


def _panes(rows: list[tuple]) -> Panes:
    texts, numbers, pane, count, total = zip(*rows, strict=True) if rows else ([],) * 5
    return Panes(
        [pa.array(texts, pa.string()), pa.array(numbers, pa.float64(), from_pandas=False)],
        np.array(pane, np.int64),
        np.array([count, total], np.int64),
    )


def _name(text: str | None, number: float | None) -> tuple:
    """A key that sorts as Spark sorts: NULL first, NaN last."""
    nan = number is not None and number != number
    shown = 0.0 if number is None or nan else number
    return (text is not None, text or "", number is not None, nan, shown)


def _listed(panes: Panes) -> list[tuple]:
    keys = zip(*(column.to_pylist() for column in panes.keys), strict=True)
    return [
        (_name(*key), pane, *sums)
        for key, pane, sums in zip(keys, panes.pane.tolist(), panes.sums.T.tolist(), strict=True)
    ]


def _recounted(rows: list[tuple]) -> list[tuple]:
    counts: Counter = Counter()
    totals: Counter = Counter()
    for text, number, pane, count, total in rows:
        counts[_name(text, number), pane] += count
        totals[_name(text, number), pane] += total
    return [(*place, counts[place], totals[place]) for place in sorted(counts)]


@given(_ROWS, st.integers(0, 25))
def test_panes_of_any_two_batches_add_up_to_those_of_all_rows(rows: list[tuple], cut: int) -> None:
    none = _panes([])
    before = none.merged(_panes(rows[:cut]))
    assert _listed(before.merged(_panes(rows[cut:]))) == _recounted(rows)


@given(_ROWS, st.integers(1, 4), st.integers(-8, 8), st.integers(0, 12))
def test_windows_stand_at_the_instants_at_which_they_hold_a_pane(
    rows: list[tuple], width: int, first: int, many: int
) -> None:
    last = first + many
    panes = _panes([]).merged(_panes(rows))
    windows = standing(panes, width, first - 1, last)
    spoken = instants(windows, first, last)
    names = [row[0] for row in _listed(panes)]
    got = [
        (instant, names[windows.row[w]], *windows.sums[:, w].tolist())
        for w, instant in zip(spoken.window, spoken.instant.tolist(), strict=True)
    ]
    want = []
    for instant in range(first, last + 1):
        for name in sorted(set(names)):
            held = [
                r for r in _recounted(rows) if r[0] == name and instant - width < r[1] <= instant
            ]
            if held:
                want.append((instant, name, sum(r[2] for r in held), sum(r[3] for r in held)))
    assert got == want


@given(_ROWS, st.integers(1, 4), st.integers(-8, 8))
def test_the_window_before_is_the_one_that_stood_one_slide_before(
    rows: list[tuple], width: int, first: int
) -> None:
    panes = _panes([]).merged(_panes(rows))
    windows = standing(panes, width, first - 1, first + 12)
    spoken = instants(windows, first, first + 12)
    at = {
        (windows.key[w], i): windows.sums[1, w]
        for w, i in zip(*instants(windows, first - 1, first + 12)[:2], strict=True)
    }
    for w, instant, opens in zip(*spoken, strict=True):
        before = windows.before[w] if opens else w
        want = at.get((windows.key[w], instant - 1))
        assert (None if before < 0 else windows.sums[1, before]) == want


def _plan(aggregate: str) -> SelectPlan:
    (select,) = parse(
        f"SELECT SHAPLEY_ATTRIBUTE({aggregate}(x), x > 0) AS a FROM t WINDOW w AS (ORDER BY t "
        "RANGE INTERVAL '1' SECOND PRECEDING SLIDE INTERVAL '1' SECOND) EMIT CHANGES",
        ("SUM", "VAR_POP"),
    )
    return plan_select(select, {"x": Kind.NUMBER, "t": Kind.TIME}, Registry())  # type: ignore[arg-type]


_MAGNITUDES = st.builds(
    lambda m, e: m * 2.0**e,
    st.floats(-1, 1, allow_nan=False),
    st.one_of(st.integers(-30, 30), st.integers(-900, 900)),
).filter(lambda x: x == 0 or abs(x) > 2.0**-960)


@given(st.lists(st.lists(_MAGNITUDES, max_size=4), min_size=1, max_size=6), st.booleans())
def test_parts_that_grow_hold_what_they_held(batches: list[list[float]], squares: bool) -> None:
    """Summed batch by batch under the parts of the day, or all at once under the last ones."""
    plan = _plan("VAR_POP" if squares else "SUM")
    degree = plan.degrees[0]
    reach, parts = None, Parts.fit(0.0, 0.0, degree)
    layout = Layout.of(plan, [parts])
    sums = np.zeros((len(layout.sums), 1), np.int64)
    for values in batches:
        found = [abs(v) for v in values if v]
        further = farther(reach, (max(found), min(found)) if found else None)
        if further is not None and further != reach:
            parts = widened(parts, reach, further, degree)
            wider = Layout.of(plan, [parts])
            sums, layout, reach = resized(sums, layout, wider), wider, further
        sums = sums + _summed(plan, layout, values)
    every = [value for batch in batches for value in batch]
    assert _numbers(layout, sums) == _numbers(layout, _summed(plan, layout, every))
    for value in every:
        first, _ = split(np.array(value), parts)
        held = sum(int(a) * 2 ** (28 * (parts.levels - 1 - k)) for k, a in enumerate(first))
        assert Fraction(held) * Fraction(2) ** (parts.exponent - 28 * parts.levels) == value


def _numbers(layout: Layout, sums: np.ndarray) -> list[int]:
    """The counts and sums that the limbs stand for; the same number has limbs of many kinds."""
    rows = dict(zip(layout.sums, sums[:, 0].tolist(), strict=True))
    parts, found = layout.parts[0], [rows["ids_n"]]
    for item in layout.items(0):
        found.append(rows[item.count])
        for limbs, name in ((parts.levels, item.first), (parts.squares, item.second)):
            found.append(sum(rows[name(k)] * 2 ** (28 * (limbs - 1 - k)) for k in range(limbs)))
    return found


def _summed(plan: SelectPlan, layout: Layout, values: list[float]) -> np.ndarray:
    found = dict.fromkeys(layout.sums, 0)
    for value in values:
        first, second = split(np.array(value), layout.parts[0])
        for item in layout.items(0):
            if item.predicate is None or value > 0:
                row = [1, *map(int, first), *map(int, second)]
                for name, part in zip(item.columns(layout.parts[0]), row, strict=True):
                    found[name] += part
    found["ids_n"] = len(values)
    return np.array([[found[name]] for name in layout.sums])
