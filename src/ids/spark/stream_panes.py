"""Sum the rows of a stream by pane, store the sums, and compute the emits of time windows.

A pane contains the rows of one slide. Each batch writes the sums of its rows, by key and pane, to a
piece (a directory of Parquet files). For exact sums, values are split into 28-bit parts
(``ids.exact.Parts``). The range of a stream's values is not known in advance, so when a value
exceeds the range seen so far, parts are added above or below the existing ones. Existing parts keep
their positions, and the new parts of older pieces are read as 0.

``PaneWindows`` computes emits from the sums of some keys, in a Spark task or in the driver. It does
in NumPy what ``ids.spark.time_windows`` does in the JVM:

    window at the start    +W
    panes that enter          +1   +3
    panes that expire                   -1
    windows                ────────────────   each is valid until the key's next change
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from ids.errors import CheckpointError, StateError
from ids.exact import LIMB_BITS, Parts
from ids.model import MAX_ROWS, ItemKind, bits_of
from ids.plan import SelectPlan
from ids.spark.cell_columns import Cells, cells_of, groupable_columns
from ids.spark.frame import Frame, whole_partition
from ids.spark.spark_evaluate import Answers, Item, Layout, exact_columns
from ids.spark.spark_prepare import (
    AHEAD,
    COUNT,
    FAULT,
    INSTANT,
    PANE,
    TIME,
    Ready,
    measure,
)
from ids.spark.stream_batch import LATE, Counts, with_late
from ids.spark.stream_checkpoint import Revision
from ids.spark.stream_store import Piece, Store, alike
from ids.spark.time_windows import panes

if TYPE_CHECKING:
    from pyspark.sql import Column

AT = "ids_at"

_SIGN = "ids_sign"

Integers = npt.NDArray[np.int64]


class Span(NamedTuple):
    """The windows of ``width`` panes that end after instant ``start``, up to ``until``.

    A pane enters the window at its own instant and expires ``width`` slides later. The windows are
    computed from the panes after ``oldest``, and from the stored windows at ``start``, if there are
    any. Rows of these stored windows have ``oldest`` as their pane number.
    """

    start: int
    until: int
    width: int

    @property
    def oldest(self) -> int:
        """The last pane that has expired at instant ``start``."""
        return self.start - self.width

    def ranges(self, windows: bool) -> list[tuple[int, int]]:
        """Return the panes to read, as intervals (after, up to) of pane numbers.

        If there are stored ``windows`` at the start, panes that are in all windows are not read, so
        the cost does not depend on the width.
        """
        enter, expire = (self.start, self.until), (self.oldest, self.until - self.width)
        return [enter, expire] if windows else [enter]


class _Windows(NamedTuple):
    """Non-empty windows, each with the range of instants (in slides) in which it stays the same.

    key     int64[w]      the number of its key
    row     int64[w]      the index of a row with that key
    first   int64[w]      the first instant
    last    int64[w]      the last instant
    before  int64[w]      the index of the window one slide before the first; -1 if that is empty
    sums    int64[s, w]   its sums
    """

    key: Integers
    row: Integers
    first: Integers
    last: Integers
    before: Integers
    sums: Integers


@dataclass(frozen=True, slots=True)
class PaneWindows:
    """Computes the emits of some keys from their sums, as Arrow batches.

    Input rows have the key columns, AT (the pane number) and the layout's sums. Output rows have
    the keys, INSTANT, COUNT and the items' values, sorted by instant, then key (NULL first).

    plan   a ``nameless`` plan, with moments
    span   the span that the rows cover
    since  emits start after this instant and end with the span
    back   how many instants before the first emit are computed as well
    final  True if rows have no AT, because each is already a key's window at the end of the span
    """

    plan: SelectPlan
    layout: Layout
    keys: tuple[str, ...]
    span: Span
    since: int
    back: int = 0
    final: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return whole_partition(batches, self.emits)

    def emits(self, rows: pa.Table) -> pa.Table:
        """Return the emits of the keys in ``rows``."""
        windows = self._windows(rows)
        low = np.maximum(windows.first, self.since + 1 - self.back)
        high = np.minimum(windows.last, self.span.until)
        many = np.maximum(high - low + 1, 0)
        window = np.repeat(np.arange(len(many)), many)
        instant = low[window] + np.arange(len(window)) - (np.cumsum(many) - many)[window]
        order = np.lexsort((windows.key[window], instant))
        window, instant = window[order], instant[order]
        row = pa.array(windows.row[window])
        columns = {name: rows.column(name).take(row) for name in self.keys}
        columns[INSTANT] = pa.array(instant)
        columns[COUNT] = pa.array(windows.sums[self.layout.sums.index(COUNT)][window])
        return pa.table(columns | self._answers(windows, window, instant))

    def _windows(self, rows: pa.Table) -> _Windows:
        start, until, width = self.span
        pane = np.full(rows.num_rows, until) if self.final else rows.column(AT).to_numpy()
        enter = np.flatnonzero((pane > start) | (pane == self.span.oldest))
        expire = np.flatnonzero((pane > self.span.oldest) & (pane <= until - width))
        at = np.concatenate([np.maximum(pane[enter], start), pane[expire] + width])
        source = np.concatenate([enter, expire])
        signs = np.repeat([1, -1], [len(enter), len(expire)])
        ranks = [_rank(rows.column(name).combine_chunks())[source] for name in self.keys]
        order = np.lexsort((at, *reversed(ranks)))
        starts = _changes([column[order] for column in (*ranks, at)])
        source, signs = source[order], signs[order]
        sums = np.stack([np.add.reduceat(rows.column(s).to_numpy()[source] * signs, starts)
                         for s in self.layout.sums])  # fmt: skip
        row, at, order = source[starts], at[order][starts], order[starts]
        fresh = _changes([column[order] for column in ranks], len(row))
        key = np.repeat(np.arange(len(fresh)), np.diff(np.append(fresh, len(row))))
        sums = np.cumsum(sums, axis=1)
        # each key starts at 0
        sums -= np.concatenate([np.zeros((len(sums), 1), np.int64), sums], axis=1)[:, fresh[key]]
        last = np.append(at[1:] - 1, until)
        last[np.append(np.diff(key) != 0, True)] = until
        counts = sums[self.layout.sums.index(COUNT)]
        shown = (counts > 0) & (last >= self.since - self.back) & (at <= until)
        chosen = np.flatnonzero(shown)
        _refuse_wide(counts[chosen])
        before = np.full(len(chosen), -1)
        follows = np.flatnonzero((np.diff(chosen) == 1) & (np.diff(key[chosen]) == 0)) + 1
        before[follows] = follows - 1
        return _Windows(key[chosen], row[chosen], at[chosen], last[chosen], before, sums[:, chosen])

    def _answers(
        self, windows: _Windows, window: Integers, instant: Integers
    ) -> dict[str, pa.Array]:
        """Return the items' columns, with one row per emit.

        For a sampled item, these contain the exact attribution. If it is a SHAPLEY_DELTA, the
        difference is computed later, from the estimates.
        """
        sums = dict(zip(self.layout.sums, windows.sums, strict=True))
        answers = Answers(self.layout, sums.__getitem__)
        columns = exact_columns(self.plan, answers, len(windows.first))
        found = {name: column.take(pa.array(window)) for name, column in columns.items()}
        opens = instant == windows.first[window]
        for item in self.plan.items:
            if item.kind is ItemKind.DELTA and item.approximate is None:
                value = columns[item.name].to_numpy()
                earlier = np.where(windows.before >= 0, value[windows.before], 0.0)
                here = value[window]
                found[item.name] = pa.array(here - np.where(opens, earlier[window], here))
        return found


def _changes(columns: Sequence[Integers], rows: int | None = None) -> Integers:
    """Return the indices of the first row and of all rows that differ from the previous one."""
    count = len(columns[0]) if rows is None else rows
    fresh = np.zeros(count, np.bool_)
    fresh[:1] = True
    for column in columns:
        fresh[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(fresh)


def _rank(column: pa.Array) -> Integers:
    """Return the rank of each value among the distinct values, NULL first."""
    coded = pc.dictionary_encode(column, null_encoding="encode")
    values = pa.table({"value": _sortable(coded.dictionary)})
    order = pc.sort_indices(values, sort_keys=[("value", "ascending", "at_start")])
    rank = np.empty(len(order), np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    found: Integers = rank[coded.indices.to_numpy()]
    return found


def _sortable(values: pa.Array) -> pa.Array:
    """Map doubles to integers that sort NaN last, as Spark does; Arrow sorts NaN next to NULL."""
    if not types.is_floating(values.type):
        return values
    bits = values.fill_null(0.0).to_numpy(zero_copy_only=False).view(np.int64)
    bits = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return pa.array(bits, mask=values.is_null().to_numpy(zero_copy_only=False))


def _refuse_wide(counts: Integers) -> None:
    widest = int(counts.max(initial=0))
    if widest > MAX_ROWS:
        raise StateError(
            f"a window has {widest:,} rows, but at most {MAX_ROWS:,} are summed exactly; "
            "use a shorter window"
        )


ValueRange = tuple[float, float]


def both_ranges(a: ValueRange | None, b: ValueRange | None) -> ValueRange | None:
    """Return the range that covers both; None stands for a range that contains only 0.

    A range is the (largest, smallest nonzero) magnitude.
    """
    known = [each for each in (a, b) if each is not None]
    if not known:
        return None
    return max(large for large, _ in known), min(small for _, small in known)


def widened(parts: Parts, before: ValueRange | None, now: ValueRange, degree: int) -> Parts:
    """Return parts that cover range ``now`` in addition to what ``parts`` cover.

    If all values so far were 0 (``before`` is None), new parts are chosen for range ``now`` alone.
    """
    fitting = Parts.fit(*now, degree)
    largest, smallest = bits_of(*now)
    if before is None:
        # Spare bits are divided between both ends, for later values slightly outside the range.
        spare = LIMB_BITS * fitting.levels - (largest - smallest)
        return fitting._replace(exponent=largest + spare // 2) if spare > 0 else fitting
    above = max(0, -(-(largest - parts.exponent) // LIMB_BITS))
    below = max(0, -(-(parts.exponent - LIMB_BITS * parts.levels - smallest) // LIMB_BITS))
    levels = parts.levels + above + below
    return Parts(parts.exponent + LIMB_BITS * above, levels, 2 * levels if parts.squares else 0)


def relaid(old: Layout, new: Layout, revision: Revision | None = None) -> dict[str, str]:
    """Map the names of sums in layout ``new`` to the names of the same sums in layout ``old``.

    ``new`` has the same parts as ``old`` or more. A sum of ``new`` that is not in the result did
    not exist in ``old`` and is 0. With a ``revision``, the layouts belong to different scripts.
    """
    known, moved = set(new.sums), {COUNT: COUNT}
    for number, now in enumerate(new.parts):
        for item in new.items(number):
            source: Item | None = item
            if revision is not None:
                found = revision.source(item.number, item.predicate, 0)
                source = None if found is None else Item(*found)
            if source is None:
                continue
            before = old.parts[source.number]
            above = (now.exponent - before.exponent) // LIMB_BITS
            moved[item.count] = source.count
            moved |= {item.first(k + above): source.first(k) for k in range(before.levels)}
            moved |= {item.second(k + 2 * above): source.second(k) for k in range(before.squares)}
    return {to: of for to, of in moved.items() if to in known}


PANES, WINDOWS = "panes", "windows"
_FEW_ROWS, _FEW_FILES = 20_000, 100


def is_few(pieces: Sequence[Piece]) -> bool:
    """Return whether the pieces are so small that the driver reads them faster than a Spark job.

    The limits also bound the memory that the driver uses.
    """
    rows, files = sum(piece.rows for piece in pieces), sum(piece.files for piece in pieces)
    return rows <= _FEW_ROWS and files <= _FEW_FILES


@dataclass(frozen=True, slots=True)
class PaneStore:
    """Reads and writes the stored sums of one query.

    number  the number of the batch
    keys    the key columns
    parts   the current parts of each measure, used for new sums
    """

    store: Store
    number: int
    plan: SelectPlan
    keys: tuple[T.StructField, ...]
    parts: tuple[Parts, ...]

    @property
    def layout(self) -> Layout:
        """The layout of new sums."""
        return Layout.of(self.plan, self.parts)

    def write(self, sums: DataFrame, kind: str = PANES) -> Piece:
        """Write sums by key and pane with Spark."""
        return self.store.write(sums, self.number, kind, total=COUNT, panes=PANE, parts=self.parts)

    def _write_table(self, sums: pa.Table, kind: str) -> Piece:
        """Write sums by key and AT without Spark."""
        rows = sums.rename_columns([PANE if name == AT else name for name in sums.column_names])
        return self.store.write_table(
            rows, self.number, kind, total=COUNT, panes=PANE, parts=self.parts
        )

    def read(
        self, pieces: Sequence[Piece], at: str = PANE, revision: Revision | None = None
    ) -> DataFrame:
        """Read the keys, AT and the sums of pieces, converted to the current layout.

        ``at`` is the SQL expression for AT. With a ``revision``, the pieces were written by the
        previous script.
        """
        by_parts: dict[tuple[Parts, ...], list[Piece]] = {}
        for piece in pieces:
            parts = tuple(Parts(*each) for each in piece.facts["parts"])
            by_parts.setdefault(parts, []).append(piece)
        tables = []
        for parts, some in (by_parts or {self.parts: []}).items():
            asked = self.layout.predicates if revision is None else revision.old.asked
            old = Layout(parts, asked)
            moved = relaid(old, self.layout, revision)
            sums = [f"{moved.get(name, '0L')} AS {name}" for name in self.layout.sums]
            longs = [T.StructField(name, T.LongType()) for name in (PANE, *old.sums)]
            table = self.store.read(some, T.StructType([*self.keys, *longs]))
            tables.append(table.selectExpr(*self.key_names, f"{at} AS {AT}", *sums))
        return reduce(DataFrame.unionAll, tables)

    def revised(self, pieces: Sequence[Piece], kind: str, revision: Revision) -> list[Piece]:
        """Rewrite pieces of the previous script for this one, with 0 for sums it did not have."""
        found = []
        for number, piece in enumerate(pieces):
            sums = self.read([piece], revision=revision).withColumnRenamed(AT, PANE)
            found.append(self.write(sums, f"{kind}-{number}"))
            _check_whole(found[-1], [piece])
        return found

    def fetch(self, pieces: Sequence[Piece], at: int | None = None) -> pa.Table:
        """Read a few small pieces without Spark; AT is the constant ``at``, or PANE if None."""
        longs = [(name, pa.int64()) for name in (AT, *self.layout.sums)]
        schema = pa.schema([*to_arrow_schema(T.StructType(list(self.keys))), *longs])
        tables = [schema.empty_table()]
        for piece in pieces:
            held = self.store.fetch(piece)
            old = Layout(tuple(Parts(*e) for e in piece.facts["parts"]), self.layout.predicates)
            moved = relaid(old, self.layout)
            nothing = pa.repeat(pa.scalar(0, pa.int64()), held.num_rows)
            columns = [held.column(name) for name in self.key_names]
            columns.append(held.column(PANE) if at is None else pc.add(nothing, at))
            sums = [moved.get(name) for name in self.layout.sums]
            columns += [nothing if name is None else held.column(name) for name in sums]
            tables.append(pa.table(columns, schema=schema))
        return pa.concat_tables(tables).combine_chunks()

    def spanned(
        self, panes: Sequence[Piece], windows: Sequence[Piece], span: Span, in_driver: bool
    ) -> DataFrame | pa.Table:
        """Read the stored windows and the panes from which the windows of a span are computed.

        Returns a pyarrow table if they are computed ``in_driver``, else a DataFrame.
        """
        ranges = span.ranges(bool(windows))
        if in_driver:
            table = self.fetch(panes)
            at = table.column(AT).to_numpy()
            inside = np.logical_or.reduce([(at > a) & (at <= b) for a, b in ranges])
            held = [table.filter(pa.array(inside)), self.fetch(windows, span.oldest)]
            return pa.concat_tables(held).combine_chunks()
        sums = self.read(panes).filter(
            " OR ".join(f"({AT} > {after}L AND {AT} <= {last}L)" for after, last in ranges)
        )
        return sums.unionAll(self.read(windows, f"{span.oldest}L")) if windows else sums

    def final(self, sums: DataFrame | pa.Table, span: Span, tasks: int) -> DataFrame | pa.Table:
        """Compute the windows at the end of a span, one row per key; ``spanned`` read the sums."""
        start, until, width = span
        if isinstance(sums, pa.Table):
            at = sums.column(AT).to_numpy()
            enter = (at > start) | (at == span.oldest)
            expire = (at > span.oldest) & (at <= until - width)
            sign = pa.array(enter.astype(np.int64) - expire)
            columns = {name: pc.multiply(sums.column(name), sign) for name in self.layout.sums}
            keys = {name: sums.column(name) for name in self.key_names}
            made = self._added(pa.table(keys | columns), self.key_names)
            return made.filter(pc.greater(made.column(COUNT), 0))
        enter = f"int({AT} > {start}L OR {AT} = {span.oldest}L)"
        expire = f"int({AT} > {span.oldest}L AND {AT} <= {until - width}L)"
        signed = f"{enter} - {expire} AS {_SIGN}"
        rows = sums.selectExpr(*self.key_names, signed, *self.layout.sums)
        # coalesce ends a stage of generated code. The code after it does not contain the instants,
        # so Spark can reuse the compiled code in the next batch.
        groups = rows.coalesce(tasks).groupBy(*self.key_names)
        added = [F.expr(f"sum({_SIGN} * {name})").alias(name) for name in self.layout.sums]
        return groups.agg(*added).filter(f"{COUNT} > 0L").coalesce(tasks)

    def write_windows(self, windows: DataFrame | pa.Table, instant: int) -> Piece:
        """Write the windows at an instant, which ``final`` returned."""
        if isinstance(windows, pa.Table):
            at = pa.repeat(pa.scalar(instant, pa.int64()), windows.num_rows)
            return self._write_table(windows.append_column(AT, at), WINDOWS)
        pane = F.lit(instant).cast("bigint").alias(PANE)
        return self.write(windows.select(*self.key_names, pane, *self.layout.sums), WINDOWS)

    def compact(self, panes: Sequence[Piece]) -> list[Piece]:
        """Merge small pieces if there are enough of them, and return all pieces."""
        chosen = alike(panes)
        if not chosen:
            return list(panes)
        kind = f"{PANES}-merged"
        if is_few(chosen):
            merged = self._write_table(self._added(self.fetch(chosen), [*self.key_names, AT]), kind)
        else:
            added = [F.sum(name).alias(name) for name in self.layout.sums]
            rows = self.read(chosen).groupBy(*self.key_names, AT).agg(*added)
            merged = self.write(rows.withColumnRenamed(AT, PANE).coalesce(1), kind)
        _check_whole(merged, chosen)
        return [merged, *(piece for piece in panes if piece not in chosen)]

    @property
    def key_names(self) -> list[str]:
        """The names of the key columns."""
        return [field.name for field in self.keys]

    def _added(self, sums: pa.Table, by: Sequence[str]) -> pa.Table:
        """Add up the sums of each group."""
        names = self.layout.sums
        if not by:
            return pa.table({name: [pc.sum(sums.column(name)).as_py() or 0] for name in names})
        table = sums.group_by(by, use_threads=False).aggregate([(name, "sum") for name in names])
        return table.select([*by, *(f"{name}_sum" for name in names)]).rename_columns([*by, *names])


def _check_whole(made: Piece, of: Sequence[Piece]) -> None:
    if made.total != sum(piece.total for piece in of):
        raise CheckpointError(f"{made.name} does not match the pieces it was made from; run again")


# The first row of each task contains the task's number, and the others NULL. Spark's row counter
# starts at the task's number shifted left by 33 bits.
_TASK, _TASK_OF = "ids_task", "spark_partition_id()"
_FIRST = f"monotonically_increasing_id() = shiftleft(cast({_TASK_OF} as bigint), 33)"
# Spark adds up observations over all runs of a task. It reruns a task, even one before a shuffle,
# when the worker with its output is lost.
_RUNS = {"runs": f"count({_TASK})", "tasks": f"size(collect_set({_TASK}))"}
_FEW_VALUES = 1_000


@dataclass(frozen=True, slots=True)
class Seen:
    """Statistics of a micro-batch, collected while its panes are computed.

    last    the last event time of a valid row, µs
    ranges  the (largest, smallest nonzero) magnitude of each measure; None: all values are 0
    raw     columns with few distinct values, which are cheap to group by directly
    """

    counts: Counts
    last: int | None
    ranges: tuple[ValueRange | None, ...]
    raw: tuple[str, ...]


class Collector:
    """Writes the panes of each micro-batch, and collects statistics of its rows (``Seen``)."""

    def __init__(self, plan: SelectPlan, frame: Frame) -> None:
        self._plan, self._columns = plan, frame.columns
        self._wordy = groupable_columns(plan.predicates, frame.columns)
        self._known: dict[tuple[str, ...], Cells] = {}

    def survey(self, rows: Ready, watermark: int | None = None) -> Seen:
        """Collect the statistics without writing panes, in one job without a shuffle."""
        watched = self._watched(rows)
        for number, name in enumerate(self._wordy):
            text = self._columns[name].text
            watched.append(F.approx_count_distinct(F.expr(text)).alias(f"words{number}"))
        (found,) = with_late(self._plan, rows, watermark).agg(*watched).toArrow().to_pylist()
        return self._seen(found)

    def collect(
        self,
        rows: Ready,
        watermark: int | None,
        raw: tuple[str, ...],
        sums: PaneStore,
    ) -> tuple[Piece, Seen]:
        """Write the panes of the valid rows that are not late, and collect the statistics."""
        watching = Observation()
        timed = with_late(self._plan, rows, watermark).selectExpr(
            "*", f"if({_FIRST}, {_TASK_OF}, NULL) {_TASK}"
        )
        runs = [F.expr(text).alias(name) for name, text in _RUNS.items()]
        data = timed.observe(watching, *self._watched(rows), *runs)
        # observe ends a stage of generated code. The code after it does not contain the watermark,
        # so Spark can reuse the compiled code in the next batch.
        data = data.filter(F.expr(f"{FAULT} IS NULL AND NOT {LATE}"))
        sound = replace(rows, data=data.withColumns(self._inside(rows, sums.layout)))
        piece = sums.write(panes(self._plan, sound, self._cells(raw), sums.layout))
        # Spark drops the observation from a plan that turns out to be empty
        found = watching.get if piece.rows else {"runs": 1, "tasks": 0}
        once = found["runs"] == found["tasks"]
        seen = self._seen(found) if once else self.survey(rows, watermark)
        if piece.total != seen.counts.taken:
            raise sums.store.lacking(piece.name, piece.total, seen.counts.taken)
        return piece, seen

    def _cells(self, raw: tuple[str, ...]) -> Cells:
        if raw not in self._known:
            self._known[raw] = cells_of(self._plan.predicates, self._columns, raw)
        return self._known[raw]

    def _watched(self, rows: Ready) -> list[Column]:
        columns = {
            "rows": "count(*)",
            "bad": f"count_if({FAULT} IS NOT NULL AND NOT {AHEAD})",
            "ahead": f"count_if({AHEAD})",
            "late": f"count_if({LATE})",
            "last": f"max(if({FAULT} IS NULL, {TIME}, NULL))",
        }
        for number in self._measured(rows):
            value = f"if({FAULT} IS NULL AND {measure(number)} != 0, abs({measure(number)}), NULL)"
            columns[f"largest{number}"] = f"max({value})"
            columns[f"smallest{number}"] = f"min({value})"
        return [F.expr(f"{text} AS {name}") for name, text in columns.items()]

    def _measured(self, rows: Ready) -> list[int]:
        """Return the numbers of the measures of type double that are summed."""
        return [
            number
            for number, typed in enumerate(rows.measures)
            if typed is not None and not typed.whole and self._plan.degrees[number]
        ]

    def _inside(self, rows: Ready, layout: Layout) -> dict[str, Column]:
        """Replace doubles that the parts do not cover with 0.

        The statistics show that there are such values, and the job is repeated with more parts.
        """
        guarded = {}
        for number in self._measured(rows):
            name, unit = measure(number), 2.0 ** -layout.parts[number].exponent
            inside = f"abs({name} * double('{unit!r}')) < 1.0D"
            guarded[name] = F.expr(f"if({inside} OR {name} IS NULL, {name}, 0.0D)")
        return guarded

    def _seen(self, found: dict[str, Any]) -> Seen:
        ranges = []
        for number in range(len(self._plan.measures)):
            largest = found.get(f"largest{number}")
            ranges.append(largest and (largest, found[f"smallest{number}"]))
        raw = [n for k, n in enumerate(self._wordy) if found.get(f"words{k}", 0) <= _FEW_VALUES]
        counts = Counts(found["rows"], found["late"], found["bad"], found["ahead"])
        return Seen(counts, found["last"], tuple(ranges), tuple(raw))
