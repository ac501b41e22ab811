"""Too many atoms: the named targets stay exact, the rest needs the rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ids
from ids.errors import StateError, UnknownNameError
from ids.state import Enumerated
from tests.streams.comparing import same_answers
from tests.streams.model import Model, Row

PREDICATES = {f"p{i}": f"k % {i + 2} = 0" for i in range(5)}
KEPT = "p0 AND NOT p1"


def engine_of(limit: int, **settings: object) -> ids.Engine:
    engine = ids.Engine(
        ids.CountWindow(40),
        "x",
        atom_limit=limit,
        intersections=[KEPT, "p0 OR p9"],
        **settings,  # type: ignore[arg-type]
    )
    for name, condition in PREDICATES.items():
        engine.register(name, condition)
    return engine


def model_of() -> Model:
    model = Model(lambda rows, _: max(0, len(rows) - 40), ordered=False)
    model.registered.update(PREDICATES)
    return model


def rows(start: int, stop: int) -> list[Row]:
    return [Row(0, float(i) + 1 / 3, "EU", i) for i in range(start, stop)]


def batch(some: list[Row]) -> dict[str, object]:
    t, x, region, k = (list(column) for column in zip(*some, strict=True))
    return {"t": t, "x": x, "region": region, "k": k}


def given_up(engine: ids.Engine) -> bool:
    return engine._core is not None and isinstance(engine._core.membership, Enumerated)


QUESTIONS = [("marginal", "p0"), ("marginal", "p3"), ("compositional", KEPT)]
OTHERS = [("scan", "p0 AND p1"), ("scan", "NOT p2 OR p3"), ("scan", "k > 7 AND p0")]


@given(cuts=st.lists(st.integers(1, 30), min_size=1, max_size=8), limit=st.integers(0, 12))
@settings(max_examples=25)
def test_intersections_kept_stay_exact_before_and_after_the_limit(
    cuts: list[int], limit: int
) -> None:
    engine, model = engine_of(limit), model_of()
    at = 0
    for cut in cuts:
        some = rows(at, at + cut)
        engine.ingest(batch(some))
        model.ingest(some, None)
        at += cut
        if given_up(engine):
            assert engine.atoms == 0
            same_answers(engine, model, QUESTIONS + OTHERS)
        else:
            assert engine.atoms <= limit
            same_answers(engine, model, QUESTIONS)
            same_answers(engine, model, [("compositional", "p0 AND p1"), ("scan", "k > 7 AND p0")])
    if limit == 0:
        assert given_up(engine)


def test_the_limit_is_not_touched_by_as_many_atoms_as_it_says() -> None:
    engine = ids.Engine(ids.CountWindow(40), "x", atom_limit=2)
    engine.register("even", "k % 2 = 0")
    engine.ingest(batch(rows(0, 50)))
    assert (given_up(engine), engine.atoms) == (False, 2)


def test_without_rows_other_combinations_are_refused_and_kept_ones_go_on() -> None:
    engine, model = engine_of(3, retain=False), model_of()
    for start in range(0, 100, 7):
        some = rows(start, start + 7)
        engine.ingest(batch(some))
        model.ingest(some, None)
    assert given_up(engine)
    same_answers(engine, model, QUESTIONS)
    for asked in ("p0 AND p1", "k > 7"):
        with pytest.raises(StateError, match="retain=True"):
            engine.attribute("AVG", asked)
    with pytest.raises(StateError, match="given up at atom_limit"):
        engine.attribute_by_atoms("AVG", "p0")
    with pytest.raises(StateError, match="given up at atom_limit"):
        engine.residual("AVG")


def test_drop_and_register_afterwards_with_rows() -> None:
    engine, model = engine_of(3), model_of()
    some = rows(0, 60)
    engine.ingest(batch(some))
    model.ingest(some, None)
    assert given_up(engine)
    for name in ("p4", "p3", "p2"):
        engine.drop(name)
        del model.registered[name]
    engine.drop("p1")
    del model.registered["p1"]
    assert not given_up(engine), "one predicate has two atoms: they come back"
    same_answers(engine, model, [("marginal", "p0"), ("compositional", "NOT p0")])
    engine.register("p1", PREDICATES["p1"])
    model.registered["p1"] = PREDICATES["p1"]
    assert given_up(engine)
    more = rows(60, 75)
    engine.ingest(batch(more))
    model.ingest(more, None)
    same_answers(engine, model, [("marginal", "p1"), ("compositional", KEPT), ("scan", "p0 OR p1")])


def test_drop_and_register_afterwards_without_rows() -> None:
    engine, model = engine_of(3, retain=False), model_of()
    some = rows(0, 30)
    engine.ingest(batch(some))
    model.ingest(some, None)
    assert given_up(engine)
    with pytest.raises(StateError, match="retain=True"):
        engine.register("late", "k > 3")
    engine.drop("p4")
    del model.registered["p4"]
    more = rows(30, 60)
    engine.ingest(batch(more))
    model.ingest(more, None)
    same_answers(engine, model, QUESTIONS)
    engine.drop("p1")
    del model.registered["p1"]
    same_answers(engine, model, [("marginal", "p0"), ("marginal", "p3")])
    with pytest.raises((StateError, UnknownNameError)):
        engine.attribute("AVG", KEPT)


def test_an_enumerated_engine_restarts_enumerated(tmp_path: Path) -> None:
    for retain in (True, False):
        engine, model = engine_of(3, retain=retain), model_of()
        some = rows(0, 50)
        engine.ingest(batch(some))
        model.ingest(some, None)
        engine.checkpoint(tmp_path / "engine.ids")
        other = ids.Engine.restore(tmp_path / "engine.ids")
        assert given_up(other)
        more = rows(50, 57)
        other.ingest(batch(more))
        model.ingest(more, None)
        same_answers(other, model, QUESTIONS)


def test_an_emptied_window_can_be_refined_again() -> None:
    engine = ids.Engine(ids.TimeWindow(10), "x", order_by="t", atom_limit=3)
    for name, condition in PREDICATES.items():
        engine.register(name, condition)
    engine.ingest({"t": [1] * 20, "x": [1.0] * 20, "k": list(range(20))})
    assert given_up(engine)
    engine.advance(100)
    assert engine.rows == 0
    for name in ("p4", "p3", "p2", "p1"):
        engine.drop(name)
    engine.ingest({"t": [101, 102], "x": [1e6, 0.1], "k": [2, 3]})
    assert (engine.rows, engine.atoms) == (2, 2)
    assert engine.attribute("SUM", "p0").value == 1e6


def test_two_hundred_predicates_make_few_atoms_of_few_rows() -> None:
    rng = np.random.default_rng(1)
    engine = ids.Engine(ids.CountWindow(300), "x")
    for i in range(200):
        engine.register(f"above_{i}", f"x > {i} AND k <> {i % 7}")
    x, k = rng.random(500) * 200, rng.integers(0, 7, 500)
    engine.ingest({"x": x, "k": k})
    assert 0 < engine.atoms <= 300
    inside, own = x[-300:], k[-300:]
    for i in (0, 99, 199):
        members = inside[(inside > i) & (own != i % 7)]
        assert engine.attribute("SUM", f"above_{i}").value == pytest.approx(members.sum())
    assert abs(engine.residual("VAR_POP")) < 1e-9
