"""Which columns of a table are numbers, and are set flush right."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["numeric"]

# a number, perhaps a second one (an interval, a range, a power), and at most two short words: units
_NUMBER = re.compile(
    r"[≈~<>≤≥±+−-]?\s*\d[\d.,\s  ]*(?:[×x·]?\s*10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?(?:e[+-]?\d+)?"
    r"(?:\s*%?\s*(?:±|–|…|\+|to|at|/|of)\s*[−-]?\d[\d.,]*(?:×10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?)?"
    r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]*(?:\s?[^\s\d]{1,9}){0,2}"
)
_NOTHING = {"", "–", "—", "-"}


def numeric(rows: Sequence[Sequence[str]], column: int) -> bool:
    """Whether every filled cell of a column is a number, with its unit.

    >>> numeric([["4.3×10⁵", "IDS"], ["–", "1 of them, it is said"]], 0)
    True
    """
    cells = [row[column].strip() for row in rows if column < len(row)]
    filled = [cell for cell in cells if cell not in _NOTHING]
    return bool(filled) and all(_NUMBER.fullmatch(cell) for cell in filled)
