"""A batch made ready for the engine, and which rows leave because of it.

Reading: columns read and checked, measures evaluated, late rows left out, the rest put in order.

Deletes: which rows an upstream takes back, and a refusal where they were never there. A row is what
its columns say. One that is deleted is a row inside, the oldest of several alike, or else one that
was inserted by the same call: of a changelog's batch the net change counts.

Expiry: which of the oldest rows are outside a window now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ids.errors import DataError, StateError
from ids.kernels import survey
from ids.model import (
    ColumnData,
    Expression,
    Kind,
    Table,
    columns_of,
    nulls,
    render,
)
from ids.predicates import Measure, evaluate_measure
from ids.source import Source, refusal
from ids.state import Retained

if TYPE_CHECKING:
    from ids.engine.core import Core

Times = npt.NDArray[np.int64]
Places = npt.NDArray[np.int64]
Rows = slice | npt.NDArray[np.intp]

_SHOWN = 6  # columns of a row that an error names it by
_NONE = np.zeros(0, np.int64)


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

    def evaluate(self, table: Table) -> tuple[Measure, ...]:
        """The measures of some rows."""
        return tuple(evaluate_measure(expression, table) for expression in self.measures)


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows in window order, late ones left out; ``newest`` is the latest event time seen."""

    table: Table
    measures: tuple[Measure, ...]
    times: Times | None
    newest: int | None
    late: int

    def take(self, rows: Rows) -> Batch:
        """Some of the rows."""
        return Batch(
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
) -> Batch:
    """Read, check and order one batch; nothing of the engine changes.

    A row is late when its time is more than ``lateness`` before the newest time seen until it,
    in this batch or before; None takes every row.
    """
    table = _read(source, schema)
    measures = schema.evaluate(table)
    for expression, one in zip(schema.measures, measures, strict=True):
        bad = survey(one.values)[0]
        if bad >= 0:
            value = "NaN" if np.isnan(one.values[bad]) else "an infinite value"
            raise DataError(
                f"{value} of {render(expression)!r} in {source.where(int(bad))}; "
                "the batch was refused, nothing changed"
            )
    if schema.order_by is None:
        return Batch(table, measures, None, newest, 0)
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
    return nulls(kind, len(column), whole=False)


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
) -> Batch:
    if not len(times):
        return Batch(table, tuple(measures), times, newest, 0)
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
    return Batch(table.take(rows), taken, times[rows], latest, int(np.sum(~on_time)))


def columns_needed(expressions: Sequence[Expression], order_by: str | None) -> list[str]:
    """The columns that the expressions and the order read, each once."""
    names = [name for expression in expressions for name in columns_of(expression)]
    return list(dict.fromkeys([*names, *([order_by] if order_by else [])]))


class Deleted(NamedTuple):
    """What becomes of the rows that an upstream deletes.

    going   those that were inside
    places  where these stand; None where no row is kept
    undone  which rows of the same call they take back instead
    """

    going: Batch
    places: Places | None
    undone: Places


def find_deleted(
    core: Core, going: Batch, coming: Batch | None, where: Callable[[int], str]
) -> Deleted:
    """Find each row, inside or in the same call; a clear error where there is none.

    ``where`` names a row of the deletes. Nothing changes.
    """
    if not core.keeps_rows:
        return _trusted(core, going, coming)
    if not core.has_raw:
        raise StateError(
            "this engine does not retain its rows, so it cannot tell which one a delete means; "
            "make it with retain=True"
        )
    places = core.retained.locate(going.table)
    missing = np.flatnonzero(places < 0)
    undone = _NONE
    if len(missing):
        undone = _find_among(core, going.table.take(missing), coming)
        if (undone < 0).any():
            row = int(missing[np.flatnonzero(undone < 0)[0]])
            raise StateError(
                f"deleted {where(row)} ({_shown(going.table, row)}) is not inside the window; "
                "the batch was refused, nothing changed"
            )
    inside = places >= 0
    return Deleted(going.take(np.flatnonzero(inside)), places[inside], undone)


def _find_among(core: Core, table: Table, coming: Batch | None) -> Places:
    """Which rows that the same call inserts equal these."""
    if coming is None or not coming.table.rows:
        return np.full(table.rows, -1, np.int64)
    scratch = Retained(core.schema.kinds)
    scratch.insert(scratch.block(coming.table, np.zeros(coming.table.rows, np.uint32)))
    return scratch.locate(table)


def _trusted(core: Core, going: Batch, coming: Batch | None) -> Deleted:
    """Without rows to look at, deletes that leave possible sums are taken for rows inside."""
    if core.can_lose(going):
        return Deleted(going, None, _NONE)
    undone = _find_among(core, going.table, coming)
    rest = going.take(np.flatnonzero(undone < 0))
    if rest.table.rows == going.table.rows or not core.can_lose(rest):
        raise StateError(
            "the deletes hold a row that is not inside the window (which one, this engine cannot "
            "say: it keeps no rows); the batch was refused, nothing changed"
        )
    return Deleted(rest, None, undone[undone >= 0])


def _shown(table: Table, row: int) -> str:
    """A row by its columns, or the first of them."""
    names = list(table.columns)
    shown = [f"{name} = {_value(table.columns[name], row)}" for name in names[:_SHOWN]]
    return ", ".join([*shown, "…"] if len(names) > _SHOWN else shown)


def _value(column: ColumnData, row: int) -> str:
    if column.valid is not None and not column.valid[row]:
        return "NULL"
    value = column.values[row].item()
    if column.dictionary is not None:
        return repr(column.dictionary[value])
    return str(np.datetime64(value, "us")) if column.kind is Kind.TIME else str(value)
