"""The slide loop on 28-bit parts, as Spark sums them, against today's 35-bit digits, in turns.

Not a step of a report: ``python -m evaluation.beyond.slide_parts`` prints ns a row, and the ratio
to today's loop. Both leave the same exact sums, which is checked. See docs/why.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from ids.exact import LIMB_BITS, Parts, split
from ids.kernels.slide import accumulate
from ids.model import DIGIT_BITS, Scale
from ids.state import cut_column

ROWS, WINDOW, ATOMS, TURNS = 1_000_000, 100_000, 6, 9
_MASK = 2**LIMB_BITS - 1


@njit(inline="always")
def _add_digits(table, atom, digits, layout, sign):
    accumulate(table, atom, digits, digits, digits, layout, sign)


@njit(inline="always")
def _add_parts(table, atom, parts, layout, sign):
    """Σ of a value's parts, and of its square's: products of one weight together, then carries."""
    levels = len(layout[0])
    table[atom, 0] += sign
    for k in range(levels):
        table[atom, 1 + k] += sign * parts[k]
    if len(layout[1]) > 0:
        carry = np.int64(0)
        for weight in range(2 * levels - 2, -1, -1):
            total = carry
            for i in range(levels):
                j = weight - i
                if i <= j and j < levels:
                    total += parts[i] * parts[j] * (1 if i == j else 2)
            table[atom, 2 + levels + weight] += sign * (total & _MASK)
            carry = total >> LIMB_BITS
        table[atom, 1 + levels] += sign * carry


@njit(inline="always")
def _add_stored(table, atom, parts, layout, sign):
    """The same where the parts of the square are stored with each row."""
    table[atom, 0] += sign
    for k in range(len(layout[0]) + len(layout[1])):
        table[atom, 1 + k] += sign * parts[k]


def _loop(add: Any) -> Any:
    @njit(nogil=True)
    def slide(table, atom, rows, step, layout):
        for i in range(np.uint64(WINDOW)):
            add(table, np.uint64(atom[i]), rows[i], layout, 1)
        for gone in range(0, ROWS, step):
            for i in range(np.uint64(gone), np.uint64(gone + step)):
                add(table, np.uint64(atom[i]), rows[i], layout, -1)
            for i in range(np.uint64(gone + WINDOW), np.uint64(gone + WINDOW + step)):
                add(table, np.uint64(atom[i]), rows[i], layout, 1)

    return slide


def _sums(table: npt.NDArray[np.int64], parts: Parts) -> list[list[int]]:
    """Σ y and Σ y² of each atom in units of the last part (squared): whole numbers."""
    bounds = (1, 1 + parts.levels), (1 + parts.levels, 1 + parts.levels + parts.squares)
    return [
        [sum(int(x) << LIMB_BITS * k for k, x in enumerate(row[a:b][::-1])) for a, b in bounds]
        for row in table
    ]


def main() -> None:
    """Print a line for each number of parts, degree and step."""
    rng = np.random.default_rng(7)
    drawn = rng.lognormal(4.0, 0.5, ROWS + WINDOW)
    atom = rng.integers(0, ATOMS, ROWS + WINDOW).astype(np.uint32)
    loops = {name: _loop(add) for name, add in
             (("digits", _add_digits), ("parts", _add_parts), ("stored", _add_stored))}  # fmt: skip
    for rounded, degree, step in product((True, False), (1, 2), (1, 100)):
        values = np.rint(drawn * 2.0**20) / 2.0**20 if rounded else drawn
        smallest = 2.0**32 if rounded else values.min()  # one whose last bit is the last of all
        parts = Parts.fit(values.max(), smallest, degree)
        scale = Scale(parts.exponent, 2, degree, (0, 0))
        levels, squares = split(values, parts)
        rows = {"digits": (cut_column(values, scale), scale.layout, scale.words)}
        layout: Any = (0,) * parts.levels, (0,) * parts.squares
        words = 1 + parts.levels + parts.squares
        rows["parts"] = np.ascontiguousarray(np.transpose(levels)), layout, words
        rows["stored"] = np.ascontiguousarray(np.transpose([*levels, *squares])), layout, words
        took: dict[str, list[float]] = {name: [] for name in loops}
        for turn in range(TURNS + 1):  # the first compiles
            tables = {}
            for name in loops if turn % 2 else reversed(loops):
                given, shape, width = rows[name]
                tables[name] = np.zeros((ATOMS, width), np.int64)
                begun = perf_counter()
                loops[name](tables[name], atom, given, step, shape)
                took[name].append((perf_counter() - begun) * 1e9 / (ROWS + WINDOW))
        for name in ("parts", "stored"):
            for row, own in zip(tables["digits"], _sums(tables[name], parts), strict=True):
                for d, (ours, other) in enumerate(zip(scale.decode(row)[1], own, strict=False), 1):
                    bits = 2 * DIGIT_BITS, LIMB_BITS * parts.levels
                    assert ours << d * bits[1] == other << d * bits[0], name
        best = {name: min(times[1:]) for name, times in took.items()}
        ratios = {name: f"{ns:.2f} ns (×{ns / best['digits']:.2f})" for name, ns in best.items()}
        print(f"{parts.levels} parts, degree {degree}, step {step}: {ratios}")


if __name__ == "__main__":
    main()
