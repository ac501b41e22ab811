"""Why a column is text that seems meant for times or numbers: the value that made it so."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ids.model.rendering import quoted
from ids.model.table import ColumnData, Kind, Misread
from ids.source.conversion import BLANKS, SPELLINGS

__all__ = ["misread"]

# What a person takes for a date, in whatever order, with a time after it or without.
_MONTH = r"[A-Za-z]{3,9}\.?"
_TIME = r"([T ,]+[0-9]{1,2}[:.][0-9]{2}\b.*)?$"
_DATES = (
    rf"^[0-9]{{1,4}}[-/. ]([0-9]{{1,2}}|{_MONTH})[-/. ],? ?[0-9]{{1,4}}{_TIME}"
    rf"|^({_MONTH},? )?([0-9]{{1,2}} {_MONTH},?|{_MONTH} [0-9]{{1,2}},?) [0-9]{{4}}{_TIME}"
    r"|^[0-9]{8}T[0-9]{4,6}"
)
_ASIDE = "set such rows aside with bad_rows='DIR'"
_SHOWN = 40

Mask = npt.NDArray[np.bool_]
Where = Callable[[int], str]


def misread(name: str, column: ColumnData, where: Where, *, in_csv: bool = False) -> Misread | None:
    """What most values of a text column seem to be, and the way out; None if they are just text.

    ``where`` names a row; ``in_csv`` says that a text can be declared to mean NULL.
    """
    if column.dictionary is None:
        return None
    texts = pc.ascii_trim(pa.array(column.dictionary, pa.string()), BLANKS)
    words = ~_like(texts, "^$")
    local, zoned, number = (_like(texts, SPELLINGS[n]) for n in ("LOCAL", "ZONED", "DOUBLE"))
    if _most(words & (local | zoned | _like(texts, _DATES)), words):
        return Misread(Kind.TIME, _for_times(name, column, where, local, zoned, words))
    if _most(words & number, words):
        return Misread(Kind.NUMBER, _for_numbers(name, column, where, words & ~number, in_csv))
    return None


def _for_times(
    name: str, column: ColumnData, where: Where, local: Mask, zoned: Mask, words: Mask
) -> str:
    declare = f"declare schema='{quoted(name)} TIMESTAMP'"
    odd = _first(column, words & ~local & ~zoned)
    if odd is not None:
        fact = f"{where(odd[0])} holds '{odd[1]}', which is not a timestamp"
        return f"{fact}; write it as 2024-01-31 12:00:00, or {declare} and {_ASIDE}"
    few, has = (local, "no") if local.sum() <= zoned.sum() else (zoned, "a")
    odd = _first(column, few)
    if odd is None:
        return declare
    return f"{where(odd[0])} holds '{odd[1]}', which has {has} zone, unlike the others; {declare}"


def _for_numbers(name: str, column: ColumnData, where: Where, odd: Mask, in_csv: bool) -> str:
    declare = f"declare schema='{quoted(name)} DOUBLE'"
    found = _first(column, odd)
    if found is None:
        return declare
    fact = f"{where(found[0])} holds '{found[1]}', which is not a number"
    null = f"read it as NULL with null='{found[1]}', or " if in_csv else ""
    return f"{fact}; {null}{declare} and {_ASIDE}"


def _first(column: ColumnData, odd: Mask) -> tuple[int, str] | None:
    """The first row with one of these words, and the word."""
    rows = odd[column.values]
    if column.valid is not None:
        rows &= column.valid
    if not rows.any():
        return None
    row = int(rows.argmax())
    assert column.dictionary is not None
    text = str(column.dictionary[column.values[row]])
    return row, text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _like(texts: pa.Array, pattern: str) -> Mask:
    found: Mask = pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)
    return found


def _most(some: Mask, words: Mask) -> bool:
    return bool(some.any()) and 2 * int(some.sum()) >= int(words.sum())
