"""Cuts: the points between which no comparison with the given constants changes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from ids.model.expression import Comparison, Expression, In, Literal, Value, children
from ids.predicates.instants import microseconds_of
from ids.predicates.vector import exact_number

__all__ = ["cuts_of", "representatives"]

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


def cuts_of(conditions: Iterable[Expression], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Ascending cuts in the value's own type; interval k is [cut k-1, cut k).

    Each constant c gives the smallest value at or above c and the smallest above c, so that every
    comparison with c is constant between cuts, exactly, for int64 and float64 alike.
    """
    constants = [_number(value) for condition in conditions for value in _constants(condition)]
    if dtype == np.float64:
        return np.unique(np.array([x for c in constants for x in _doubles(c)], np.float64))
    whole = {x for c in constants for x in (math.ceil(c), math.floor(c) + 1)}
    return np.array(sorted(x for x in whole if _SMALLEST < x <= _LARGEST), np.int64)


def representatives(cuts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """One value of each interval: the cut it begins with, and the lowest of all."""
    lowest = -np.inf if cuts.dtype == np.float64 else _SMALLEST
    return np.concatenate([np.array([lowest], cuts.dtype), cuts])


def _constants(condition: Expression) -> Iterator[Value]:
    stack = [condition]
    while stack:
        node = stack.pop()
        match node:
            case Comparison(_, _, Literal(value)):
                yield value
            case In(_, options):
                yield from (option.value for option in options)
            case _:
                stack.extend(children(node))


def _number(value: Value) -> int | float:
    if value is None:
        return 0  # a comparison with NULL is NULL everywhere: any cut will do
    if isinstance(value, datetime):
        return microseconds_of(value)
    assert isinstance(value, int | float)
    return exact_number(value)


def _doubles(constant: int | float) -> tuple[float, float]:
    near = float(constant)
    after = math.nextafter(near, math.inf)
    return (near if near >= constant else after, near if near > constant else after)
