"""One shape for every game: attribution = share + lift.

    share = m/N · v(W)            what m average rows would account for
    lift  = Σ_d slope_d · deviation_d      what these rows do beyond it

``deviation_d`` is Σ_P (y - mean)**d less its fair part of the window's. The slopes depend on the
game and the window alone, so every attribution is affine in the predicate's summaries, and over
a partition the deviations cancel: Efficiency holds by construction.

A form is written once, on NumPy arrays or anything that answers like one. On arrays it yields
numbers; on symbols (``ids.exact``) it yields the text that another engine evaluates, step by step
the same. ``let``, ``numbers`` and ``look_up`` are the few spots where NumPy does not ask its
operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def let(x: Any) -> Any:
    """Name what is used more than once: text would be spelled out at every use. Arrays as is."""
    return x.let() if hasattr(x, "let") else x


def numbers(x: Any, dtype: type[np.generic]) -> Any:
    """The operand as numbers of that type."""
    return x.astype(dtype) if hasattr(x, "let") else np.asarray(x, dtype=dtype)


def look_up(table: Floats, index: Any) -> Any:
    """``table[index]``, elementwise."""
    return index.look_up(table) if hasattr(index, "let") else table[index]


class Moments(NamedTuple):
    """A window (or many: every field may be an array over emits).

    players  float64[…]            N
    total    float64[…]            Σ y
    mean     float64[…]
    central  float64[degree+1, …]  Σ (y - mean - rest)**d
    rest     float64[…]            what the rounded mean misses: the exact one is mean + rest
    """

    players: Floats
    total: Floats
    mean: Floats
    central: Floats
    rest: Floats = np.array(0.0)

    @classmethod
    def of(
        cls, players: float, total: float, mean: float, central: Sequence[float], rest: float = 0.0
    ) -> Moments:
        """A single window: every field has no axis of emits."""
        return cls(*map(np.array, (players, total, mean, central, rest)))


class Attributed(NamedTuple):
    """Value, share and lift of each predicate at each emit, float64[i, e]."""

    value: Floats
    share: Floats
    lift: Floats


class Coefficients(NamedTuple):
    """The affine form Φ = a_m·m + a_A·A_P + a_B·B_P of the paper's Eq. 1."""

    a_m: float
    a_A: float
    a_B: float


@dataclass(frozen=True, slots=True)
class Game:
    """A game on the rows of a window.

    name    as it is written in a query
    degree  the highest power sum it needs (0: only counts)
    power   how it scales: v(c·y) = c**power · v(y)
    worth   Moments -> v(W)
    slopes  Moments -> the factor of deviation_1 … deviation_degree
    additive  whether a predicate's attribution is just its own sum (SUM)
    affine  whether the worth is linear in the moments and the slopes depend on N alone
    nulls   how many rows the aggregate needs not to be NULL in SQL
    """

    name: str
    degree: int
    power: int
    worth: Callable[[Moments], Floats]
    slopes: Callable[[Moments], Sequence[Floats]]
    additive: bool = False
    affine: bool = False
    nulls: int = 1


def attribute(
    game: Game, moments: Moments, members: Floats, item_total: Floats, deviation: Floats
) -> Attributed:
    """Evaluate the closed form for many predicates at many emits.

    members     float64[i, e]          m of each predicate
    item_total  float64[i, e]          Σ_P y
    deviation   float64[degree, i, e]  central deviations
    With no player everything is 0.
    """
    players = moments.players > 0
    safe = np.where(players, moments.players, 1.0)
    worth = let(np.where(players, game.worth(moments), 0.0))
    # a predicate that holds on every row accounts for exactly the whole
    share = let(np.where(members == moments.players, worth, members * (worth / safe)))
    lift = np.zeros_like(share)
    for slope, each in zip(game.slopes(moments), deviation, strict=False):
        lift += np.where(players, slope, 0.0) * each
    lift = let(lift)
    if game.additive:
        # rounded once from the exact sum; share + lift would round three times
        return Attributed(item_total + 0.0, share, lift)
    return Attributed(share + lift, share, lift)


def coefficients(game: Game, count: int, total: float, squares: float = 0.0) -> Coefficients:
    """(a_m, a_A, a_B) for a window of N = ``count`` rows, A = ``total``, B = ``squares``.

    Uncentred, as the paper prints it: meant for reading and for sampling bounds. The engine
    evaluates share + lift, which does not cancel.
    """
    if count == 0:
        return Coefficients(0.0, 0.0, 0.0)
    mean = total / count
    spread = max(squares - total * mean, 0.0)
    window = Moments.of(float(count), total, mean, [count, 0.0, spread])
    worth = float(game.worth(window))
    slopes = [float(s) for s in game.slopes(window)] + [0.0, 0.0]
    first, second = slopes[0], slopes[1]
    return Coefficients(
        a_m=worth / count - first * mean + second * (mean * mean - spread / count),
        a_A=first - 2.0 * mean * second,
        a_B=second,
    )
