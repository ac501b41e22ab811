"""The sums of a stream of time windows, in its store: panes, and the windows at some instant.

A pane is written once, by the batch that brings its rows, under the parts that hold the values so
far; parts only grow, so older pieces are read as if they had been written under the newest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ids.errors import CheckpointError
from ids.exact import Parts
from ids.plan import SelectPlan
from ids.spark.panes import COUNT, PANE, Layout
from ids.spark.streaming.pane_windows import AT, Span
from ids.spark.streaming.revision import Revision
from ids.spark.streaming.store import Piece, Store, alike
from ids.spark.streaming.widening import relaid

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["PANES", "WINDOWS", "PaneStore"]

PANES, WINDOWS = "panes", "windows"


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
            tables.append(table.selectExpr(*self._keys, f"{at} AS {AT}", *sums))
        return reduce(DataFrame.unionAll, tables)

    def revised(self, pieces: Sequence[Piece], kind: str, revision: Revision) -> list[Piece]:
        """Pieces of the script before as pieces of this one; sums it did not have are 0."""
        found = []
        for number, piece in enumerate(pieces):
            sums = self.read([piece], revision=revision).withColumnRenamed(AT, PANE)
            found.append(self.write(sums, f"{kind}-{number}"))
            _check_whole(found[-1], [piece])
        return found

    def spanned(self, panes: Sequence[Piece], windows: Sequence[Piece], span: Span) -> DataFrame:
        """What the windows of a span are made of: those that stand at its start, and panes."""
        sums = self.read(panes).filter(
            " OR ".join(
                f"({AT} > {after}L AND {AT} <= {last}L)"
                for after, last in span.ranges(bool(windows))
            )
        )
        return sums.unionAll(self.read(windows, f"{span.oldest}L")) if windows else sums

    def stand(self, sums: DataFrame, span: Span) -> Piece:
        """Write the windows at the end of a span of what it is made of."""
        comes = f"int({AT} > {span.start}L OR {AT} = {span.oldest}L)"
        goes = f"int({AT} > {span.oldest}L AND {AT} <= {span.until - span.width}L)"
        signed = [f"({comes} - {goes}) * {name} AS {name}" for name in self.layout.sums]
        changes = sums.selectExpr(*self._keys, *signed)
        summed = changes.groupBy(*self._keys).agg(*self._summed).filter(f"{COUNT} > 0L")
        pane = F.lit(span.until).cast("bigint").alias(PANE)
        return self.write(summed.select(*self._keys, pane, *self.layout.sums), WINDOWS)

    def compact(self, panes: Sequence[Piece]) -> list[Piece]:
        """The panes, the small pieces among them as one once there are enough of them."""
        chosen = alike(panes)
        if not chosen:
            return list(panes)
        table = self.read(chosen).groupBy(*self._keys, AT).agg(*self._summed)
        merged = self.write(table.withColumnRenamed(AT, PANE).coalesce(1), f"{PANES}-merged")
        _check_whole(merged, chosen)
        return [merged, *(piece for piece in panes if piece not in chosen)]

    @property
    def _keys(self) -> list[str]:
        return [field.name for field in self.keys]

    @property
    def _summed(self) -> list[Column]:
        return [F.sum(name).alias(name) for name in self.layout.sums]


def _check_whole(made: Piece, of: Sequence[Piece]) -> None:
    if made.total != sum(piece.total for piece in of):
        raise CheckpointError(f"{made.name} does not hold the panes it was made of; run again")
