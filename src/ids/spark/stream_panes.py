"""The sums of a stream of time windows: panes and windows in its store, and emits from them.

A pane is written once, by the batch that brings its rows, under the parts that hold the values so
far. The range of values is known only when they have come, so parts grow: levels are added a whole
limb at a time, above or below, as columns of zeros; the bits that are there stay where they are,
and older pieces are read as if they had been written under the newest parts.

``PaneWindows`` makes emits of the sums of some keys, in a task of Spark's workers or in the driver:

    window at the start    +W
    panes that come           +1   +3
    panes that go                       -1
    windows                ────────────────   each lasts until the next change of its key

It does in NumPy what ``ids.spark.time_windows`` does in the JVM.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from ids.errors import CheckpointError, StateError
from ids.exact import LIMB_BITS, Parts
from ids.model import MAX_ROWS, ItemKind, bits_of
from ids.plan import SelectPlan
from ids.spark.frame import whole_partition
from ids.spark.spark_evaluate import Answers, Item, Layout, exact_columns
from ids.spark.spark_prepare import COUNT, INSTANT, PANE
from ids.spark.stream_revision import Revision
from ids.spark.stream_store import Piece, Store, alike

if TYPE_CHECKING:
    from pyspark.sql import Column

AT = "ids_at"

_SIGN = "ids_sign"


Integers = npt.NDArray[np.int64]


class Span(NamedTuple):
    """Windows of ``width`` panes after instant ``start``, up to instant ``until``.

    They are made of the panes after the oldest one, each of which comes at its own instant and goes
    ``width`` later, and of the windows at the start, whose rows have the oldest pane's number.
    Without such windows, there is nothing at the start.
    """

    start: int
    until: int
    width: int

    @property
    def oldest(self) -> int:
        """The last pane that no longer counts at the start."""
        return self.start - self.width

    def ranges(self, windows: bool) -> list[tuple[int, int]]:
        """The panes that change a window: after the first number of a pair, up to the second.

        Some come; of ``windows`` at the start, some go. Those that stay all along are left
        out, so that the cost of a span does not grow with the width.
        """
        comes, goes = (self.start, self.until), (self.oldest, self.until - self.width)
        return [comes, goes] if windows else [comes]


class _Windows(NamedTuple):
    """Windows that are not empty, each with the instants (in slides) at which it is the same.

    key     int64[w]      which key's window
    row     int64[w]      a row of that key
    first   int64[w]      the first instant
    last    int64[w]      the last one
    before  int64[w]      the window one slide before the first instant; -1 where none stood
    sums    int64[s, w]
    """

    key: Integers
    row: Integers
    first: Integers
    last: Integers
    before: Integers
    sums: Integers


@dataclass(frozen=True, slots=True)
class PaneWindows:
    """Sums of a task's keys to the answers at some instants; called with Arrow batches.

    Rows have the key columns, AT, the number of a pane, and the layout's sums. What comes out has
    the keys, INSTANT, COUNT and the answers, by instant, then key (NULL first).

    plan   a ``nameless`` one, with moments
    span   what the rows are of
    since  instants after this one have emits, up to the span's last
    back   as many instants before these are answered, too
    final  rows have no AT, they are the windows at the span's last instant, one a key
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
        """The answers of all windows at these instants."""
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
        comes = np.flatnonzero((pane > start) | (pane == self.span.oldest))
        goes = np.flatnonzero((pane > self.span.oldest) & (pane <= until - width))
        at = np.concatenate([np.maximum(pane[comes], start), pane[goes] + width])
        source, signs = np.concatenate([comes, goes]), np.repeat([1, -1], [len(comes), len(goes)])
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
        # each key begins with nothing
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
        """The items' columns, one row an emit.

        An item to be sampled has its exact attribution, a change too: that is taken of estimates.
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
    """Where a row differs from the one before it; the first one always does."""
    count = len(columns[0]) if rows is None else rows
    fresh = np.zeros(count, np.bool_)
    fresh[:1] = True
    for column in columns:
        fresh[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(fresh)


def _rank(column: pa.Array) -> Integers:
    """Numbers that stand in the order of the values, NULL first."""
    coded = pc.dictionary_encode(column, null_encoding="encode")
    values = pa.table({"value": _sortable(coded.dictionary)})
    order = pc.sort_indices(values, sort_keys=[("value", "ascending", "at_start")])
    rank = np.empty(len(order), np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    found: Integers = rank[coded.indices.to_numpy()]
    return found


def _sortable(values: pa.Array) -> pa.Array:
    """Doubles by their bits, which have NaN last as Spark has it; Arrow puts it beside NULL."""
    if not types.is_floating(values.type):
        return values
    bits = values.fill_null(0.0).to_numpy(zero_copy_only=False).view(np.int64)
    bits = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return pa.array(bits, mask=values.is_null().to_numpy(zero_copy_only=False))


def _refuse_wide(counts: Integers) -> None:
    widest = int(counts.max(initial=0))
    if widest > MAX_ROWS:
        raise StateError(
            f"a window of {widest:,} rows is more than the {MAX_ROWS:,} that are summed exactly; "
            "choose a shorter window"
        )


ValueRange = tuple[float, float]


def both_ranges(a: ValueRange | None, b: ValueRange | None) -> ValueRange | None:
    """The range, (largest, smallest but 0) magnitude, of both; None where nothing but 0 is."""
    known = [each for each in (a, b) if each is not None]
    if not known:
        return None
    return max(large for large, _ in known), min(small for _, small in known)


def widened(parts: Parts, before: ValueRange | None, now: ValueRange, degree: int) -> Parts:
    """Parts of a measure that hold values of the range ``now``, and all that ``parts`` held.

    Where values so far were all 0 (``before`` is None) nothing needs to be held.
    """
    fitting = Parts.fit(*now, degree)
    largest, smallest = bits_of(*now)
    if before is None:
        # room to spare goes to both ends: the next value may lie a little beyond these
        spare = LIMB_BITS * fitting.levels - (largest - smallest)
        return fitting._replace(exponent=largest + spare // 2) if spare > 0 else fitting
    above = max(0, -(-(largest - parts.exponent) // LIMB_BITS))
    below = max(0, -(-(parts.exponent - LIMB_BITS * parts.levels - smallest) // LIMB_BITS))
    levels = parts.levels + above + below
    return Parts(parts.exponent + LIMB_BITS * above, levels, 2 * levels if parts.squares else 0)


def relaid(old: Layout, new: Layout, revision: Revision | None = None) -> dict[str, str]:
    """Where the sums of ``old`` lie under the wider parts of ``new``; those not named are 0.

    Where parts were chosen anew, all sums but the counts are 0, and it does not matter where they
    go. With a ``revision`` the two are of different scripts.
    """
    known, moved = set(new.sums), {COUNT: COUNT}
    for number, now in enumerate(new.parts):
        for item in new.items(number):
            source = item if revision is None else _source(item, revision)
            if source is None:
                continue
            before = old.parts[source.number]
            above = (now.exponent - before.exponent) // LIMB_BITS
            moved[item.count] = source.count
            moved |= {item.first(k + above): source.first(k) for k in range(before.levels)}
            moved |= {item.second(k + 2 * above): source.second(k) for k in range(before.squares)}
    return {to: of for to, of in moved.items() if to in known}


def _source(item: Item, revision: Revision) -> Item | None:
    """Whose sums these were in the script before."""
    source = revision.source(item.number, item.predicate, 0)
    return None if source is None else Item(*source)


PANES, WINDOWS = "panes", "windows"
_FEW_ROWS, _FEW_FILES = 20_000, 100


def is_few(pieces: Sequence[Piece]) -> bool:
    """Whether the driver takes the rows of pieces itself: a Spark job would take longer.

    It holds no more than that, however many rows and keys a stream has.
    """
    rows, files = sum(piece.rows for piece in pieces), sum(piece.files for piece in pieces)
    return rows <= _FEW_ROWS and files <= _FEW_FILES


@dataclass(frozen=True, slots=True)
class PaneStore:
    """Reads and writes the sums of one query.

    number  of the batch that writes
    keys    the key columns
    parts   of each measure, under which sums are written
    """

    store: Store
    number: int
    plan: SelectPlan
    keys: tuple[T.StructField, ...]
    parts: tuple[Parts, ...]

    @property
    def layout(self) -> Layout:
        """What the sums are."""
        return Layout.of(self.plan, self.parts)

    def write(self, sums: DataFrame, kind: str = PANES) -> Piece:
        """A (key, pane) table."""
        return self.store.write(sums, self.number, kind, total=COUNT, panes=PANE, parts=self.parts)

    def _write_table(self, sums: pa.Table, kind: str) -> Piece:
        """A (key, AT) table of this process."""
        names = [PANE if name == AT else name for name in sums.column_names]
        return self.store.write_table(
            sums.rename_columns(names),
            self.number,
            kind,
            total=COUNT,
            panes=PANE,
            parts=self.parts,
        )

    def read(
        self,
        pieces: Sequence[Piece],
        at: str = PANE,
        revision: Revision | None = None,
    ) -> DataFrame:
        """Keys, AT (an expression of PANE) and the sums of pieces under any parts.

        With a ``revision`` they are pieces of the script before.
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
        """Pieces of the script before as pieces of this one; sums it did not have are 0."""
        found = []
        for number, piece in enumerate(pieces):
            sums = self.read([piece], revision=revision).withColumnRenamed(AT, PANE)
            found.append(self.write(sums, f"{kind}-{number}"))
            _check_whole(found[-1], [piece])
        return found

    def fetch(self, pieces: Sequence[Piece], at: int | None = None) -> pa.Table:
        """What ``read`` gives, of a few pieces in this process; AT is a constant, or PANE."""
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
        """What the windows of a span are made of: those at its start, and panes.

        A table of this process, if it is to be worked out ``in_driver``.
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
        """The windows at the end of a span of what it is made of, a row a key."""
        start, until, width = span
        if isinstance(sums, pa.Table):
            at = sums.column(AT).to_numpy()
            comes = (at > start) | (at == span.oldest)
            goes = (at > span.oldest) & (at <= until - width)
            sign = pa.array(comes.astype(np.int64) - goes)
            columns = {name: pc.multiply(sums.column(name), sign) for name in self.layout.sums}
            keys = {name: sums.column(name) for name in self.key_names}
            made = self._added(pa.table(keys | columns), self.key_names)
            return made.filter(pc.greater(made.column(COUNT), 0))
        comes = f"int({AT} > {start}L OR {AT} = {span.oldest}L)"
        goes = f"int({AT} > {span.oldest}L AND {AT} <= {until - width}L)"
        signed = sums.selectExpr(*self.key_names, f"{comes} - {goes} AS {_SIGN}", *self.layout.sums)
        # here a stage of generated code ends: what follows does not know the instants, so that the
        # next batch finds it compiled
        groups = signed.coalesce(tasks).groupBy(*self.key_names)
        added = [F.expr(f"sum({_SIGN} * {name})").alias(name) for name in self.layout.sums]
        return groups.agg(*added).filter(f"{COUNT} > 0L").coalesce(tasks)

    def write_windows(self, windows: DataFrame | pa.Table, instant: int) -> Piece:
        """Write what ``final`` gave, the windows at an instant."""
        if isinstance(windows, pa.Table):
            at = pa.repeat(pa.scalar(instant, pa.int64()), windows.num_rows)
            return self._write_table(windows.append_column(AT, at), WINDOWS)
        pane = F.lit(instant).cast("bigint").alias(PANE)
        return self.write(windows.select(*self.key_names, pane, *self.layout.sums), WINDOWS)

    def compact(self, panes: Sequence[Piece]) -> list[Piece]:
        """The panes, the small pieces among them as one once there are enough of them."""
        chosen = alike(panes)
        if not chosen:
            return list(panes)
        kind = f"{PANES}-merged"
        if is_few(chosen):
            merged = self._write_table(self._added(self.fetch(chosen), [*self.key_names, AT]), kind)
        else:
            rows = self.read(chosen).groupBy(*self.key_names, AT).agg(*self._summed)
            merged = self.write(rows.withColumnRenamed(AT, PANE).coalesce(1), kind)
        _check_whole(merged, chosen)
        return [merged, *(piece for piece in panes if piece not in chosen)]

    @property
    def key_names(self) -> list[str]:
        """The columns of the keys."""
        return [field.name for field in self.keys]

    def _added(self, sums: pa.Table, by: Sequence[str]) -> pa.Table:
        """The sums of each group, with the columns they are grouped by."""
        names = self.layout.sums
        if not by:
            return pa.table({name: [pc.sum(sums.column(name)).as_py() or 0] for name in names})
        table = sums.group_by(by, use_threads=False).aggregate([(name, "sum") for name in names])
        return table.select([*by, *(f"{name}_sum" for name in names)]).rename_columns([*by, *names])

    @property
    def _summed(self) -> list[Column]:
        return [F.sum(name).alias(name) for name in self.layout.sums]


def _check_whole(made: Piece, of: Sequence[Piece]) -> None:
    if made.total != sum(piece.total for piece in of):
        raise CheckpointError(f"{made.name} does not hold the panes it was made of; run again")
