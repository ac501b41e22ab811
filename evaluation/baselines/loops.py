"""The loops that IDS has better ones for, compiled, too: the paper's, and the obvious one."""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator"
import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from ids.kernels.priority_sample import mixed

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]


def algorithm1(
    region: Codes, tier: Codes, y: Floats, window: int, predicates: Codes, centre: float
) -> tuple[Floats, ...]:
    """The paper's Algorithm 1, literally, a window that slides by one row over a stream. O(n·K).

    The atom and each matching marginal of {out, in} get the signed triple (1, z, z²) of the centred
    value under compensated summation, and H_N and H⁽²⁾_N are stepped when N changes.

    predicates  int32[K, 2]  column (0 region, 1 tier) and the code it must equal
    returns     N (or m), A and B of the window, the K marginals and the 2^K atoms; the harmonics
    """
    # Columns 0-2 are the sums, 3 and 4 what rounding took from A and B.
    tables = [np.zeros((rows, 5)) for rows in (1, len(predicates), 1 << len(predicates))]
    harmonics = np.zeros(2)
    _slides(region, tier, y, window, predicates, centre, *tables, harmonics)
    return *(table[:, :3] for table in tables), harmonics


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


@njit(cache=True)
def eager(seed, rows, window, size, sequence, priority, passed):
    """Eager domination: a sample's candidates, each deleted once ``size`` newer rows are above it.

    sequence, priority, passed  int64[room], float64[room], int32[room]  written: the candidates
    """
    held = 0
    for i in range(rows):
        new = mixed(seed, i)
        full = 0
        for k in range(np.uint64(held)):  # branchless: this loop is vectorised
            passed[k] += priority[k] < new
            full += (passed[k] >= size) | (sequence[k] <= i - window)
        k = held - 1
        while full > 0:
            if passed[k] >= size or sequence[k] <= i - window:
                full -= 1
                held -= 1
                sequence[k], priority[k] = sequence[held], priority[held]
                passed[k] = passed[held]
            k -= 1
        sequence[held] = i
        priority[held] = new
        passed[held] = 0
        held += 1
    return held
