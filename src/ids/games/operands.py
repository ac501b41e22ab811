"""What a closed form computes with: NumPy arrays, or anything that answers like one.

A form is written once. On arrays it yields numbers; on symbols (``ids.exact``) it yields the text
that another engine evaluates, step by step the same. These are the few spots where NumPy does not
ask its operand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["let", "look_up", "numbers"]

Floats = npt.NDArray[np.float64]


def let(x: Any) -> Any:
    """Name what is used more than once: text would be spelled out at every use. Arrays as is."""
    return x.let() if hasattr(x, "let") else x


def numbers(x: Any, dtype: type[np.generic]) -> Any:
    """The operand as numbers of that type."""
    return x.astype(dtype) if hasattr(x, "let") else np.asarray(x, dtype=dtype)


def look_up(table: Floats, index: Any) -> Any:
    """``table[index]``, elementwise."""
    return index.look_up(table) if hasattr(index, "let") else table[index]
