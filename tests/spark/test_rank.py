"""Parts of a key, with halos, answer as the whole key does; no session is needed to see that."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ids.model import Kind, Scale
from ids.plan import Schema, SelectPlan, planned
from ids.query import sql
from ids.spark.cell_columns import atoms_of, truth_column
from ids.spark.count_windows import Positions, Replay
from ids.spark.rank import (
    OLD,
    RANK,
    TASK,
    Bounds,
    Division,
    Heavy,
    cut,
    end_of,
    last_alone,
    tasks_of,
)
from ids.spark.stream_count import Tailing

counts = st.lists(st.integers(0, 9), min_size=1, max_size=30).map(lambda c: np.array(c, np.int64))


@given(counts, st.integers(1, 40), st.integers(1, 25))
def test_parts_own_every_bucket_once_and_reach_back_far_enough(
    counts: Any, target: int, halo: int
) -> None:
    parts = cut(counts, target, halo)
    assert [bucket for p in parts for bucket in range(p.start, p.stop)] == list(range(len(counts)))
    for part in parts:
        assert part.base == counts[: part.first].sum()
        assert part.halo == counts[part.first : part.start].sum()
        assert part.halo >= halo or part.base == 0
        assert part.halo - counts[part.first] < halo or part.first == part.start


@given(counts, st.integers(1, 40), st.integers(1, 25), st.data())
def test_parts_own_every_row_that_is_not_old_once(
    counts: Any, target: int, halo: int, data: st.DataObject
) -> None:
    total = int(counts.sum())
    old = data.draw(st.integers(0, total))
    parts = cut(counts, target, halo, old)
    answered: list[int] = []
    for part in parts:
        begin = max(part.base + part.halo, old)
        assert begin - part.base >= halo or part.base == 0
        answered += range(begin, int(counts[: part.stop].sum()))
    assert answered == list(range(old, total))


@given(counts, st.integers(1, 40), st.integers(1, 25), st.integers(0, 5))
def test_tasks_are_the_parts_that_want_a_bucket(
    counts: Any, target: int, halo: int, offset: int
) -> None:
    parts = cut(counts, target, halo)
    steps = tasks_of(parts, offset, "b")
    for bucket in range(len(counts)):
        first, last = (_evaluated(text, bucket) for text in steps)
        wanted = [offset + k for k, p in enumerate(parts) if p.first <= bucket < p.stop]
        assert list(range(first, last + 1)) == wanted


@given(counts, st.integers(1, 12), st.integers(1, 25))
def test_the_last_part_alone_holds_the_last_emit(counts: Any, slide: int, halo: int) -> None:
    total = int(counts.sum())
    parts = last_alone(counts, slide, halo)
    assert bool(parts) == (total >= slide)
    for part in parts:
        own = part.base + part.halo
        assert own < total // slide * slide <= total
        assert part.halo >= halo or part.base == 0


def _evaluated(text: str, bucket: int) -> int:
    """The value of nested ``if(b < c, x, y)``."""
    if not text.startswith("if("):
        return int(text)
    depth, cuts = 0, []
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 1:
            cuts.append(at)
    test, below, above = text[3 : cuts[0]], text[cuts[0] + 2 : cuts[1]], text[cuts[1] + 2 : -1]
    return _evaluated(below if bucket < int(test.split(" < ")[1]) else above, bucket)


ITEMS = (
    "AVG(x) AS avg, SUM(x) AS sum, COUNT(x) AS filled, COUNT(*) AS every, VAR_SAMP(x) AS spread, "
    "SHAPLEY_ATTRIBUTE(AVG(x), p WITH (SHARE, LIFT)) AS a, SHAPLEY_DELTA(SUM(x), q) AS d, "
    "SHAPLEY_DELTA(VAR_POP(x), p AND q) AS e, SHAPLEY_ATTRIBUTE(COUNT(*), q) AS c"
)


@settings(deadline=None, max_examples=60)
@given(
    rows=st.integers(1, 60),
    size=st.integers(1, 12),
    slide=st.integers(1, 15),
    target=st.integers(1, 30),
    seed=st.integers(0, 2**16),
    final=st.booleans(),
)
def test_tasks_together_give_the_emits_of_the_whole_key(
    rows: int, size: int, slide: int, target: int, seed: int, final: bool
) -> None:
    table = _table(rows, seed)
    query = _query(size, slide, "FINAL" if final else "CHANGES")
    plan = _plan(query)
    counts, halo = np.bincount(table["at"].to_numpy()), size + slide
    parts = last_alone(counts, slide, halo) if final else cut(counts, target, halo)
    replay = _replay(plan, table, tuple(Bounds(part.base, part.halo) for part in parts))
    given = _given(plan, table)
    empty = replay.emitted(given, _whole(rows)).slice(0, 0)
    _same(sql(query, t=table), pa.concat_tables([empty, *_worked(replay, given, parts)]))


@settings(deadline=None, max_examples=60)
@given(
    cuts=st.lists(st.integers(0, 40), max_size=4),
    size=st.integers(1, 12),
    slide=st.integers(1, 15),
    target=st.integers(1, 20),
    heavy=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_rows_that_come_in_batches_are_answered_after_the_tail_of_those_before(
    cuts: list[int], size: int, slide: int, target: int, heavy: bool, seed: int
) -> None:
    table = _table(40, seed)
    query = _query(size, slide)
    plan = _plan(query)
    rows = _given(plan, table).append_column(RANK, pa.nulls(40, pa.int64()))
    reach, at = size + slide, rows["at"].to_numpy()
    found = [_replay(plan, table, (None,)).emitted(rows, _whole(40)).slice(0, 0)]
    tail = rows.slice(0, 0)
    for low, high in pairwise([0, *sorted(cuts), 40]):
        new = rows.filter(pa.array((at >= low) & (at < high)))
        given = pa.concat_tables([tail, new])
        given = given.append_column(OLD, pa.array(np.arange(given.num_rows) < tail.num_rows))
        if not new.num_rows:
            continue
        keys: tuple[Heavy, ...] = ()
        if heavy:
            base = given[RANK][0].as_py() or 0
            counts = np.bincount(given["at"].to_numpy(), minlength=40)
            keys = (Heavy((), given.num_rows, tail.num_rows, base, counts),)
        division = Division(plan, (), keys, 0 if heavy else given.num_rows, target)
        ranked = division.emits()
        parts = cut(counts, target, reach, tail.num_rows) if heavy else [None]
        found += _worked(_replay(plan, table, ranked.bounds), given, parts)
        ends = division.tails(given.num_rows)
        last = Tailing((), tuple(rows.column_names), ends.bounds, reach, sampled=False)
        (tail,) = _worked(last, given, [end_of(counts, reach)] if heavy else [None])
        known = rows.filter(pa.array(at < high)).slice(max(0, int((at < high).sum()) - reach))
        assert tail.drop_columns(RANK).equals(known.drop_columns(RANK))
        assert tail[RANK].to_pylist() == list(range(int((at < high).sum())))[-reach:]
    _same(sql(query, t=table), pa.concat_tables(found))


def _whole(rows: int) -> Positions:
    return Positions(np.array([0, rows]), np.zeros(1, np.int64), np.zeros(1, np.int64))


def _worked(work: Any, rows: pa.Table, parts: list[Any]) -> list[pa.Table]:
    """One task after another, as Spark would run them."""
    found: list[pa.Table] = []
    at = rows["at"].to_numpy()
    for number, part in enumerate(parts):
        inside = at >= 0 if part is None else (at >= part.first) & (at < part.stop)
        own = rows.filter(pa.array(inside))
        if own.num_rows:
            tasked = own.append_column(TASK, pa.array(np.full(own.num_rows, number)))
            found += map(_tabled, work(iter(tasked.to_batches())))
    return found


def _query(size: int, slide: int, emit: str = "CHANGES") -> str:
    window = f"ORDER BY at ROWS {size} PRECEDING SLIDE {slide} ROWS"
    return f"SELECT {ITEMS} FROM t WINDOW w AS ({window}) EMIT {emit};"


def _same(expected: pa.Table, found: pa.Table) -> None:
    for name in expected.column_names[1:]:
        ours = "ids_n" if name == "n" else name
        assert found[ours].to_pylist() == expected[name].to_pylist(), name
    assert found["at"].to_pylist() == expected["emit_at"].to_pylist()


def _table(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    value = np.round(rng.lognormal(3, 2, rows), 3)
    return pa.table(
        {
            "at": np.sort(rng.integers(0, rows, rows)),
            "x": pa.array(value, mask=rng.random(rows) < 0.2),
            "p": rng.random(rows) < 0.5,
            "q": rng.random(rows) < 0.3,
        }
    )


def _plan(query: str) -> SelectPlan:
    kinds = {"at": Kind.NUMBER, "x": Kind.NUMBER, "p": Kind.BOOLEAN, "q": Kind.BOOLEAN}
    plan = next(planned(query, lambda _: Schema(kinds, {}))).plan
    assert plan is not None
    return plan


def _given(plan: SelectPlan, table: pa.Table) -> pa.Table:
    """Rows with the truths of predicates."""
    p, q = (table[name].to_numpy() for name in ("p", "q"))
    truths = {"p": p, "q": q, "p AND q": p & q}
    asked = {i.predicate: truths[i.asked] for i in plan.items if i.predicate is not None}
    bits = sum(held.astype(np.int64) << k for k, held in asked.items() if k is not None)
    return table.append_column(truth_column(0), pa.array(bits))


def _replay(plan: SelectPlan, table: pa.Table, tasks: tuple[Bounds | None, ...]) -> Replay:
    values = table["x"].fill_null(0.0).to_numpy()
    sizes = np.abs(values[values != 0])
    largest, smallest = sizes.max(initial=0.0), sizes.min(initial=np.inf)
    scales = [
        Scale.fit_column(values, largest, smallest if len(sizes) else 0.0, degree)
        if degree
        else None
        for degree in plan.degrees
    ]
    measures = tuple(None if m is None else "x" for m in plan.measures)
    known = tuple(scale or Scale(0, 0, 0) for scale in scales)
    return Replay(plan, (), ("at",), measures, known, tasks)


def _tabled(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


@pytest.mark.parametrize("count", [1, 62, 63, 130])
def test_words_of_truths_come_back_as_atoms(count: int) -> None:
    rng = np.random.default_rng(count)
    held = rng.random((300, count)) < 0.5
    held[100:] = held[rng.integers(0, 100, 200)]
    columns = {
        truth_column(w): sum(
            held[:, k].astype(np.int64) << (k - 62 * w)
            for k in range(62 * w, min(62 * w + 62, count))
        )
        for w in range(-(-count // 62))
    }
    atoms, truths = atoms_of(pa.table(columns), count)
    assert len(truths) == len(np.unique(held, axis=0))
    assert (truths[atoms] == held).all()
