"""Values to parts: whole numbers whose sums are exact in any order, on any engine.

    y / 2**exponent = Σ_k a_k · 2**(-28·k)          k = 1 … levels
    (y / 2**exponent)² = Σ_k b_k · 2**(-28·k)       k = 1 … 2·levels

No part is larger than 2**28, so that 2**34 rows add up inside 64 bits.

Sums of parts are whole numbers of any size as limbs of 28 bits, most significant first. A limb is
an int64 array or a BIGINT symbol, and may hold any integer; after ``normalise`` every limb but the
first lies in [-2**27, 2**27): digits with a sign, so that what follows the first digit that is not
0 is always smaller than that digit is. Numbers are aligned at their last limb.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from ids.games import let, numbers
from ids.model import bits_of

Limbs = Sequence[Any]

LIMB_BITS = 28
_HALF = 2 ** (LIMB_BITS - 1)
_MASK = 2**LIMB_BITS - 1


def normalise(limbs: Limbs) -> list[Any]:
    """The same number with every carry taken, in one limb more.

    |limb| <= 2**62: with a carry of at most 2**35 nothing leaves 64 bits. The first limb of the
    result is the last carry: at most 2**-28 of the first limb given, and 2**7.
    """
    carried: list[Any] = []
    carry: Any = 0
    for limb in reversed([let(limb) for limb in limbs]):
        whole = limb + _HALF + carry
        carried.append(let((whole & _MASK) - _HALF))
        carry = whole >> LIMB_BITS
    return [let(carry), *reversed(carried)]


def scale(limbs: Limbs, factor: Any) -> list[Any]:
    """The number times a count: normalised limbs times 2**26 stay below 2**55."""
    return [limb * factor for limb in limbs]


def subtract(a: Limbs, b: Limbs) -> list[Any]:
    """A - b, limb by limb."""
    width = max(len(a), len(b))
    a, b = [0] * (width - len(a)) + list(a), [0] * (width - len(b)) + list(b)
    return [x - y for x, y in zip(a, b, strict=True)]


def multiply(a: Limbs, b: Limbs) -> list[Any]:
    """A · b of normalised numbers.

    With |limb| <= 2**28 and at most 32 limbs a limb of the product is a sum of at most 32
    products of 2**56: below 2**61, and below 2**62 twice over.
    """
    product: list[Any] = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            product[i + j] = product[i + j] + x * y
    return product


def to_pair(limbs: Limbs, unit: int) -> tuple[Any, Any]:
    """A normalised number, its last limb in units of 2**unit, as a pair (high, low) of doubles.

    A number of up to 105 significant bits: high is the nearest double, low all the rest. Beyond,
    the pair is within 2**-104 of the number.

    Added from the last limb up, what each sum rounds off is found exactly (a limb that is not 0
    is larger than all that follows it). Together that is at most a unit in the last place of the
    whole, and 2**-53 of that is a bit of the number: their sum is exact too.
    """
    top = len(limbs) - 1
    digits = [
        numbers(limb, np.float64) * 2.0 ** (unit + LIMB_BITS * (top - k))
        for k, limb in enumerate(limbs)
    ]
    sums = list(accumulate(reversed(digits), lambda below, digit: digit + below))
    named = [let(whole) for whole in sums]
    errors = [
        below - (whole - digit)
        for below, whole, digit in zip(named, named[1:], reversed(digits[:top]), strict=False)
    ]
    lost = let(reduce(lambda below, error: error + below, errors))
    high = let(named[-1] + lost)
    return high, let(lost - (high - named[-1]))


FEW_LEVELS = 8  # more would take the closed forms out of 64-bit limbs
_MANTISSA = 53
_SMALLEST = -1000  # below this exponent 2**-exponent would leave the doubles


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
