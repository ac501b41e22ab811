"""The paper's Algorithm 1, literally: globals, signature, atom, marginals, harmonic numbers.

Each tuple of the signed multiset {out, in} is tested against every predicate, its atom and each
matching marginal get the signed triple (1, z, z²) of its centred value under compensated
summation, and H_N and H⁽²⁾_N are stepped when N changes. No fastmath: it would undo Kahan's sums.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator"
from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]


class State(NamedTuple):
    """What is left after the last slide; each row of a table is N (or m), A and B, centred."""

    window: Floats  # float64[1, 3]
    marginals: Floats  # float64[K, 3]
    atoms: Floats  # float64[2^K, 3], by signature
    harmonics: Floats  # float64[2]: H_N and H⁽²⁾_N


def slide(
    region: Codes, tier: Codes, y: Floats, window: int, predicates: Codes, centre: float
) -> State:
    """Slide a window by one row over the whole stream. O(n·K).

    predicates  int32[K, 2]  column (0 region, 1 tier) and the code it must equal
    """
    # Columns 0-2 are the sums, 3 and 4 what rounding took from A and B.
    tables = [np.zeros((rows, 5)) for rows in (1, len(predicates), 1 << len(predicates))]
    harmonics = np.zeros(2)
    _slides(region, tier, y, window, predicates, centre, *tables, harmonics)
    whole, marginals, atoms = (table[:, :3] for table in tables)
    return State(whole, marginals, atoms, harmonics)


# Unsigned indices spare the loop Numba's test for negative ones, locals a second load: 11 % faster.


@njit(inline="always")
def _add(table, row, sign, z):
    table[row, 0] += sign
    term = sign * z - table[row, 3]
    total = table[row, 1] + term
    table[row, 3] = (total - table[row, 1]) - term
    table[row, 1] = total
    term = sign * (z * z) - table[row, 4]
    total = table[row, 2] + term
    table[row, 4] = (total - table[row, 2]) - term
    table[row, 2] = total


@njit(cache=True)
def _slides(region, tier, y, window, predicates, centre, whole, marginals, atoms, harmonics):
    for newest in range(len(y)):
        before = whole[0, 0]
        for sign in (-1.0, 1.0):
            at = newest if sign > 0.0 else newest - window
            if at < 0:
                continue
            x = uint64(at)
            z, in_region, in_tier = y[x] - centre, region[x], tier[x]
            _add(whole, uint64(0), sign, z)
            signature = uint64(0)
            for k in range(uint64(len(predicates))):
                value = in_region if predicates[k, 0] == 0 else in_tier
                if value == predicates[k, 1]:
                    signature |= uint64(1) << k
                    _add(marginals, k, sign, z)
            _add(atoms, signature, sign, z)
        N = whole[0, 0]
        if before != N:
            harmonics[0] += 1.0 / N
            harmonics[1] += 1.0 / (N * N)
