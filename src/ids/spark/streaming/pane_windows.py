"""Windows over panes in Spark's workers: the sums of some keys to their emits.

    window at the start    +W
    panes that come           +1   +3
    panes that go                       -1
    windows                ────────────────   each stands until the next change of its key

The twin of ``ids.spark.windows``, in NumPy, on the panes of a task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ids.errors import StateError
from ids.model.query import ItemKind
from ids.model.scale import MAX_ROWS
from ids.plan import SelectPlan
from ids.spark.answers import Answers, exact_columns
from ids.spark.panes import COUNT, Layout
from ids.spark.windows import INSTANT

__all__ = ["AT", "PaneWindows", "Span"]

AT = "ids_at"

_BATCH = 2**16  # rows of an Arrow batch

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

    def ranges(self, stands: bool) -> list[tuple[int, int]]:
        """The panes that change a window: after the first number of a pair, up to the second.

        Some come; of windows that stand at the start, some go. Those that stay all along are left
        out, so that the cost of a span does not grow with the width.
        """
        comes, goes = (self.start, self.until), (self.oldest, self.until - self.width)
        return [comes, goes] if stands else [comes]


class Standing(NamedTuple):
    """Windows that are not empty, each with the instants (in slides) at which it stands.

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
    reach  as many instants before these are answered, too
    """

    plan: SelectPlan
    layout: Layout
    keys: tuple[str, ...]
    span: Span
    since: int
    reach: int = 0

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = [batch for batch in batches if batch.num_rows]
        if held:
            table = self.emits(pa.Table.from_batches(held).combine_chunks())
            yield from table.to_batches(max_chunksize=_BATCH)

    def emits(self, rows: pa.Table) -> pa.Table:
        """The answers of all windows that stand at one of the instants."""
        windows = self._standing(rows)
        low = np.maximum(windows.first, self.since + 1 - self.reach)
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

    def _standing(self, rows: pa.Table) -> Standing:
        start, until, width = self.span
        pane = rows.column(AT).to_numpy()
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
        stands = (counts > 0) & (last >= self.since - self.reach) & (at <= until)
        chosen = np.flatnonzero(stands)
        _refuse_wide(counts[chosen])
        before = np.full(len(chosen), -1)
        follows = np.flatnonzero((np.diff(chosen) == 1) & (np.diff(key[chosen]) == 0)) + 1
        before[follows] = follows - 1
        return Standing(key[chosen], row[chosen], at[chosen], last[chosen], before, sums[:, chosen])

    def _answers(
        self, windows: Standing, window: Integers, instant: Integers
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
