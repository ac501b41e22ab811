from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ids
from ids.exact import Parts, Sums, Window, attribution, item_of, window_of, worth
from ids.games import find
from tests.exact.summing import central, fitted, sums_of

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

GAMES = ("SUM", "COUNT", "AVG", "VAR_POP", "VAR_SAMP")
KINDS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "whole": lambda rng, n: rng.integers(-50, 1000, n).astype(np.float64),
    "stress": lambda rng, n: rng.normal(1e9, 1e-3, n),
    "mixed": lambda rng, n: rng.normal(size=n) * 10.0 ** rng.integers(-4, 5, n),
    "negative": lambda rng, n: -rng.lognormal(3.0, 1.0, n),
    "constant": lambda _, n: np.full(n, 0.1),
    "zero": lambda _, n: np.zeros(n),
    "tiny": lambda rng, n: rng.lognormal(size=n) * 1e-160,
}


def evaluate(values: Floats, held: Bools) -> dict[str, list[float | None]]:
    """Evaluate one window with ids.exact: the aggregate, value, share and lift of each game."""
    parts = fitted(values)
    window = window_of(sums_of(values, parts), parts)
    item = item_of(window, sums_of(values[held], parts), parts)
    found: dict[str, list[float | None]] = {}
    for name in GAMES:
        value, missing = worth(find(name), window, parts)
        attributed = attribution(find(name), window, item, parts)
        found[name] = [None if missing[0] else float(value[0])]
        found[name] += [float(part[0]) for part in attributed]
    return found


def ask(values: Floats, held: Bools, players: Bools | None = None) -> dict[str, list[float | None]]:
    """Evaluate the whole table with the engine in process."""
    items = ", ".join(
        f"{g}(v) AS {g}, SHAPLEY_ATTRIBUTE({g}(v), p = 'x' WITH (SHARE, LIFT)) AS {g}_x"
        for g in GAMES
    )
    column = [None if players is not None and not players[i] else v for i, v in enumerate(values)]
    found = ids.sql(
        f"SELECT {items} FROM e "
        f"WINDOW w AS (ORDER BY t ROWS {max(len(values), 1)} PRECEDING) EMIT FINAL",
        e={"t": np.arange(len(values)), "v": column, "p": np.where(held, "x", "y")},
    ).to_pylist()[-1]
    names = {g: [g, f"{g}_x", f"{g}_x_share", f"{g}_x_lift"] for g in GAMES}
    return {g: [found[name] for name in names[g]] for g in GAMES}


def bits(answers: dict[str, list[float | None]]) -> dict[str, list[str | None]]:
    return {
        game: [None if x is None else float(x).hex() for x in each]
        for game, each in answers.items()
    }


@pytest.mark.parametrize("rows", [1, 2, 3, 40, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_has_the_bits_of_the_engine_in_process(kind: str, rows: int) -> None:
    rng = np.random.default_rng(rows)
    for part in (0.0, 0.3, 1.0):
        values, held = KINDS[kind](rng, rows), rng.random(rows) < part
        assert bits(evaluate(values, held)) == bits(ask(values, held))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.floats(-1e6, 1e6, width=32), st.booleans()), min_size=1, max_size=30))
def test_any_values_have_the_bits_of_the_engine_in_process(
    rows: list[tuple[float, bool]],
) -> None:
    values = np.array([v if abs(v) > 1e-6 else 0.0 for v, _ in rows])
    held = np.array([h for _, h in rows])
    assert bits(evaluate(values, held)) == bits(ask(values, held))


def test_rows_without_a_value_do_not_play() -> None:
    rng = np.random.default_rng(5)
    values, held, players = rng.lognormal(size=60), rng.random(60) < 0.5, rng.random(60) < 0.4
    assert bits(evaluate(values[players], held[players])) == bits(ask(values, held, players))


def test_a_window_without_players_is_null_and_attributes_nothing() -> None:
    nobody = np.zeros(3, np.bool_)
    found = evaluate(np.zeros(0), np.zeros(0, np.bool_))
    assert bits(found) == bits(ask(np.zeros(3), ~nobody, nobody))
    assert found["SUM"] == [None, 0.0, 0.0, 0.0]
    assert found["COUNT"] == [0.0, 0.0, 0.0, 0.0]


values_of_any_size = st.floats(-1e9, 1e9).filter(lambda y: y == 0 or abs(y) > 1e-9)


@settings(deadline=None)
@given(
    st.lists(st.tuples(values_of_any_size, st.booleans()), min_size=1, max_size=12),
    st.sampled_from([0.0, 1.0, 1e9]),
)
def test_each_number_is_the_exact_one_rounded_once(
    rows: list[tuple[float, bool]], shift: float
) -> None:
    values = np.array([v + shift for v, _ in rows])
    held = np.array([h for _, h in rows])
    parts = fitted(values)
    window = window_of(sums_of(values, parts), parts)
    item = item_of(window, sums_of(values[held], parts), parts)
    unit = Fraction(2) ** parts.exponent
    mean, spread, _, second = central(values, held)
    assert window.moments.mean[0] == float(mean / unit)
    assert window.moments.central[2][0] == float(spread / unit**2)
    assert item.deviation[1][0] == float(second / unit**2)


def test_rows_are_only_counted_where_nothing_is_summed() -> None:
    parts = Parts.fit(0.0, 0.0, 0)
    window: Window = window_of(Sums(np.array([4, 0]), [], []), parts)
    item = item_of(window, Sums(np.array([1, 0]), [], []), parts)
    found = attribution(find("COUNT"), window, item, parts)
    assert worth(find("COUNT"), window, parts)[0].tolist() == [4.0, 0.0]
    assert found.value.tolist() == [1.0, 0.0]


def test_a_window_of_many_rows_stays_within_its_words() -> None:
    """2**26 rows with the largest possible parts, for which N²·Q is largest."""
    rows, largest = 2**26, float(np.nextafter(1.0, 0.0))
    parts = Parts(0, 8, 16)
    one = sums_of(np.array([largest]), parts)
    many = Sums(one.count * rows, [a * rows for a in one.first], [b * rows for b in one.second])
    half = Sums(*(many.count // 2, [a // 2 for a in many.first], [b // 2 for b in many.second]))
    window = window_of(many, parts)
    item = item_of(window, half, parts)
    assert window.moments.mean[0] == largest
    assert window.moments.central[2][0] == 0.0
    assert [d[0] for d in item.deviation] == [0.0, 0.0]
