"""Exact sums of any engine, and the closed forms on them: numbers in NumPy, text for Spark SQL."""

from ids.exact.parts import MAX_LEVELS, Parts, bits_of, outside, rest, split, split_integer
from ids.exact.sums import Item, Sums, Window, attribution, item_of, window_of, worth
from ids.exact.symbols import Program, Symbol, let

__all__ = [
    "MAX_LEVELS",
    "Item",
    "Parts",
    "Program",
    "Sums",
    "Symbol",
    "Window",
    "attribution",
    "bits_of",
    "item_of",
    "let",
    "outside",
    "rest",
    "split",
    "split_integer",
    "window_of",
    "worth",
]
