"""Rows far ahead of the others: one of them must not move the watermark and make the rest late.

at most max_ahead after the newest row so far ─▶ taken
beyond such a gap, and many ──────────────────▶ taken: the stream has moved on
beyond it, and hardly any ────────────────────▶ a bad row: the others are still before it
beyond it, one row, and no other has come ────▶ waits for the next micro-batch

Files that come to a stream are checked here, too: Spark would read a column that a Parquet file
lacks as NULLs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ids.errors import SourceError
from ids.model import span
from ids.plan import SelectPlan
from ids.sink import Files
from ids.source import ParquetPart, at_once
from ids.spark.expression_sql import Typed, spell
from ids.spark.file_system import path_at
from ids.spark.frame import ORIGIN
from ids.spark.kafka_topic import MALFORMED
from ids.spark.spark_prepare import AHEAD, FAULT, TIME, Ready, measure
from ids.spark.stream_batch import Batch, Counts
from ids.spark.stream_store import Piece

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WAITING = "waiting"
LATE = "ids_late"

_FEW = 1_000  # a gap is crossed when one row in so many has crossed it
_BUCKETS = 2**20
_LEAST, _MOST = -(2**63) + 1, 2**63 - 1
_OURS = (ORIGIN, MALFORMED)
_OWN = "column "  # before the name of a column of the table, where it meets one of ours

Found = TypeVar("Found")
Integers = npt.NDArray[np.int64]


class Cap(NamedTuple):
    """Rows up to this event time are taken; the rest is set aside, or waits if it is one row."""

    limit: int
    waits: bool = False


class Group(NamedTuple):
    """Rows that no gap divides.

    rows         how many there are
    first, last  the event times of the oldest and the newest
    busiest      the most of them in a stretch of max_ahead
    """

    rows: int
    first: int
    last: int
    busiest: int


def cap_of(newest: int | None, near: int, groups: Sequence[Group], max_ahead: int) -> Cap:
    """How far the rows of a micro-batch are believed.

    ``near`` counts those that are not ahead, ``newest`` is the newest of these and of all rows so
    far; ``groups`` are the others, in the order of time. A group is believed, with all before it,
    if it has two rows, and one for every thousand in the busiest stretch before it.
    """
    crowd = near
    for group in groups:
        follows = newest is not None and group.first - newest <= max_ahead
        if follows or (group.rows > 1 and group.rows * _FEW >= crowd):
            newest, near = group.last, near + group.rows
        crowd = max(crowd, group.busiest)
    limit = _LEAST if newest is None else newest
    if near or not groups:
        return Cap(limit)
    # single rows, far apart, and no others: each is believed once another comes after it
    return Cap(groups[-2].last if len(groups) > 1 else limit, waits=True)


def groups_of(rows: Integers, first: Integers, last: Integers, max_ahead: int) -> list[Group]:
    """Stretches of rows, put together where no gap divides them.

    Of each stretch: how many rows it has, and the first and the last of their event times.
    """
    order = np.argsort(first)
    rows, first, last = rows[order], first[order], last[order]
    starts = np.append(0, 1 + np.flatnonzero(first[1:] - last[:-1] > max_ahead))
    ends = np.append(starts[1:], len(rows)) - 1
    busiest = np.maximum.reduceat(rows, starts)
    columns = np.add.reduceat(rows, starts), first[starts], last[ends], busiest
    return [Group(*values) for values in zip(*(c.tolist() for c in columns), strict=True)]


@dataclass(frozen=True, slots=True)
class Ahead:
    """Decides how far ahead of the others the rows of a micro-batch may be.

    name       the event time's
    max_ahead  µs; None: as far as they like
    front      the newest event time that was taken before the batch, µs
    watermark  before the batch, µs
    """

    name: str
    max_ahead: int | None
    front: int | None
    watermark: int | None

    def admit(
        self,
        batch: Batch,
        rows: Ready,
        take: Callable[[Ready], tuple[Counts, int | None, Found]],
    ) -> tuple[Ready, Counts, Found, list[Piece]]:
        """Take the rows that are not too far ahead; the others get a fault, or one of them waits.

        ``take`` also says the newest event time it has taken, or that came before. A row is hardly
        ever ahead, so all are taken first, and looked into only if one may be.
        """
        limit = self._limit()
        if limit > _LEAST:
            every = self._capped(rows, Cap(_MOST))
            counts, last, found = take(every)
            if last is None or last <= limit:
                return every, counts, found, []
        cap = self._settled(rows, limit)
        if limit > _LEAST and last is not None and last <= cap.limit:
            return every, counts, found, []
        capped = self._capped(rows, cap)
        counts, _, found = take(capped)
        if not cap.waits:
            return capped, counts, found, []
        waiting = _keep(batch, rows, cap)
        return capped, replace(counts, waiting=1), found, [waiting]

    def _limit(self) -> int:
        """Rows up to this time are not ahead, whatever comes with them."""
        if self.max_ahead is None:
            return _MOST
        return _LEAST if self.front is None else self.front + self.max_ahead

    def _settled(self, rows: Ready, limit: int) -> Cap:
        """What the rows of the batch say, in one job or two."""
        assert self.max_ahead is not None
        late = "" if self.watermark is None else f" AND {TIME} >= {self.watermark}L"
        sound = rows.data.filter(f"{FAULT} IS NULL{late}")
        near, far = f"{TIME} <= {limit}L", f"{TIME} > {limit}L"
        seen = [f"count_if({near})", f"max(if({near}, {TIME}, NULL))"]
        seen += [f"count_if({far})", f"min(if({far}, {TIME}, NULL))", f"max({TIME})"]
        ((count, near_last, many, first, last),) = sound.agg(*map(F.expr, seen)).collect()
        front = newest(self.front, near_last)
        if not many:
            return cap_of(front, count, [], self.max_ahead)
        if last - first <= self.max_ahead:
            return cap_of(front, count, [Group(many, first, last, many)], self.max_ahead)
        width = max(self.max_ahead, (last - first) // _BUCKETS)
        stretches = sound.filter(far).groupBy(F.expr(f"({TIME} - {first}L) DIV {width}L"))
        table = stretches.agg(F.count("*"), F.min(TIME), F.max(TIME)).toArrow()
        counted, firsts, lasts = (column.to_numpy() for column in table.columns[1:])
        groups = groups_of(counted, firsts, lasts, self.max_ahead)
        return cap_of(front, count, groups, self.max_ahead)

    def _capped(self, rows: Ready, cap: Cap) -> Ready:
        """Rows beyond the cap with a fault; without the one that waits."""
        if cap.waits:
            taken = rows.data.filter(f"NOT {_beyond(cap)}")
            return replace(rows, data=taken.withColumn(AHEAD, F.lit(False)))
        distance = span(self.max_ahead or 0)
        reason = spell(f"event time {self.name!r} more than {distance} ahead of the others")
        fault = F.expr(f"if({_beyond(cap)}, {reason}, {FAULT})")
        marked = {AHEAD: F.expr(_beyond(cap)), FAULT: fault}
        return replace(rows, data=rows.data.withColumns(marked))


def newest(*times: int | None) -> int | None:
    """The newest of some times; None where there is none."""
    return max((time for time in times if time is not None), default=None)


def with_late(plan: SelectPlan, rows: Ready, watermark: int | None, *more: str) -> DataFrame:
    """The columns that are needed of a micro-batch, ``more`` among them, and if a row is LATE."""
    late = "false" if watermark is None else f"({FAULT} IS NULL AND {TIME} < {watermark}L)"
    made = [TIME, FAULT, AHEAD, *more, *rows.keys]
    made += [measure(number) for number, typed in enumerate(rows.measures) if typed]
    own = [rows.columns[name].text for name in plan.columns]
    return rows.data.selectExpr(*own, *made, f"{late} AS {LATE}")


def with_waiting(batch: Batch, columns: Mapping[str, Typed]) -> DataFrame:
    """The rows of a micro-batch, and the one that has waited since the batch before."""
    data, pieces = batch.data, batch.pieces(WAITING)
    if not pieces:
        return data
    # columns may have come or gone since
    places = {_OWN + name: typed.text for name, typed in columns.items()}
    places |= {name: name for name in _OURS if name in data.columns}
    known = {
        held: places[name] for held, name in pieces[0].facts["columns"].items() if name in places
    }
    fields = [T.StructField(held, data.schema[text].dataType) for held, text in known.items()]
    row = batch.store.read(pieces, T.StructType(fields)).toDF(*known.values())
    return data.unionByName(row, allowMissingColumns=True)


def _keep(batch: Batch, rows: Ready, cap: Cap) -> Piece:
    """The row that waits, in the store, its columns under numbers."""
    own = {_OWN + name: typed.text for name, typed in rows.columns.items() if typed.kind}
    own |= {name: name for name in _OURS if name in rows.data.columns}
    held = {f"c{number}": name for number, name in enumerate(own)}
    row = rows.data.filter(_beyond(cap)).selectExpr(*own.values()).toDF(*held)
    return batch.store.write(row, batch.number, WAITING, columns=held)


def _beyond(cap: Cap) -> str:
    return f"({FAULT} IS NULL AND {TIME} > {cap.limit}L)"


def source_columns(data: DataFrame) -> frozenset[str]:
    """What the sources of a DataFrame hold; its other columns are made of these, and in no file."""
    leaves = data._jdf.queryExecution().analyzed().collectLeaves()
    outputs = [leaves.apply(number).output() for number in range(leaves.size())]
    return frozenset(
        output.apply(number).name() for output in outputs for number in range(output.size())
    )


def check_files(session: SparkSession, checkpoint: Files, columns: Collection[str]) -> None:
    """Refuse a micro-batch with a Parquet file that is not whole, or lacks one of ``columns``.

    Reads the footers of the files that the ``checkpoint`` names for the batch at work.
    """

    def schema(place: str) -> ParquetPart:
        return ParquetPart(path_at(place, session))

    for part in at_once(schema, _arrived(checkpoint)):
        for name in columns:
            if name not in part.schema.names:
                raise SourceError(
                    f"{part.path} does not fit the files before it: it lacks column {name!r}; "
                    "write it again"
                )


def _arrived(checkpoint: Files) -> Iterator[str]:
    """The Parquet files of the last batch in the logs of Spark's sources."""
    for source in checkpoint.entries("spark/sources"):
        folder = f"spark/sources/{source.name}"
        logs = [e.name for e in checkpoint.entries(folder) if e.name.split(".")[0].isdigit()]
        newest = max(logs, key=lambda log: int(log.split(".")[0]), default=None)
        if newest is None:
            continue
        lines = checkpoint.read(f"{folder}/{newest}").decode().splitlines()[1:]
        entries = [json.loads(line) for line in lines if line.startswith('{"path"')]
        # every tenth log holds those before it as well
        last = max((entry["batchId"] for entry in entries), default=None)
        for entry in entries:
            place = unquote(entry["path"])
            if entry["batchId"] == last and place.endswith(".parquet"):
                yield place
