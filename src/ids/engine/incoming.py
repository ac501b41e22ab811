"""A batch made ready for the engine: columns read, measures evaluated, late rows refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ids.engine.rows import Measure, evaluate_measure
from ids.errors import DataError
from ids.kernels.survey import survey
from ids.model.expression import Expression, columns_of
from ids.model.rendering import render
from ids.model.table import ColumnData, Kind, Table
from ids.source import Source
from ids.source.table import refusal

__all__ = ["Incoming", "Schema", "columns_needed", "read_batch"]

Times = npt.NDArray[np.int64]
Rows = slice | npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Schema:
    """What the engine reads of every batch.

    kinds     the columns, with what they hold
    measures  bound expressions
    order_by  the event-time column, if rows have one
    """

    kinds: Mapping[str, Kind]
    measures: tuple[Expression, ...]
    order_by: str | None


@dataclass(frozen=True, slots=True)
class Incoming:
    """Rows in window order, late ones left out; ``newest`` is the latest event time seen."""

    table: Table
    measures: tuple[Measure, ...]
    times: Times | None
    newest: int | None
    late: int

    def take(self, rows: Rows) -> Incoming:
        """Some of the rows."""
        return Incoming(
            self.table.take(rows),
            tuple(_take(one, rows) for one in self.measures),
            None if self.times is None else self.times[rows],
            self.newest,
            self.late,
        )


def _take(one: Measure, rows: Rows) -> Measure:
    """Some rows of a measure: what the others hold must not shape the scale."""
    values = np.ascontiguousarray(one.values[rows])
    players = None if one.players is None else one.players[rows]
    _, largest, smallest = survey(values)
    return Measure(values, players, float(largest), float(smallest))


def read_batch(
    source: Source, schema: Schema, newest: int | None = None, lateness: int | None = None
) -> Incoming:
    """Read, check and order one batch; nothing of the engine changes.

    A row is late when its time is more than ``lateness`` before the newest time seen until it,
    in this batch or before; None takes every row.
    """
    table = _read(source, schema)
    measures = tuple(evaluate_measure(m, table) for m in schema.measures)
    for expression, one in zip(schema.measures, measures, strict=True):
        bad = survey(one.values)[0]
        if bad >= 0:
            value = "NaN" if np.isnan(one.values[bad]) else "an infinite value"
            raise DataError(
                f"{value} of {render(expression)!r} in {source.where(int(bad))}; "
                "the batch was refused, nothing changed"
            )
    if schema.order_by is None:
        return Incoming(table, measures, None, newest, 0)
    times = _times(source, table, schema.order_by)
    return _ordered(table, measures, times, newest, lateness)


def _read(source: Source, schema: Schema) -> Table:
    for name in schema.kinds:
        if name not in source.schema:
            raise refusal(name, source)
    table = source.read(schema.kinds)
    columns = {name: _of_kind(name, table.columns[name], k) for name, k in schema.kinds.items()}
    return Table(columns, table.rows)


def _of_kind(name: str, column: ColumnData, kind: Kind) -> ColumnData:
    """The column as the stream knows it; one without a single value may be of any kind."""
    if column.kind is kind:
        return column
    if column.valid is None or column.valid.any():
        raise DataError(
            f"column {name!r} holds {column.kind.value} in this batch, "
            f"{kind.value} before; the batch was refused, nothing changed"
        )
    types = {Kind.TEXT: "i4", Kind.BOOLEAN: "?", Kind.TIME: "i8", Kind.NUMBER: "f8"}
    values = np.zeros(len(column), np.dtype(types[kind]))
    words = np.array([""], dtype=object) if kind is Kind.TEXT else None
    return ColumnData(kind, values, column.valid, words)


def _times(source: Source, table: Table, order_by: str) -> Times:
    column = table.columns[order_by]
    if column.kind is Kind.TEXT:
        raise DataError(f"cannot order by text column {order_by!r}; order by a time or a number")
    if column.valid is not None:
        row = int(np.flatnonzero(~column.valid)[0])
        raise DataError(
            f"NULL event time {order_by!r} in {source.where(row)}; "
            "the batch was refused, nothing changed"
        )
    with np.errstate(invalid="ignore"):
        times = column.values.astype(np.int64, copy=False)
    fractions = np.flatnonzero(times.astype(column.values.dtype) != column.values)
    if len(fractions):
        raise DataError(
            f"{column.values[fractions[0]]} of {order_by!r} in {source.where(int(fractions[0]))} "
            "is no whole number; order by a time or a whole number. Nothing changed"
        )
    return times


def _ordered(
    table: Table,
    measures: Sequence[Measure],
    times: Times,
    newest: int | None,
    lateness: int | None,
) -> Incoming:
    if not len(times):
        return Incoming(table, tuple(measures), times, newest, 0)
    start = times[0] if newest is None else newest
    seen = np.maximum.accumulate(np.concatenate([[start], times]))[:-1]
    on_time = np.ones(len(times), np.bool_)
    if lateness is not None:
        on_time = times >= np.maximum(seen, -(2**63) + lateness) - lateness  # never wraps around
    latest = max(int(seen[-1]), int(times[-1]))
    rows: Rows = slice(None)
    if not on_time.all():
        rows = np.flatnonzero(on_time)
    kept = times[rows]
    if len(kept) > 1 and bool(np.any(kept[1:] < kept[:-1])):
        places = np.arange(len(times)) if isinstance(rows, slice) else rows
        rows = places[np.argsort(kept, kind="stable")]
    whole = isinstance(rows, slice)
    taken = tuple(measures) if whole else tuple(_take(m, rows) for m in measures)
    return Incoming(table.take(rows), taken, times[rows], latest, int(np.sum(~on_time)))


def columns_needed(expressions: Sequence[Expression], order_by: str | None) -> list[str]:
    """The columns that the expressions and the order read, each once."""
    names = [name for expression in expressions for name in columns_of(expression)]
    return list(dict.fromkeys([*names, *([order_by] if order_by else [])]))
