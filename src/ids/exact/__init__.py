"""Exact sums of any engine, and the closed forms on them: numbers in NumPy, text for Spark SQL."""

from ids.exact.bigints import (
    Powers,
    big_attribution,
    big_worth,
    from_limbs,
    integers,
    sum_powers,
    unit_of,
)
from ids.exact.limbs import LIMB_BITS
from ids.exact.parts import FEW_LEVELS, Parts, bits_of, split, split_integer
from ids.exact.sums import Item, Sums, Window, attribution, item_of, window_of, worth
from ids.exact.symbols import Program, Symbol, let

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
    "bits_of",
    "from_limbs",
    "integers",
    "item_of",
    "let",
    "split",
    "split_integer",
    "sum_powers",
    "unit_of",
    "window_of",
    "worth",
]
