from __future__ import annotations

from fractions import Fraction

from tests.oracles.recount import recount


def test_a_recount_never_rounds() -> None:
    rows = [("eu", 0.1), ("us", 2.0), ("eu", 1e9)]
    m, A, B = recount(rows, lambda row: row[0] == "eu", lambda row: row[1])
    assert (m, A) == (2, Fraction(0.1) + 10**9)
    assert Fraction(0.1) ** 2 + 10**18 == B


def test_null_neither_holds_nor_plays() -> None:
    rows: list[tuple[bool | None, float | None]] = [(True, 1.0), (None, 2.0), (True, None)]
    found = recount(rows, lambda row: row[0], lambda row: row[1])
    assert (found.m, found.A, found.B) == (1, 1, 1)


def test_no_rows_sum_to_nothing() -> None:
    found = recount([], bool, float)
    assert (found.m, found.A, found.B) == (0, 0, 0)
