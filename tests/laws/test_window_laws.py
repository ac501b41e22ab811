"""What does not depend on how rows came: inverses, splits, merges, restarts."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ids
from ids.games import GAMES
from tests.laws.engines import (
    CHANGELOGS,
    ENGINES,
    PREDICATES,
    Event,
    agree,
    answers,
    events,
    feed,
    made,
    state,
    table,
    words,
)

EVERY = tuple(GAMES)
few = settings(max_examples=20)


@pytest.mark.parametrize("kind", CHANGELOGS)
@given(before=events(least=1, most=12), passing=events(most=12))
@few
def test_insert_then_delete_is_the_identity(
    kind: str, before: list[Event], passing: list[Event]
) -> None:
    engine = made(kind)
    engine.apply(inserts=table([*passing, *before]))
    engine.apply(deletes=table(passing))
    expected, said = words(engine), answers(engine, EVERY)
    engine.apply(inserts=table(passing))
    engine.apply(deletes=table(list(reversed(passing))))
    assert words(engine) == expected
    assert answers(engine, EVERY) == said


@pytest.mark.parametrize("kind", ["count", "enumerated"])
@given(rows=events(least=9, most=9), passing=events(most=9))
@few
def test_insert_then_expire_is_the_identity(
    kind: str, rows: list[Event], passing: list[Event]
) -> None:
    """The same nine rows again, after others came and went: the same bits."""
    engine = made(kind)
    feed(engine, passing)
    feed(engine, rows)
    expected, said = words(engine), answers(engine, EVERY)
    feed(engine, passing, cuts=[3])
    feed(engine, rows, cuts=[5])
    assert words(engine) == expected
    assert answers(engine, EVERY) == said


@pytest.mark.parametrize("kind", ENGINES)
@given(rows=events(), cuts=st.lists(st.integers(0, 100), max_size=6))
@few
def test_any_split_into_batches_is_the_same_stream(
    kind: str, rows: list[Event], cuts: list[int]
) -> None:
    whole, split = made(kind), made(kind)
    feed(whole, rows)
    feed(split, rows, cuts)
    assert state(split) == state(whole)
    assert answers(split) == answers(whole)
    assert agree(split, whole)


@pytest.mark.parametrize("kind", ENGINES)
@given(rows=events(), more=events(), cuts=st.lists(st.integers(0, 100), max_size=2))
@few
def test_a_checkpoint_is_the_engine(
    kind: str, rows: list[Event], more: list[Event], cuts: list[int]
) -> None:
    engine = made(kind)
    feed(engine, rows, cuts)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "engine.ids"
        engine.checkpoint(path)
        other = ids.Engine.restore(path)
    assert state(other) == state(engine)
    assert answers(other, EVERY) == answers(engine, EVERY)
    later = [(t + len(rows), *rest) for t, *rest in more]
    for one in (engine, other):
        feed(one, later, cuts)  # type: ignore[arg-type]
        one.drop("odd")
    assert state(other) == state(engine)
    assert answers(other, EVERY) == answers(engine, EVERY)
    if rows:
        assert [s.scale for s in other._core.measures] == [s.scale for s in engine._core.measures]  # type: ignore[union-attr]


@given(rows=events(least=4), order=st.randoms(use_true_random=False))
@few
def test_merging_summaries_commutes(rows: list[Event], order: object) -> None:
    engine = made("changelog")
    feed(engine, rows)
    core = engine._core
    assert core is not None
    live = core.membership.live.tolist()  # type: ignore[union-attr]
    shuffled = list(live)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    middle = len(live) // 2
    for summaries in core.measures:
        whole = summaries.merged(np.array(live, np.int64))
        assert (whole == summaries.window).all()
        assert (summaries.merged(np.array(shuffled, np.int64)) == whole).all()
        halves = [
            summaries.exact(summaries.merged(np.array(part, np.int64)))
            for part in (shuffled[:middle], shuffled[middle:])
        ]
        count, sums = summaries.exact(whole)
        assert count == halves[0][0] + halves[1][0]
        assert sums == [a + b for a, b in zip(halves[0][1], halves[1][1], strict=True)]


@pytest.mark.parametrize("kind", ENGINES)
@given(rows=events(least=1), more=st.integers(0, 3))
@few
def test_the_order_of_registration_is_of_no_account(
    kind: str, rows: list[Event], more: int
) -> None:
    one, other = made(kind), ENGINES[kind]()
    names = list(PREDICATES)
    for name in names[more:] + names[:more]:
        other.register(name, PREDICATES[name])
    feed(one, rows)
    feed(other, rows)
    assert answers(one, EVERY) == answers(other, EVERY)
