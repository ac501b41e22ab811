"""A stand-in for the engine, slow and obvious: every window is recounted from its rows.

It knows what the demo asks: count windows, equality, AND, OR, NOT, and four of the games.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ids.language import parse
from ids.model import (
    And,
    Column,
    Comparison,
    CountWindow,
    Item,
    ItemKind,
    Literal,
    Name,
    Not,
    Or,
    Register,
    Select,
    Statement,
)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Result:
    statement: Statement
    table: pa.Table
    bad_rows: int = 0


def run_script(
    script: str,
    tables: Mapping[str, Any],
    *,
    bad_rows: object = None,
    progress: Callable[[int, int], None] | None = None,
    seed: int = 0,
) -> Iterator[Result]:
    registered: dict[str, Any] = {}
    for statement in parse(script):
        if isinstance(statement, Register):
            registered[statement.name] = statement.condition
        if isinstance(statement, Select):
            yield Result(statement, select(statement, tables[statement.table], registered))


def select(query: Select, data: Mapping[str, Any], registered: Mapping[str, Any]) -> pa.Table:
    frame = query.window.frame
    assert isinstance(frame, CountWindow)
    rows = len(data["latency"])
    ends = range(frame.slide, rows + 1, frame.slide)
    windows = [slice(max(0, end - frame.size), end) for end in ends]
    columns: dict[str, Any] = {
        "emit_at": [data["event_time"][window][-1] for window in windows],
        "n": [window.stop - window.start for window in windows],
    }
    for item in query.items:
        name = item.alias or ""
        if item.kind is ItemKind.AGGREGATE:
            latency = data["latency"]
            worth = np.mean if item.aggregate.function == "AVG" else np.var
            columns[name] = [worth(latency[window]) for window in windows]
            continue
        parts = [split(item, data, registered, window) for window in windows]
        share, lift = np.array(parts).T
        values = share + lift
        columns[name] = np.diff(values, prepend=0) if item.kind is ItemKind.DELTA else values
        if item.parts:
            columns |= {f"{name}_share": share, f"{name}_lift": lift}
    return pa.table(columns)


def split(
    item: Item, data: Mapping[str, Any], registered: Mapping[str, Any], window: slice
) -> tuple[float, float]:
    """Share and lift of one window, by the closed forms."""
    inside = {name: column[window] for name, column in data.items()}
    held = holds(item.predicate, inside, registered)
    y = np.asarray(inside["latency"])
    n, m = len(y), int(held.sum())
    t = np.arange(1, n + 1)
    if item.aggregate.function == "COUNT":
        return float(m), 0.0
    if item.aggregate.function == "AVG":
        factor = float((1 / t[:-1]).sum()) / (n - 1)
        return m / n * y.mean(), factor * float((y[held] - y.mean()).sum())
    squares = (y - y.mean()) ** 2
    factor = n * float((1 / t).sum() - (1 / t**2).sum()) / ((n - 1) * (n - 2)) - 1 / (n * (n - 2))
    return m / n * squares.mean(), factor * float((squares[held] - squares.mean()).sum())


def holds(node: Any, data: Mapping[str, Any], registered: Mapping[str, Any]) -> Any:
    match node:
        case Name(name) if name in registered:
            return holds(registered[name], data, registered)
        case Comparison("=", Name(name) | Column(name), Literal(value)):
            return np.asarray(data[name] == value)
        case Not(operand):
            return ~holds(operand, data, registered)
        case And(operands):
            return np.all([holds(o, data, registered) for o in operands], axis=0)
        case Or(operands):
            return np.any([holds(o, data, registered) for o in operands], axis=0)
    raise AssertionError(node)
