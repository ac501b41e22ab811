"""Schemas that predicates divide finely or coarsely: K conditions over columns made to provoke."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["SCHEMAS", "Schema", "Stream", "signatures"]

Truths = npt.NDArray[np.bool_]
_DIMENSIONS = 4
_SPARE = 6  # categories that no predicate names


@dataclass(frozen=True)
class Stream:
    """Rows, conditions over them by name, and what each condition is on each row: bool[rows, K].

    The truths are worked out here from the drawn numbers, not by the engine.
    """

    table: pa.Table
    conditions: dict[str, str]
    truths: Truths


@dataclass(frozen=True)
class Schema:
    """A way to make K predicates; ``bound`` says how many atoms there can be."""

    key: str
    label: str
    bound: Callable[[int], float]
    make: Callable[[np.random.Generator, int, int], Stream]


def signatures(truths: Truths) -> npt.NDArray[np.uint32]:
    """Each row's atom, numbered in no particular order: equal rows of truths, equal numbers."""
    packed = np.ascontiguousarray(np.packbits(truths, axis=1))
    whole = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    return np.unique(whole, return_inverse=True)[1].ravel().astype(np.uint32)


def _exclusive(rng: np.random.Generator, rows: int, predicates: int) -> Stream:
    """Categories of one column: at most one holds."""
    drawn = rng.integers(0, predicates + _SPARE, rows)
    conditions = [f"a = 'c{k}'" for k in range(predicates)]
    return _stream(rng, {"a": _words(drawn)}, conditions, drawn[:, None] == np.arange(predicates))


def _crossed(rng: np.random.Generator, rows: int, predicates: int) -> Stream:
    """Categories of four columns: one of each may hold, in any combination."""
    each = predicates // _DIMENSIONS
    drawn = [rng.integers(0, each + 1, rows) for _ in range(_DIMENSIONS)]
    conditions = [f"d{n} = 'c{k}'" for n in range(_DIMENSIONS) for k in range(each)]
    truths = np.concatenate([one[:, None] == np.arange(each) for one in drawn], axis=1)
    return _stream(rng, {f"d{n}": _words(one) for n, one in enumerate(drawn)}, conditions, truths)


def _thresholds(rng: np.random.Generator, rows: int, predicates: int) -> Stream:
    """Ranges of one number, each within the one before: x > 0, x > 1, …"""
    x = (predicates + 1) * rng.random(rows) - 1
    conditions = [f"x > {k}" for k in range(predicates)]
    return _stream(rng, {"x": pa.array(x)}, conditions, x[:, None] > np.arange(predicates))


def _nested(rng: np.random.Generator, rows: int, predicates: int) -> Stream:
    """A hierarchy, halved at every level: node k stands over the nodes 2k + 1 and 2k + 2."""
    levels = predicates.bit_length()
    x = rng.integers(0, 2**levels, rows)
    conditions, truths = [], np.empty((rows, predicates), np.bool_)
    for k in range(predicates):
        level = (k + 1).bit_length() - 1
        width = 2 ** (levels - level)
        low = (k + 1 - 2**level) * width
        conditions.append(f"x BETWEEN {low} AND {low + width - 1}")
        truths[:, k] = (x >= low) & (x < low + width)
    return _stream(rng, {"x": pa.array(x)}, conditions, truths)


def _independent(rng: np.random.Generator, rows: int, predicates: int) -> Stream:
    """Booleans that know nothing of each other: every combination is as likely."""
    truths = rng.integers(0, 2, (rows, predicates), dtype=np.int8).astype(np.bool_)
    columns = {f"b{k}": pa.array(truths[:, k]) for k in range(predicates)}
    return _stream(rng, columns, [f"b{k}" for k in range(predicates)], truths)


def _stream(
    rng: np.random.Generator, columns: dict[str, pa.Array], conditions: list[str], truths: Truths
) -> Stream:
    y = np.rint(rng.lognormal(np.log(40.0), 0.5, len(truths)) * 1e6) / 1e6
    named = {f"p{k}": condition for k, condition in enumerate(conditions)}
    return Stream(pa.table({**columns, "y": y}), named, truths)


def _words(drawn: npt.NDArray[np.int64]) -> pa.DictionaryArray:
    words = [f"c{k}" for k in range(int(drawn.max()) + 1)]
    return pa.DictionaryArray.from_arrays(pa.array(drawn.astype(np.int32)), pa.array(words))


SCHEMAS = {
    schema.key: schema
    for schema in (
        Schema("exclusive", "exclusive categories", lambda k: k + 1.0, _exclusive),
        Schema("thresholds", "overlapping ranges", lambda k: k + 1.0, _thresholds),
        Schema("nested", "a hierarchy", lambda k: k + 1.0, _nested),
        Schema(
            "crossed",
            "categories of four columns",
            lambda k: (k // _DIMENSIONS + 1.0) ** _DIMENSIONS,
            _crossed,
        ),
        Schema("independent", "independent Booleans", lambda k: 2.0**k, _independent),
    )
}
