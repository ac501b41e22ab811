"""The four laws of Shapley, for every game and every kind of engine."""

from __future__ import annotations

from math import fsum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ids
from ids.games import GAMES
from ids.state import Refined
from tests.laws.engines import ENGINES, Event, events, feed, made

EVERY = tuple(GAMES)
few = settings(max_examples=15)

whole = st.integers(-50, 50)


@pytest.mark.parametrize("kind", ENGINES)
@given(rows=events())
@few
def test_efficiency_everyone_together_accounts_for_the_aggregate(
    kind: str, rows: list[Event]
) -> None:
    engine = made(kind)
    feed(engine, rows)
    for game in EVERY:
        total = engine.aggregate(game) or 0.0
        if engine._core is not None and not isinstance(engine._core.membership, Refined):
            if kind == "enumerated":
                assert engine.attribute(game, "x IS NULL OR x = x").value == pytest.approx(total)
            continue
        everyone = engine.attribute(game, "TRUE")
        assert everyone.value == pytest.approx(total, rel=1e-13, abs=1e-300)
        assert everyone.lift == pytest.approx(0.0, abs=1e-12 * abs(total) + 1e-300)


@pytest.mark.parametrize("kind", [k for k in ENGINES if "enumerated" not in k])
@given(rows=events(least=1))
@few
def test_efficiency_the_atoms_add_up_to_the_aggregate(kind: str, rows: list[Event]) -> None:
    engine = made(kind)
    feed(engine, rows)
    for game in EVERY:
        sides = [
            engine.attribute(game, side)
            for name in engine.predicates
            for side in (name, f"NOT {name}")
        ]
        size = fsum(abs(side.share) + abs(side.lift) for side in sides)
        assert abs(engine.residual(game)) <= 1e-12 * (size + abs(engine.aggregate(game) or 0.0))
        assert engine.attribute_by_atoms(game, "TRUE").value == pytest.approx(
            engine.aggregate(game) or 0.0, rel=1e-12, abs=1e-12 * size + 1e-300
        )


@pytest.mark.parametrize("game", EVERY)
@given(
    others=st.lists(st.floats(-1e6, 1e6), max_size=10), value=st.floats(-1e6, 1e6), data=st.data()
)
@few
def test_symmetry_equal_rows_get_equal_credit(
    game: str, others: list[float], value: float, data: st.DataObject
) -> None:
    engine = ids.Engine(ids.CountWindow(50), "x", degree=4)
    engine.register("one", "id = 1")
    engine.register("other", "id = 2")
    rows = [(value, 1), (value, 2), *((x, 0) for x in others)]
    rows = data.draw(st.permutations(rows))
    engine.ingest({"x": [x for x, _ in rows], "id": [i for _, i in rows]})
    one, other = (engine.attribute(game, name) for name in ("one", "other"))
    assert one == other
    scanned = engine.attribute(game, "id + 0 = 2")
    assert scanned[:3] == other[:3]
    assert scanned.mechanism == "scan"


@pytest.mark.parametrize("kind", ENGINES)
@given(rows=events(least=1))
@few
def test_dummy_rows_that_add_nothing_get_nothing(kind: str, rows: list[Event]) -> None:
    engine = ENGINES[kind]()
    engine.register("zero", "x = 0")
    engine.register("missing", "x IS NULL")
    engine.register("nobody", "k > 99")
    feed(engine, rows)
    assert engine.attribute("SUM", "zero").value == 0.0
    for game in EVERY:
        assert engine.attribute(game, "nobody")[:3] == (0.0, 0.0, 0.0)
        if game != "COUNT":
            assert engine.attribute(game, "missing")[:3] == (0.0, 0.0, 0.0)
    assert engine.attribute("COUNT(x)", "missing").value == 0.0


def test_dummy_a_constant_window_has_no_variance_to_attribute() -> None:
    engine = ids.Engine(ids.CountWindow(50), "x", degree=4)
    engine.register("some", "k < 3")
    engine.ingest({"x": [0.1] * 10, "k": list(range(10))})
    for game in ("VAR_POP", "VAR_SAMP", "M3", "M4"):
        assert engine.attribute(game, "some")[:3] == (0.0, 0.0, 0.0)


@given(rows=st.lists(st.tuples(whole, whole, st.integers(0, 2)), max_size=20))
@few
def test_additivity_of_sums_and_averages(rows: list[tuple[int, int, int]]) -> None:
    """SUM and AVG of x + y are those of x plus those of y."""
    engine = added(rows, ["x", "y", "x + y"])
    for game in ("SUM", "AVG"):
        x, y, both = (engine.attribute(f"{game}({v})", "some") for v in ("x", "y", "x + y"))
        exact = game == "SUM"
        size = abs(x.share) + abs(x.lift) + abs(y.share) + abs(y.lift)
        assert abs(x.value + y.value - both.value) <= (0.0 if exact else 1e-14 * size)


@given(rows=st.lists(st.tuples(whole, whole, st.integers(0, 2)), max_size=20))
@few
def test_additivity_of_variances(rows: list[tuple[int, int, int]]) -> None:
    """VAR(x + y) + VAR(x - y) = 2·VAR(x) + 2·VAR(y) as games, so as attributions, too."""
    engine = added(rows, ["x", "y", "x + y", "x - y"])
    for game in ("VAR_POP", "VAR_SAMP"):
        x, y, plus, minus = (
            engine.attribute(f"{game}({v})", "some").value for v in ("x", "y", "x + y", "x - y")
        )
        size = max(abs(v) for v in (x, y, plus, minus)) + (engine.aggregate(f"{game}(x + y)") or 0)
        assert abs(plus + minus - 2 * x - 2 * y) <= 1e-12 * (size + 1.0)


@given(rows=st.lists(st.tuples(whole, whole, st.integers(0, 2)), max_size=20))
@few
def test_a_game_scales_with_its_power(rows: list[tuple[int, int, int]]) -> None:
    engine = added(rows, ["x", "x * -2"], degree=4)
    for game in (g for g in GAMES.values() if g.degree):
        one = engine.attribute(f"{game.name}(x)", "some")
        other = engine.attribute(f"{game.name}(x * -2)", "some")
        size = abs(other.share) + abs(other.lift)
        assert abs(other.value - one.value * (-2.0) ** game.power) <= 1e-12 * size + 1e-300


def added(rows: list[tuple[int, int, int]], values: list[str], degree: int = 2) -> ids.Engine:
    engine = ids.Engine(ids.CountWindow(50), values, degree=degree)
    engine.register("some", "k = 1")
    engine.ingest(
        {
            "x": [float(x) for x, _, _ in rows],
            "y": [float(y) for _, y, _ in rows],
            "k": [k for _, _, k in rows],
        }
    )
    return engine
