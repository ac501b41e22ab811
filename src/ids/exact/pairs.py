"""Double-double steps on any operand: the twins of ``ids.kernels.pairs``, without fma.

What fma(x, y, -x·y) finds there, Dekker's product finds here: the same number, hence the same
bits from there on.
"""

from __future__ import annotations

from typing import Any

from ids.games.operands import let

__all__ = ["deviation_of", "divide", "mean_of"]

Pair = tuple[Any, Any]

_SPLITTER = 134217729.0  # 2**27 + 1


def _halves(x: Any) -> Pair:
    """X as the sum of two doubles of 26 bits each (Veltkamp)."""
    wide = let(x * _SPLITTER)
    high = let(wide - (wide - x))
    return high, let(x - high)


def _product(x: Any, y: Any) -> Pair:
    """X · y exactly (Dekker): the rounded product, and what it misses."""
    product = let(x * y)
    (a, b), (c, d) = _halves(x), _halves(y)
    return product, let(b * d - (((product - a * c) - b * c) - a * d))


def mean_of(high: Any, low: Any, players: Any) -> Pair:
    """A sum's mean: the rounded quotient, and what it misses."""
    mean = let(high / players)
    product, error = _product(mean, players)
    return mean, let(((high - product) - error + low) / players)


def divide(pair: Pair, x: Any) -> Any:
    """Pair / double, rounded to a double."""
    quotient, missing = mean_of(*pair, x)
    return let(quotient + missing)


def deviation_of(high: Any, low: Any, members: Any, mean: Any, missing: Any) -> Any:
    """Σ_P y - m · mean, for a sum (high, low) and a mean (mean, missing); rounded once."""
    product, error = _product(members, mean)
    difference = let(high - product)
    shadow = let(difference - high)
    rest = (high - (difference - shadow)) - (product + shadow)
    return let(difference + (rest + (low - error - members * missing)))
