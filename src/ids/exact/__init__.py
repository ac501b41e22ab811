"""Exact sums and closed forms, computed by NumPy or generated as Spark SQL text."""

from ids.exact.bigints import (
    Powers,
    big_attribution,
    big_worth,
    from_limbs,
    integers,
    sum_powers,
    unit_of,
)
from ids.exact.exact_sums import (
    FEW_LEVELS,
    LIMB_BITS,
    Item,
    Parts,
    Sums,
    Window,
    attribution,
    item_of,
    split,
    split_integer,
    window_of,
    worth,
)
from ids.exact.sql_operands import Program, Symbol

__all__ = [
    "FEW_LEVELS",
    "LIMB_BITS",
    "Item",
    "Parts",
    "Powers",
    "Program",
    "Sums",
    "Symbol",
    "Window",
    "attribution",
    "big_attribution",
    "big_worth",
    "from_limbs",
    "integers",
    "item_of",
    "split",
    "split_integer",
    "sum_powers",
    "unit_of",
    "window_of",
    "worth",
]
