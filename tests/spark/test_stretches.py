"""Stretches with halos answer as the whole key does; no session is needed to see that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ids.engine.script import sql
from ids.model.scale import Scale
from ids.model.table import Kind
from ids.model.window import CountWindow
from ids.plan import Schema, SelectPlan, planned
from ids.spark.replaying import TASK, Bounds, Replay, Standing
from ids.spark.stretches import cut, halo_of, last_alone, stairs
from ids.spark.words import atoms_of, word
from ids.state.scaling import fit_column

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


@given(counts, st.integers(1, 40), st.integers(1, 25), st.integers(0, 5))
def test_stairs_name_the_parts_that_want_a_bucket(
    counts: Any, target: int, halo: int, offset: int
) -> None:
    parts = cut(counts, target, halo)
    steps = stairs(parts, offset, "b")
    assert steps is not None
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
    emit = "FINAL" if final else "CHANGES"
    window = f"ORDER BY at ROWS {size} PRECEDING SLIDE {slide} ROWS"
    query = f"SELECT {ITEMS} FROM t WINDOW w AS ({window}) EMIT {emit};"
    plan = _plan(query)
    found = pa.concat_tables(_answered(plan, table, target))
    expected = sql(query, t=table)
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


def _answered(plan: SelectPlan, table: pa.Table, target: int) -> list[pa.Table]:
    """One task after another, as Spark would run them."""
    assert isinstance(plan.window, CountWindow)
    at = table["at"].to_numpy()
    counts = np.bincount(at)
    halo = halo_of(plan.window)
    slide = plan.window.slide
    parts = last_alone(counts, slide, halo) if plan.final else cut(counts, target, halo)
    p, q = (table[name].to_numpy() for name in ("p", "q"))
    truths = {"p": p, "q": q, "p AND q": p & q}
    asked = {i.predicate: truths[i.asked] for i in plan.items if i.predicate is not None}
    bits = sum(held.astype(np.int64) << k for k, held in asked.items() if k is not None)
    rows = table.append_column(word(0), pa.array(bits))
    values = table["x"].fill_null(0.0).to_numpy()
    sizes = np.abs(values[values != 0])
    largest, smallest = sizes.max(initial=0.0), sizes.min(initial=np.inf)
    scales = [
        fit_column(values, largest, smallest if len(sizes) else 0.0, degree) if degree else None
        for degree in plan.degrees
    ]
    replay = Replay(
        plan,
        (),
        ("at",),
        tuple(None if m is None else "x" for m in plan.measures),
        tuple(scale or Scale(0, 0, 0) for scale in scales),
        tuple(Bounds(part.base, part.halo) for part in parts),
    )
    nothing = np.zeros(1, np.int64)
    empty = replay.emitted(rows, Standing(np.array([0, len(at)]), nothing, nothing))
    found = [empty.slice(0, 0)]
    for number, part in enumerate(parts):
        own = rows.filter(pa.array((at >= part.first) & (at < part.stop)))
        if own.num_rows:
            tasked = own.append_column(TASK, pa.array(np.full(own.num_rows, number)))
            found.extend(map(_tabled, replay(iter(tasked.to_batches()))))
    return found


def _tabled(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


@pytest.mark.parametrize("count", [1, 62, 63, 130])
def test_words_of_truths_come_back_as_atoms(count: int) -> None:
    rng = np.random.default_rng(count)
    held = rng.random((300, count)) < 0.5
    held[100:] = held[rng.integers(0, 100, 200)]
    columns = {
        word(w): sum(
            held[:, k].astype(np.int64) << (k - 62 * w)
            for k in range(62 * w, min(62 * w + 62, count))
        )
        for w in range(-(-count // 62))
    }
    atoms, truths = atoms_of(pa.table(columns), count)
    assert len(truths) == len(np.unique(held, axis=0))
    assert (truths[atoms] == held).all()
