"""Whole numbers of any size as limbs of 28 bits, most significant first.

A limb is an int64 array or a BIGINT symbol, and may hold any integer; after ``normalise`` every
limb but the first lies in [-2**27, 2**27): digits with a sign, so that what follows the first
digit that is not 0 is always smaller than that digit is. Numbers are aligned at their last limb.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate
from typing import Any

import numpy as np

from ids.games.operands import let, numbers

__all__ = ["LIMB_BITS", "Limbs", "multiply", "normalise", "scale", "subtract", "to_pair"]

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
