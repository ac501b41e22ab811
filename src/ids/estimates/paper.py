"""The paper's own bound, to compare with: one Hoeffding–Serfling term a coordinate (Eq. 6)."""

from __future__ import annotations

from math import log, sqrt

from ids.games import Game, coefficients

__all__ = ["paper_bound"]


def paper_bound(
    game: Game,
    count: int,
    total: float,
    squares: float,
    *,
    largest: float,
    rows: int,
    confidence: float,
    replacement: bool = False,
) -> float:
    """Eq. 6 for a window of N = ``count`` rows with |y| <= ``largest``, ``rows`` of them drawn.

    The attribution is a_m·m + a_A·A_P + a_B·B_P, and each of the sums that it has is bounded by
    itself: two for AVG (log 4/δ), three for the variances (log 6/δ), one for SUM and for COUNT.

    >>> from ids.games import find
    >>> round(paper_bound(find("COUNT"), 1000, 0, 0, largest=1, rows=100, confidence=0.95))
    258
    """
    a_m, a_A, a_B = coefficients(game, count, total, squares)
    sizes = (abs(a_m), abs(a_A) * largest, abs(a_B) * largest**2)
    if game.additive:
        sizes = (0.0, *sizes[1:])  # the sum alone: what is left of a_m is rounding
    coordinates = {0: 1, 1: 1 if game.additive else 2, 2: 3}[game.degree]
    left = 1.0 if replacement else 1.0 - (rows - 1) / count
    deviation = sqrt(2.0 * left * log(2.0 * coordinates / (1.0 - confidence)) / rows)
    return sum(sizes) * count * deviation
