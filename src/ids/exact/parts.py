"""Values to parts: whole numbers whose sums are exact in any order, on any engine.

    y / 2**exponent = Σ_k a_k · 2**(-28·k)          k = 1 … levels
    (y / 2**exponent)² = Σ_k b_k · 2**(-28·k)       k = 1 … 2·levels

No part is larger than 2**28, so that 2**34 rows add up inside 64 bits.
"""

from __future__ import annotations

from itertools import pairwise
from math import frexp
from typing import Any, NamedTuple

import numpy as np

from ids.exact.limbs import LIMB_BITS, multiply, normalise
from ids.games.operands import let, numbers

__all__ = ["FEW_LEVELS", "Parts", "bits_of", "split", "split_integer"]

FEW_LEVELS = 8  # more would take the closed forms out of 64-bit limbs
_MANTISSA = 53
_SMALLEST = -1000  # below this exponent 2**-exponent would leave the doubles
_LAST_BIT = -1074  # no double has a bit below this one


def bits_of(largest: float, smallest: float) -> tuple[int, int]:
    """Exponents that enclose the bits of values of these magnitudes: above all, at the lowest."""
    return frexp(largest)[1], max(frexp(smallest)[1] - _MANTISSA, _LAST_BIT)


class Parts(NamedTuple):
    """How a measure's values are split.

    exponent  every |value| is below 2**exponent
    levels    parts of a value: every bit down to 2**(exponent - 28·levels) counts
    squares   parts of its square: twice as many, or one fewer if the last is surely 0; 0 where no
              square is summed
    """

    exponent: int
    levels: int
    squares: int

    @property
    def wide(self) -> bool:
        """Whether there are so many levels that only ``ids.exact.bigints`` evaluates their sums."""
        return self.levels > FEW_LEVELS

    @classmethod
    def fit(cls, largest: float, smallest: float, degree: int) -> Parts:
        """Parts that hold every bit of values of these magnitudes, 0 aside."""
        if largest == 0.0:
            return cls._holding(0, 0, degree)
        return cls._holding(*bits_of(largest, smallest), degree)

    @classmethod
    def for_integers(cls, bits: int, degree: int) -> Parts:
        """Parts that hold every integer below 2**bits; the last one counts in units of 1."""
        return cls._holding(-(-bits // LIMB_BITS) * LIMB_BITS, 0, degree)

    def trimmed(self, smallest: float) -> Parts:
        """Without the last part of a square, where values of at least ``smallest`` leave it 0.

        A value's last part is then a multiple of 2**14, and its square of 2**28.
        """
        _, lowest = bits_of(smallest, smallest)
        spare = lowest - (self.exponent - LIMB_BITS * self.levels)
        if not self.squares or self.wide or spare < 14:
            return self
        return self._replace(squares=self.squares - 1)

    @classmethod
    def _holding(cls, exponent: int, lowest: int, degree: int) -> Parts:
        if degree == 0:
            return cls(0, 0, 0)
        exponent = max(exponent, _SMALLEST)
        levels = max(1, -(-(exponent - lowest) // LIMB_BITS))
        return cls(exponent, levels, 2 * levels if degree > 1 else 0)


def split(y: Any, parts: Parts) -> tuple[list[Any], list[Any]]:
    """The parts of a double and of its square, as 64-bit integers.

    Rounded at level k, less what was rounded at level k - 1: neither step loses anything, and no
    level waits for another. A square is that of the parts. Give 0 in place of a value of
    2**exponent and more: its parts would leave 64 bits.
    """
    if parts.wide:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return _split_wide(y, parts)
    z = let(y * 2.0**-parts.exponent)
    rounded = [let(np.rint(z * 2.0 ** (LIMB_BITS * (k + 1)))) for k in range(parts.levels)]
    levels = rounded[:1] + [here - above * 2.0**LIMB_BITS for above, here in pairwise(rounded)]
    return _with_squares([let(numbers(level, np.int64)) for level in levels], parts)


def _split_wide(y: Any, parts: Parts) -> tuple[list[Any], list[Any]]:
    """``split`` into many levels, of which a double fills three at the most, side by side."""
    scaled = [let(np.ldexp(y, LIMB_BITS * (k + 1) - parts.exponent)) for k in range(parts.levels)]
    levels = []
    for above, here in pairwise([scaled[0] * 0.0, *scaled]):
        # from 2**81 on (or infinite) all bits lie in the levels above
        part = np.rint(here) - np.rint(above) * 2.0**LIMB_BITS
        fits = np.abs(here) < 2.0 ** (_MANTISSA + LIMB_BITS)
        levels.append(let(numbers(np.where(fits, part, 0.0), np.int64)))
    if not parts.squares:
        return levels, []
    products: list[Any] = [0] * (2 * parts.levels)
    for i, x in enumerate(levels):
        for j in range(i, min(i + 3, parts.levels)):
            product = x * levels[j]
            products[i + j + 1] = products[i + j + 1] + (product if i == j else product * 2)
    named = [*(let(product) for product in products), 0]
    low, high = 2**LIMB_BITS - 1, LIMB_BITS
    return levels, [(here & low) + (below >> high) for here, below in pairwise(named)]


def split_integer(y: Any, parts: Parts) -> tuple[list[Any], list[Any]]:
    """The parts of a 64-bit integer (``Parts.for_integers``) and of its square.

    The largest, 2**63 - 1, stands for 2**63: as doubles they are one.
    """
    mask = 2**LIMB_BITS - 1
    shifted = [y >> LIMB_BITS * (parts.levels - 1 - k) for k in range(parts.levels)]
    levels = shifted[:1] + [level & mask for level in shifted[1:]]
    if parts.exponent > 63:
        levels[-1] = levels[-1] + numbers(y == 2**63 - 1, np.int64)
    return _with_squares([let(level) for level in levels], parts)


def _with_squares(levels: list[Any], parts: Parts) -> tuple[list[Any], list[Any]]:
    return levels, normalise(multiply(levels, levels))[: parts.squares] if parts.squares else []
