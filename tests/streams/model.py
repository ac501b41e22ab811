"""A window as a Python list of rows: what the engine must mean, in exact rationals.

It knows no digit, no atom and no delta; everything is counted again from the rows inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from typing import NamedTuple

from ids.errors import StateError
from ids.language import parse_predicate
from ids.model import Expression, Kind
from ids.predicates import bind_predicate
from tests.oracles import shapley
from tests.oracles.three_valued import evaluate

__all__ = ["GAMES", "KINDS", "Exact", "Model", "Row", "attributed", "close", "holds"]

GAMES = ("SUM", "COUNT", "AVG", "VAR_POP", "VAR_SAMP")
KINDS = {"t": Kind.NUMBER, "x": Kind.NUMBER, "region": Kind.TEXT, "k": Kind.NUMBER}


class Row(NamedTuple):
    t: int
    x: float | None
    region: str | None
    k: int | None


@cache
def _bound(condition: str, registered: tuple[tuple[str, str], ...]) -> Expression:
    names = {name: bind_predicate(parse_predicate(text), KINDS) for name, text in registered}
    return bind_predicate(parse_predicate(condition), KINDS, names)


@cache
def _truth(condition: str, registered: tuple[tuple[str, str], ...], row: Row) -> bool | None:
    found: bool | None = evaluate(_bound(condition, registered), row._asdict())
    return found


def holds(condition: str, registered: dict[str, str], row: Row) -> bool | None:
    """Three-valued: True, False or None."""
    return _truth(condition, tuple(registered.items()), row)


class Exact(NamedTuple):
    """One attribution, and the aggregate it is a part of, without a rounding."""

    value: Fraction
    share: Fraction
    lift: Fraction
    worth: Fraction

    @property
    def size(self) -> Fraction:
        """What an error is measured against."""
        return abs(self.share) + abs(self.lift)


_lift_factor = cache(shapley.lift_factor)


@lru_cache(maxsize=64)
def _window(game: str, ys: tuple[float, ...]) -> tuple[Fraction, list[Fraction]]:
    """v(W), and each row's deviation."""
    exact = [Fraction(y) for y in ys]
    N = len(ys)
    mean = sum(exact, Fraction(0)) / N
    if game == "COUNT":
        return Fraction(N), [Fraction(0)] * N
    if game in ("SUM", "AVG"):
        return mean * (N if game == "SUM" else 1), [y - mean for y in exact]
    squares = [(y - mean) ** 2 for y in exact]
    whole = sum(squares, Fraction(0))
    average = whole / N
    rows = N if game == "VAR_POP" else N - 1
    return whole / rows if rows else Fraction(0), [square - average for square in squares]


def attributed(game: str, ys: Sequence[float], members: Sequence[int]) -> Exact:
    """``shapley.closed_form``, taken apart into share and lift."""
    if not ys:
        return Exact(Fraction(0), Fraction(0), Fraction(0), Fraction(0))
    worth, deviations = _window(game, tuple(ys))
    share = Fraction(len(members), len(ys)) * worth
    lift = _lift_factor(game, len(ys)) * sum((deviations[i] for i in members), Fraction(0))
    return Exact(share + lift, share, lift, worth)


def close(found: float, exact: Fraction, size: Fraction, relative: float = 1e-12) -> bool:
    """Within ``relative`` of ``size``; beyond the doubles only an infinity of that sign is."""
    if abs(exact) > Fraction(1.7e308):
        return found == (float("inf") if exact > 0 else float("-inf"))
    if found in (float("inf"), float("-inf")) or found != found:
        return False
    return abs(Fraction(found) - exact) <= Fraction(relative) * size + Fraction(1, 2**1060)


@dataclass
class Model:
    """``expire`` says how many of the oldest rows are outside, given the rows and the newest time.

    Without ``ordered`` rows stand as they came.
    """

    expire: Callable[[list[Row], int | None], int]
    lateness: int = 0
    ordered: bool = True
    rows: list[Row] = field(default_factory=list)
    registered: dict[str, str] = field(default_factory=dict)
    newest: int | None = None
    late: int = 0

    def _is_late(self, row: Row, lateness: int | None) -> bool:
        if self.newest is None or lateness is None or not self.ordered:
            return False
        return row.t < self.newest - lateness

    def ingest(self, batch: Sequence[Row], lateness: int | None) -> None:
        kept = []
        for row in batch:
            if self._is_late(row, lateness):
                self.late += 1
                continue
            kept.append(row)
            if self.ordered:
                self.newest = row.t if self.newest is None else max(self.newest, row.t)
        self.rows += kept
        if self.ordered:
            self.rows.sort(key=lambda row: row.t)
        self.slide()

    def slide(self) -> None:
        del self.rows[: self.expire(self.rows, self.newest)]

    def delete(self, batch: Sequence[Row]) -> None:
        left = list(self.rows)
        for row in batch:
            if row not in left:
                raise StateError("a stranger")
            left.remove(row)
        self.rows = left

    def players(self) -> list[Row]:
        return [row for row in self.rows if row.x is not None]

    def members(self, condition: str, rows: Sequence[Row]) -> list[int]:
        return [i for i, row in enumerate(rows) if holds(condition, self.registered, row) is True]

    def attribute(self, game: str, condition: str) -> Exact:
        """COUNT is COUNT(*), played by every row."""
        rows = self.rows if game == "COUNT" else self.players()
        ys = [0.0 if row.x is None else row.x for row in rows]
        return attributed(game, ys, self.members(condition, rows))

    def signature(self, row: Row) -> tuple[bool | None, ...]:
        return tuple(holds(text, {}, row) for text in self.registered.values())
