"""Which predicates hold on a row, packed into words of bits for the way to the workers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["WORD_BITS", "atoms_of", "truth_words", "word", "words"]

WORD_BITS = 62


def word(number: int) -> str:
    """The column of predicates 62·number and on: a bit each, set where it holds."""
    return f"ids_w{number}"


def words(predicates: int) -> list[str]:
    """The columns of so many predicates."""
    return [word(number) for number in range(-(-predicates // WORD_BITS))]


def truth_words(predicates: list[str]) -> list[str]:
    """The words of some predicates, given as SQL, as named SQL."""
    found = []
    for number, name in enumerate(words(len(predicates))):
        own = predicates[number * WORD_BITS : (number + 1) * WORD_BITS]
        bits = " + ".join(f"if({text}, {1 << bit}L, 0L)" for bit, text in enumerate(own))
        found.append(f"{bits} AS {name}")
    return found


def atoms_of(
    rows: pa.Table, predicates: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_]]:
    """Each row's atom, and which predicates hold on it: a combination of words is an atom."""
    codes = np.zeros(rows.num_rows, np.int64)
    held = np.zeros((1, 0), np.bool_)
    for number, name in enumerate(words(predicates)):
        met, own = np.unique(rows.column(name).to_numpy(), return_inverse=True)
        joint, codes = np.unique(codes * len(met) + own, return_inverse=True)
        before, mine = np.divmod(joint, len(met))
        bits = np.arange(min(WORD_BITS, predicates - number * WORD_BITS))
        fresh = (met[mine][:, None] >> bits & 1).astype(np.bool_)
        held = np.concatenate([held[before], fresh], axis=1)
    return codes.astype(np.uint32), held
