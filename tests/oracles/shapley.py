"""The definition of the Shapley value, and the closed forms, in exact rational arithmetic.

``attribution`` enumerates every coalition and knows nothing of closed forms; ``closed_form`` gives
the same number for windows too large to enumerate. Each is the check of the other.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from math import factorial, lcm
from typing import TypeVar

__all__ = [
    "CLOSED",
    "GAMES",
    "attribution",
    "closed_form",
    "enumerated",
    "lift_factor",
    "shapley_values",
    "worth",
]

Number = float | int | Fraction
Worth = TypeVar("Worth", float, Fraction)

CLOSED = ("SUM", "COUNT", "AVG", "VAR_POP", "VAR_SAMP")
GAMES = (*CLOSED, "M3", "M4")
# v(c·y) = c^degree · v(y): what undoes the scaling to integers.
_DEGREE = {"SUM": 1, "COUNT": 0, "AVG": 1, "VAR_POP": 2, "VAR_SAMP": 2, "M3": 3, "M4": 4}


def worth(game: str, ys: Sequence[int]) -> Fraction:
    """v of one coalition, given its members' values."""
    s, total = len(ys), sum(ys)
    if s == 0:
        return Fraction(0)
    if game == "SUM":
        return Fraction(total)
    if game == "COUNT":
        return Fraction(s)
    if game == "AVG":
        return Fraction(total, s)
    if game == "VAR_POP":
        return _central(ys, 2) / s
    if game == "VAR_SAMP":
        return _central(ys, 2) / (s - 1) if s > 1 else Fraction(0)
    return _central(ys, {"M3": 3, "M4": 4}[game]) / s


def _central(ys: Sequence[int], d: int) -> Fraction:
    # Σ(y − μ)^d with μ = total/s; multiplied through by s, every term is an integer.
    s, total = len(ys), sum(ys)
    return Fraction(sum((s * y - total) ** d for y in ys), s**d)


def shapley_values(game: str, ys: Sequence[Number]) -> list[Fraction]:
    """Every player's Shapley value, by enumerating all 2^N coalitions. N = 12 takes about 0.1 s.

    φ_i = Σ over S without i of |S|!·(N−|S|−1)!/N! · (v(S ∪ i) − v(S))
    """
    N = len(ys)
    scale, whole = _integers(ys)
    v = [
        worth(game, [whole[i] for i in range(N) if coalition >> i & 1])
        for coalition in range(1 << N)
    ]
    return [phi / scale ** _DEGREE[game] for phi in enumerated(v, N)]


def enumerated(v: Sequence[Worth], N: int) -> list[Worth]:
    """The Shapley values of N players; bit i of a coalition's number says that i takes part."""
    chance = [Fraction(factorial(s) * factorial(N - s - 1), factorial(N)) for s in range(N)]
    values = []
    for i in range(N):
        by_size = [v[0] - v[0]] * N
        for coalition in range(1 << N):
            if not coalition >> i & 1:
                by_size[coalition.bit_count()] += v[coalition | 1 << i] - v[coalition]
        values.append(sum((c * gain for c, gain in zip(chance, by_size, strict=True)), v[0] - v[0]))
    return values


def attribution(game: str, ys: Sequence[Number], members: Collection[int]) -> Fraction:
    """A predicate's attribution: the sum of the Shapley values of its members (row numbers)."""
    values = shapley_values(game, ys)
    return sum((values[i] for i in members), Fraction(0))


def _integers(ys: Sequence[Number]) -> tuple[int, list[int]]:
    exact = [Fraction(y) for y in ys]
    scale = lcm(*(y.denominator for y in exact))
    return scale, [int(y * scale) for y in exact]


def lift_factor(game: str, N: int) -> Fraction:
    """λ_g(N), which depends on the window's size alone. O(N)."""
    if game == "SUM":
        return Fraction(1)
    if game == "AVG":
        return _harmonic(N - 1) / (N - 1) if N > 1 else Fraction(1)
    if game == "COUNT" or N <= 2:
        return Fraction(0)
    H, half = _harmonic(N), Fraction(1, 2)
    if game == "VAR_POP":
        return N * (H - _harmonic(N, 2)) / ((N - 1) * (N - 2)) - Fraction(1, N * (N - 2))
    return (N * ((N - 1) * H - N + half) / (N - 2) - half) / (N - 1) ** 2


def _harmonic(n: int, order: int = 1) -> Fraction:
    # Halving keeps the numbers small until the last few additions.
    def between(low: int, high: int) -> Fraction:
        if high - low <= 1:
            return Fraction(1, low**order) if high > low else Fraction(0)
        middle = (low + high) // 2
        return between(low, middle) + between(middle, high)

    return between(1, n + 1)


def closed_form(game: str, ys: Sequence[Number], members: Collection[int]) -> Fraction:
    """A predicate's attribution as (m/N)·v(W) + λ_g(N)·dev_P, for the games in ``CLOSED``. O(N)."""
    N, m = len(ys), len(members)
    if N == 0:
        return Fraction(0)
    scale, whole = _integers(ys)
    A = sum(whole)
    A_P = sum(whole[i] for i in members)
    # C and D_P are Σ(y − μ)² over the window and over the predicate, both times N².
    squared = [(N * y - A) ** 2 for y in whole]
    C, D_P = Fraction(sum(squared), N * N), Fraction(sum(squared[i] for i in members), N * N)
    v, dev = {
        "SUM": (Fraction(A), A_P - Fraction(m * A, N)),
        "COUNT": (Fraction(N), Fraction(0)),
        "AVG": (Fraction(A, N), A_P - Fraction(m * A, N)),
        "VAR_POP": (C / N, D_P - m * C / N),
        "VAR_SAMP": (C / (N - 1) if N > 1 else Fraction(0), D_P - m * C / N),
    }[game]
    return (Fraction(m, N) * v + lift_factor(game, N) * dev) / Fraction(scale) ** _DEGREE[game]
