"""The rows of a stream of count windows, in its store: a log of what came, and the tails of keys.

    log    rows that are not late, a piece a batch, each written once; some wait for the watermark
    tails  the last rows of each key with their ranks, a piece for each bucket of keys

Settled rows of the log are folded into the tails once they are many. Only the buckets that they
fall into are read and written anew; the pieces of the others stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ids.model.table import Kind
from ids.model.window import CountWindow
from ids.plan import SelectPlan
from ids.spark.counting import tasked_rows
from ids.spark.mapping import mapped
from ids.spark.ranking import Division, divide, key_bucket, order, power_of_two
from ids.spark.replaying import OLD, RANK
from ids.spark.rows import measure
from ids.spark.ruler import Ruler
from ids.spark.streaming.revision import Revision
from ids.spark.streaming.store import Piece, Store, alike
from ids.spark.streaming.tailing import Tailing
from ids.spark.stretches import halo_of
from ids.spark.typed import Typed
from ids.spark.words import WORD_BITS, truth_words, word, words

__all__ = ["ROWS", "TAILS", "Pool", "RowStore"]

ROWS, TAILS = "rows", "tails"

_OF_KEYS = "ids_bucket"
_HELD = -1  # in the place of a bucket
_BUCKET_ROWS = 200_000  # of tails
_UNFOLDED = 2**14  # settled rows of the log that are looked through again and again
_TASK_ROWS: int | None = None  # of its own; None: as many as a batch gives a task


class Pool(NamedTuple):
    """Rows that have become settled, and those that their windows reach back to.

    data      rows, with RANK and OLD
    division  of these among tasks
    """

    data: DataFrame
    division: Division


@dataclass(frozen=True, slots=True)
class RowStore:
    """Reads and writes the rows of one query.

    number   of the batch that writes
    keys     the key columns
    row      the columns of a row, keys among them
    log      pieces of rows as they came
    tails    pieces of ranked rows, each of a bucket
    folded   what is needed of all rows before this time, µs, is in the tails
    buckets  of keys
    """

    store: Store
    number: int
    plan: SelectPlan
    keys: tuple[str, ...]
    row: T.StructType
    log: tuple[Piece, ...]
    tails: tuple[Piece, ...]
    folded: int
    buckets: int

    def revised(self, revision: Revision) -> RowStore:
        """The store of another script's rows, as rows of this one."""
        old, new = revision.old, revision.new
        if (old.measures, old.predicates) == (new.measures, new.predicates):
            return self
        log = self._renumbered(self.log, self.row, revision)
        tails = self._renumbered(self.tails, self._ranked_row, revision)
        tails = tails.withColumn(_OF_KEYS, self._bucket(self.buckets))
        pieces = self.store.write_by(tails, self.number, f"{TAILS}-revised", _OF_KEYS)
        return replace(
            self,
            log=(self._moved(log, f"{ROWS}-revised", self.log),) if self.log else (),
            tails=_of_buckets(pieces),
        )

    def pool(self, since: int, until: int) -> Pool | None:
        """Rows from one time on, before another, which are settled by now; None: there are none."""
        pieces = self._between(since, until) if until > since else []
        if not pieces:
            return None
        fresh, tails, new = self._rows(since, until), self.tails, _size(pieces)
        if self.buckets > 1:
            counts = self._counts(fresh)
            tails, new = self._of(counts), sum(counts.values())
            if not new:
                return None
        old, known = self._remembered(tails, since), _size(tails) + self._unfolded(since)
        if self.buckets > 1 and new * self._reach < known:
            # most of these keys have nothing to say now
            old, known = _of_keys(old, fresh, self.keys), new * self._reach
        data = old.unionByName(_marked(fresh, old=False))
        ruler = self._ruler(until)
        division = divide(self.plan, data, self.keys, ruler, known + new, new, _TASK_ROWS)
        return Pool(data, division)

    def is_due(self, until: int) -> bool:
        """Whether so many rows before ``until`` are not folded that it is worth it."""
        return self._unfolded(until) >= max(_UNFOLDED, _size(self.tails) // 4)

    def fold(self, until: int, division: Division) -> RowStore:
        """The store with all rows before ``until`` in its tails; ``division`` is that of a pool.

        Rows that still wait move to a piece of their own if their piece is mostly settled.
        """
        wanted = power_of_two(-(-_size(self.tails) // _BUCKET_ROWS)) if self.keys else 1
        buckets = max(self.buckets, wanted)
        tails = self.tails
        if buckets == self.buckets > 1:
            tails = self._of(self._counts(self._rows(self.folded, until)))
        size = _size(tails) + self._unfolded(until)
        found = self._tails(self._remembered(tails, until), size, division, buckets)
        stale = [p for p in self.log if p.first < until <= p.last and 2 * until > p.first + p.last]
        held = self.store.read(stale, self.row).filter(f"{order(0)} >= {until}L")
        held = held.coalesce(max(1, -(-_size(stale) // _BUCKET_ROWS)))
        held = _marked(held, old=False).drop(OLD).withColumn(_OF_KEYS, F.lit(_HELD))
        pieces = self.store.write_by(found.unionByName(held), self.number, TAILS, _OF_KEYS)
        log = [p for p in self.log if p.last >= until and p not in stale]
        if _HELD in pieces:
            last = max(piece.last for piece in stale)
            log.append(replace(pieces.pop(_HELD), first=until, last=last))
        kept = [piece for piece in self.tails if piece not in tails]
        kept += _of_buckets(pieces)
        return replace(self, log=tuple(log), tails=tuple(kept), folded=until, buckets=buckets)

    def compact(self) -> RowStore:
        """The store with small pieces of its log as one, once there are enough of them."""
        chosen = alike(self.log)
        if not chosen:
            return self
        merged = self._moved(self.store.read(chosen, self.row), f"{ROWS}-merged", chosen)
        others = [piece for piece in self.log if piece not in chosen]
        return replace(self, log=(merged, *others))

    @property
    def _reach(self) -> int:
        assert isinstance(self.plan.window, CountWindow)
        return halo_of(self.plan.window)

    @property
    def _ranked_row(self) -> T.StructType:
        return T.StructType([*self.row, T.StructField(RANK, T.LongType())])

    def _moved(self, rows: DataFrame, kind: str, pieces: Sequence[Piece]) -> Piece:
        """Rows of the log that these pieces have, as one."""
        size = _size(pieces)
        rows = rows.coalesce(max(1, -(-size // _BUCKET_ROWS)))
        moved = self.store.write(rows, self.number, kind, panes=order(0))
        if moved.rows != size:
            raise self.store.lacking(moved.name, moved.rows, size)
        return moved

    def _renumbered(
        self, pieces: Sequence[Piece], row: T.StructType, revision: Revision
    ) -> DataFrame:
        """Rows of another script: its measures and predicates get the numbers of this one."""
        old, new = revision.old, revision.new
        held = {n: old.measures.index(text) for n, text in enumerate(new.measures) if text != "*"}
        bits = [old.predicates.index(text) for text in new.predicates]
        truths = [f"getbit({word(n // WORD_BITS)}, {n % WORD_BITS}) = 1" for n in bits]
        numbered = {*map(measure, held), *words(len(bits))}
        same = [field for field in row if field.name not in numbered]
        fields = [T.StructField(measure(n), T.DoubleType()) for n in set(held.values())]
        fields += [T.StructField(name, T.LongType()) for name in words(len(old.predicates))]
        measures = [f"{measure(was)} AS {measure(n)}" for n, was in held.items()]
        rows = self.store.read(pieces, T.StructType([*same, *fields]))
        return rows.selectExpr(*(field.name for field in same), *measures, *truth_words(truths))

    def _between(self, low: int, high: int) -> list[Piece]:
        return [piece for piece in self.log if piece.first < high and piece.last >= low]

    def _rows(self, low: int, high: int) -> DataFrame:
        """Rows of the log from ``low`` on, before ``high``."""
        data = self.store.read(self._between(low, high), self.row)
        return data.filter(f"{order(0)} >= {low}L AND {order(0)} < {high}L")

    def _remembered(self, tails: Sequence[Piece], until: int) -> DataFrame:
        """These tails, and what of the log is before ``until`` and not folded."""
        ranked = self.store.read(tails, self._ranked_row).withColumn(OLD, F.lit(True))
        if until <= self.folded:
            return ranked
        return ranked.unionByName(_marked(self._rows(self.folded, until), old=True))

    def _unfolded(self, until: int) -> int:
        """About how many rows of the log are before ``until`` and not folded."""
        rows = 0
        for piece in self._between(self.folded, until):
            inside = min(piece.last + 1, until) - max(piece.first, self.folded)
            rows += -(-piece.rows * inside // (piece.last + 1 - piece.first))
        return rows

    def _counts(self, rows: DataFrame) -> dict[int, int]:
        """How many rows fall into each bucket."""
        bucket = F.expr(key_bucket(self.keys, self.buckets))
        return {int(row[0]): row[1] for row in rows.groupBy(bucket).count().collect()}

    def _of(self, buckets: Collection[int]) -> tuple[Piece, ...]:
        return tuple(piece for piece in self.tails if piece.facts["bucket"] in buckets)

    def _ruler(self, until: int) -> Ruler:
        """For the rows that are not folded; older ones are in its first bucket."""
        pieces = self._between(self.folded, until)
        low = max(min(piece.first for piece in pieces), self.folded)
        high = min(max(piece.last for piece in pieces), until - 1)
        return Ruler.between(Typed(f"greatest({order(0)}, {low}L)", Kind.TIME), low, high)

    def _tails(self, rows: DataFrame, size: int, division: Division, buckets: int) -> DataFrame:
        """The tails of these rows, about ``size`` of them, with the bucket of each row."""
        ranked, columns = division.tails(size), tuple(self._ranked_row.names)
        sampled = bool(self.plan.sampled)
        work = Tailing(self.keys, columns, ranked.bounds, self._reach, sampled)
        tasked = tasked_rows(self.plan, rows, self.keys, ranked, near=True)
        return mapped(tasked, work, self._ranked_row).withColumn(_OF_KEYS, self._bucket(buckets))

    def _bucket(self, buckets: int) -> Column:
        return F.expr(f"cast({key_bucket(self.keys, buckets)} as int)")


def _size(pieces: Sequence[Piece]) -> int:
    return sum(piece.rows for piece in pieces)


def _of_buckets(pieces: Mapping[int, Piece]) -> tuple[Piece, ...]:
    """Tails, which know their bucket."""
    return tuple(replace(piece, facts={"bucket": bucket}) for bucket, piece in pieces.items())


def _marked(rows: DataFrame, *, old: bool) -> DataFrame:
    """Rows of the log, which do not know their rank."""
    return rows.withColumns({RANK: F.lit(None).cast("bigint"), OLD: F.lit(old)})


def _of_keys(rows: DataFrame, others: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows whose key some of the others have."""
    wanted = others.select(*(F.col(key).alias(f"{key}_wanted") for key in keys))
    same = [F.col(key).eqNullSafe(F.col(f"{key}_wanted")) for key in keys]
    return rows.join(wanted, same, "left_semi")
