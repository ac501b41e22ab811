"""Power sums about any whole number, as plain integers: what a summary's words add up to.

A summary holds Σ q and Σ q² about 0 and the higher powers about the scale's centre. Sums that are
multiplied by a fraction and rounded must be taken about the mean first: half a row too many at
y = 10**9 is little as a count, but 5·10**8 as a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np
import numpy.typing as npt

from ids.model.scale import DIGIT_BITS, Scale
from ids.state.scaling import decode, encode

__all__ = ["mean_of", "power_sums", "summary_of"]

Words = npt.NDArray[np.int64]


def mean_of(summary: Words, scale: Scale) -> int:
    """The mean in grid units, rounded down; 0 where there is none."""
    count, sums = decode(summary, scale)
    return sums[0] // count if count and sums else 0


def power_sums(summary: Words, scale: Scale, centre: int) -> list[int]:
    """Σ (q - centre)**d for d = 0 … degree, in grid units."""
    count, sums = decode(summary, scale)
    own = _centre(scale)
    about_own = [*_moved([count, *sums[:2]], own), *sums[2:]]
    return _moved(about_own, centre - own)


def summary_of(sums: Sequence[int], scale: Scale, centre: int) -> Words:
    """The summary whose ``power_sums`` about the centre these are."""
    own = _centre(scale)
    about_own = _moved(sums, own - centre)
    return encode(sums[0], [*_moved(about_own[:3], -own)[1:], *about_own[3:]], scale)


def _moved(sums: Sequence[int], by: int) -> list[int]:
    """Σ (x - by)**d from Σ x**d."""
    return [
        sum(comb(d, i) * (-by) ** (d - i) * sums[i] for i in range(d + 1)) for d in range(len(sums))
    ]


def _centre(scale: Scale) -> int:
    """The scale's centre in grid units."""
    whole = 0
    for digit in scale.centre:
        whole = (whole << DIGIT_BITS) + digit
    return whole
