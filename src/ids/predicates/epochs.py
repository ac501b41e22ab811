"""Numbers since 1970 as instants, rounded to the nearest microsecond exactly.

One formula for NumPy and for SQL, as the closed forms have it: on arrays it computes, on symbols
it writes text.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ids.games.operands import let, numbers

__all__ = ["micros_of"]

_SPLITTER = 134217729.0  # 2**27 + 1


def micros_of(x: Any, units: int) -> Any:
    """Doubles that count ``units`` a second, as whole microseconds; a tie goes to the even one.

    They must be of the years 1 to 9999. A double's fraction times 10**6 need not be a
    double: it is taken as two parts that are (Veltkamp), and rounded once.
    """
    factor = 1_000_000 // units
    if factor == 1:
        return numbers(np.rint(x), np.int64)
    whole = let(np.rint(x))
    part = let(x - whole)
    wide = let(part * _SPLITTER)
    high = let(wide - (wide - part))
    product, more = let(high * float(factor)), let((part - high) * float(factor))
    near = let(np.rint(product))
    rest = let(product - near)
    step = np.where(more > 0.5 - rest, 1, np.where(more < -0.5 - rest, -1, 0))
    return numbers(whole, np.int64) * factor + numbers(near, np.int64) + step
