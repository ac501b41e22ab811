"""The estimate of one window and its error bound from the textbook: slow, and without kernels.

Bounds: Hoeffding 1963, Serfling 1974, Maurer & Pontil 2009, Bardenet & Maillard 2015.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from ids.games import Game, Moments

__all__ = ["bernstein", "estimate", "hoeffding", "rows_part"]


def hoeffding(spread: float, r: int, population: int, delta: float, replacement: bool) -> float:
    return spread * sqrt(_rho(r, population, replacement) * log(2 / delta) / (2 * r))


def bernstein(
    s: float, spread: float, r: int, population: int, delta: float, replacement: bool
) -> float:
    half = delta / 2
    if replacement:
        return s * sqrt(2 * log(2 / half) / r) + 7 * spread * log(2 / half) / (3 * (r - 1))
    rho, kappa = _rho(r, population, replacement), 7 / 3 + 3 / sqrt(2)
    return s * sqrt(2 * rho * log(5 / half) / r) + kappa * spread * log(5 / half) / r


def _rho(r: int, population: int, replacement: bool) -> float:
    if replacement:
        return 1.0
    if r <= population / 2:
        return 1 - (r - 1) / population
    return (1 - r / population) * (1 + 1 / r)


def rows_part(game: Game, moments: Moments) -> Polynomial:
    """Return h as a polynomial in z = y - mean."""
    n = float(moments.players)
    if n == 0:
        return Polynomial([0.0])
    if game.additive:
        return Polynomial([float(moments.mean), 1.0])
    slopes = [float(s) for s in game.slopes(moments)]
    base = float(game.worth(moments)) / n
    base -= sum(s * float(moments.central[d]) / n for d, s in enumerate(slopes, 1))
    return Polynomial([base, *slopes])


def _hull(h: Polynomial, low: float, high: float) -> tuple[float, float]:
    if h.degree() == 0:
        found = [0.0, float(h(0.0))]
    elif low > high:
        found = [0.0]
    else:
        turns = [float(x.real) for x in h.deriv().roots() if abs(x.imag) < 1e-6]
        at = [low, high, *(x for x in turns if low < x < high), *np.linspace(low, high, 2001)]
        found = [0.0, *(float(h(z)) for z in at)]
    return min(found), max(found)


def _half_width(g: Any, low: float, high: float, population: int, delta: float, how: Any) -> float:
    bound, replacement = how
    r, spread = len(g), high - low
    found = hoeffding(spread, r, population, delta, replacement)
    # chosen without looking at the values: is Bernstein tighter if all rows are equal?
    if bound == "bernstein" and r > 1:
        at_best = bernstein(0.0, spread, r, population, delta, replacement)
        if at_best < found:
            s = float(np.std(g, ddof=1))
            found = bernstein(s, spread, r, population, delta, replacement)
    mean = float(np.mean(g))
    # in the worst case the rest of the population is at one end of the range
    unseen = 1.0 if replacement else (population - r) / population
    return min(found, unseen * max(high - mean, mean - low))


def estimate(game: Game, moments: Moments, given: Any, delta: float, how: Any) -> tuple[float, ...]:
    """Return value, error and standard error of a single window."""
    parts, drawn, whole = given
    h, mean = rows_part(game, moments), float(moments.mean)
    if game.degree == 0:
        drawn, whole = (x._replace(value=np.zeros(len(x.member))) for x in (drawn, whole))
    sizes = np.diff(drawn.starts)
    replacement = how[1]
    exact = [
        n == 1 or (r >= n and not replacement) for r, n in zip(sizes, parts.population, strict=True)
    ]
    splits = sum(r > 0 and not done for r, done in zip(sizes, exact, strict=True))
    value = float(np.sum(np.where(whole.member, h(whole.value - mean), 0.0)))
    error = variance = 0.0
    for k, (r, n) in enumerate(zip(sizes.tolist(), parts.population.tolist(), strict=True)):
        rows = slice(drawn.starts[k], drawn.starts[k + 1])
        g = np.where(drawn.member[rows], h(drawn.value[rows] - mean), 0.0)
        low, high = _hull(h, parts.low[k] - mean, parts.high[k] - mean)
        if n == 0:
            continue
        if r == 0:
            error += n * max(high, -low)
            variance += (n * max(high, -low)) ** 2
            continue
        value += n * float(np.mean(g))
        if not exact[k]:
            error += n * _half_width(g, low, high, n, delta / splits, how)
            spread = float(np.var(g, ddof=1)) if r > 1 else (high - low) ** 2 / 4
            left = 1 - r / n if r > 1 and not replacement else 1.0
            variance += n**2 * left * spread / r
    return value, error, sqrt(variance)
