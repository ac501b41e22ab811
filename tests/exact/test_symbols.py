from __future__ import annotations

import re

import numpy as np
import pytest

from ids.exact import Parts, Program, Sums, attribution, item_of, split, window_of
from ids.games import GAMES, let

GAMES_OF_TWO = [game for game in GAMES.values() if game.degree <= 2]


def test_numbers_are_spelled_so_that_nothing_is_lost() -> None:
    x = Program("p").column("x")
    assert (x + 0.1).text == "(`x` + 0.1E0D)"
    assert (x * 5e-324).text == "(`x` * 5E-324D)"
    assert (-0.0 - x).text == "((-0.0E0D) - `x`)"
    assert (x & -3).text == "(`x` & (-3L))"
    assert (np.float64(2.0) * x).text == "(2.0E0D * `x`)"
    assert (x > 2).text == "(`x` > 2L)"


def test_a_column_may_have_any_name() -> None:
    assert Program("p").column("odd`name").text == "`odd``name`"


def test_equal_text_is_named_once_and_a_name_is_not_named_again() -> None:
    program = Program("p")
    x = program.column("x")
    first, again = let(x * 2.0), let(x * 2.0)
    assert first.text == again.text == let(first).text
    assert let(x) is x
    assert len(program.stages()) == 1


def test_arrays_and_numbers_need_no_name() -> None:
    array = np.arange(3)
    assert let(array) is array
    assert let(1.5) == 1.5


def test_a_symbol_is_neither_true_nor_false() -> None:
    x = Program("p").column("x")
    with pytest.raises(TypeError):
        bool(x == 1.0)


def test_symbols_of_two_programs_do_not_mix() -> None:
    with pytest.raises(TypeError, match="two programs"):
        Program("p").column("x") + Program("q").column("x")


def test_what_has_no_text_is_refused() -> None:
    x = Program("p").column("x")
    with pytest.raises(TypeError):
        np.sqrt(x)
    with pytest.raises(TypeError):
        np.sum(x)  # type: ignore[call-overload]


@pytest.mark.parametrize("game", GAMES_OF_TWO, ids=lambda game: str(game.name))
def test_a_stage_refers_to_columns_and_earlier_stages_alone(game: object) -> None:
    program = Program("p_")
    parts = Parts(3, 3, 6)

    def sums(of: str) -> Sums:
        return Sums(
            program.column(f"{of}_m"),
            [program.column(f"{of}_a{k}") for k in range(3)],
            [program.column(f"{of}_b{k}") for k in range(6)],
        )

    window = window_of(sums("w"), parts)
    found = attribution(game, window, item_of(window, sums("i"), parts), parts)  # type: ignore[arg-type]
    known: set[str] = set()
    for stage in program.stages():
        assert stage
        for _, text in stage:
            assert set(re.findall(r"`(p_\d+)`", text)) <= known
        known |= {name for name, _ in stage}
    for part in found:
        assert set(re.findall(r"`(p_\d+)`", part.text)) <= known  # type: ignore[attr-defined]


def test_text_grows_with_the_levels_and_does_not_explode() -> None:
    program = Program("p_")
    split(program.column("y"), Parts(3, 8, 16))
    assert sum(len(text) for stage in program.stages() for _, text in stage) < 100_000
    assert len(program.stages()) < 10
