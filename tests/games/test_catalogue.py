"""User-defined games, and definitions that are rejected."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

import ids
from ids.errors import ArgumentError, UnknownNameError
from ids.games import GAMES, MomentGame, Term, find, register_game
from tests.oracles import shapley


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = dict(GAMES)
    yield
    GAMES.clear()
    GAMES.update(before)


def enumerated(worth: object, ys: list[float], members: list[int]) -> float:
    """Compute a predicate's attribution in any game from the definition."""
    known = shapley.worth
    degree = dict(shapley._DEGREE)
    try:
        shapley.worth = worth  # type: ignore[assignment]
        shapley._DEGREE["USER"] = 2
        return float(shapley.attribution("USER", ys, members))
    finally:
        shapley.worth = known
        shapley._DEGREE.clear()
        shapley._DEGREE.update(degree)


def mean_of_squares(_: str, ys: list[int]) -> Fraction:
    return Fraction(sum(y * y for y in ys), len(ys)) if ys else Fraction(0)


def square_of_sum(_: str, ys: list[int]) -> Fraction:
    return Fraction(sum(ys) ** 2)


USERS = {
    "RAW2": (MomentGame("RAW2", (Term(1, 1, (2,)),), central=False), mean_of_squares),
    "SQUARED": (MomentGame("squared", (Term(1, 0, (1, 1)),), central=False), square_of_sum),
}


@pytest.mark.parametrize("name", USERS)
@pytest.mark.parametrize("ys", [[1.0, 2.0, 4.0, -3.0], [2.5], [1.0, 5.0], [1e6, 1e6 + 1, 1e6 + 3]])
def test_a_registered_game_is_played_by_the_engine(name: str, ys: list[float]) -> None:
    game, worth = USERS[name]
    register_game(game)
    engine = ids.Engine(window=ids.CountWindow(10), value="x")
    engine.register("some", "k < 2")
    engine.ingest({"x": ys, "k": list(range(len(ys)))})
    members = [i for i in range(len(ys)) if i < 2]
    exact = enumerated(worth, ys, members)
    found = engine.attribute(name, "some")
    assert found.value == pytest.approx(exact, rel=1e-12)
    assert found.share + found.lift == pytest.approx(exact, rel=1e-12)
    assert engine.attribute_by_atoms(name, "some").value == pytest.approx(exact, rel=1e-12)
    whole = float(worth("", [Fraction(y) for y in ys]))  # type: ignore[misc]
    assert engine.aggregate(name) == pytest.approx(whole, rel=1e-12)
    assert engine.residual(name) == pytest.approx(0.0, abs=1e-10 * abs(whole))


def test_a_registered_game_is_known_to_scripts() -> None:
    register_game(USERS["RAW2"][0])
    answers = ids.sql(
        "SELECT RAW2(x) AS whole, SHAPLEY_ATTRIBUTE(RAW2(x), k < 2) AS some FROM events "
        "WINDOW w AS (ORDER BY k ROWS 10 PRECEDING) EMIT FINAL",
        events={"x": [1.0, 2.0, 4.0, -3.0], "k": [0, 1, 2, 3]},
    ).to_pylist()[0]
    exact = enumerated(mean_of_squares, [1.0, 2.0, 4.0, -3.0], [0, 1])
    assert answers["whole"] == pytest.approx(7.5)
    assert answers["some"] == pytest.approx(exact, rel=1e-12)


def test_a_central_game_written_out_is_the_built_in_one() -> None:
    register_game(MomentGame("MY_VARIANCE", (Term(1, 1, (2,)), Term(-1, 2, (1, 1)))))
    engine = ids.Engine(window=ids.CountWindow(10), value="x")
    engine.register("some", "x > 2")
    engine.ingest({"x": [1e9 + 1, 1e9 + 2, 1e9 + 4, 2.0, 1.0]})
    assert engine.attribute("MY_VARIANCE", "some").value == pytest.approx(
        engine.attribute("VAR_POP", "some").value, rel=1e-12
    )


def test_a_name_is_given_once_whatever_its_case() -> None:
    with pytest.raises(ArgumentError, match="'AVG' already exists; choose another name"):
        register_game(MomentGame("avg", (Term(1, 1, (1,)),), central=False))
    register_game(USERS["SQUARED"][0])
    assert find("SQUARED").name == "SQUARED"
    with pytest.raises(ArgumentError, match="already exists"):
        register_game(USERS["SQUARED"][0])


def test_terms_of_different_degree_are_refused() -> None:
    with pytest.raises(ArgumentError, match="same total degree"):
        register_game(MomentGame("ODD", (Term(1, 1, (2,)), Term(1, 1, (1,)))))
    assert "ODD" not in GAMES


@pytest.mark.parametrize("degrees", [(7,), (0,), (3, 4), ()])
def test_powers_that_are_not_kept_are_refused(degrees: tuple[int, ...]) -> None:
    with pytest.raises(ArgumentError, match="degrees 1 to 6"):
        MomentGame("STEEP", (Term(1, 1, degrees),))


def test_a_game_without_a_term_is_refused() -> None:
    with pytest.raises(ArgumentError, match="degrees 1 to 6"):
        MomentGame("EMPTY", ())


def test_an_unknown_game_is_named_with_a_hint() -> None:
    with pytest.raises(
        UnknownNameError, match=r"unknown aggregate 'VARPOP'; did you mean 'VAR_POP'\?"
    ):
        find("VARPOP")
