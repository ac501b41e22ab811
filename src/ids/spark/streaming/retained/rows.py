"""The rows of a stream's window that are kept: what their columns are, and which panes they fill.

    CHECKPOINT/data/00000041-3f9c-retained/…   rows that batch 41 has accepted

Which pieces hold the window is part of every manifest, so a batch that is tried again ends with the
same rows. Whoever asks takes the newest manifest, in this process or in another, while the stream
runs or after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ids.model.table import Kind
from ids.spark.streaming.store import Manifest, Piece, Store
from ids.spark.typed import Typed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["KeptRows"]


@dataclass(frozen=True, slots=True)
class KeptRows:
    """What is kept after a micro-batch.

    columns      the table's, in the order of the files' own (``c0``, ``c1``, …)
    unsupported  columns that are not kept, and what they hold
    slide        µs
    width        of the window, in slides
    script       what the stream runs
    since        rows of panes up to this one may be missing: they came before rows were kept;
                 None if all are there
    begun        the batch from which on rows are kept; None: from the first
    spoken       instants up to this one (in slides) have had their emits; None before the first
    """

    columns: dict[str, Typed]
    unsupported: dict[str, str]
    slide: int
    width: int
    script: str
    since: int | None = None
    begun: int | None = None
    spoken: int | None = None

    @property
    def expired(self) -> int | None:
        """Panes up to this one have left the window for good."""
        return None if self.spoken is None else self.spoken - self.width

    def pieces_of(self, manifest: Manifest | None, name: str) -> list[Piece]:
        """Those of a manifest that were written since rows have been kept with these columns."""
        pieces = [] if manifest is None else manifest.of(name)
        return [p for p in pieces if self.begun is None or p.batch >= self.begun]

    def inside(self, pieces: Sequence[Piece]) -> list[Piece]:
        """The pieces with panes of the window at ``spoken``."""
        if self.spoken is None or self.expired is None:
            return []
        return [p for p in pieces if p.last > self.expired and p.first <= self.spoken]

    def read(self, store: Store, pieces: Sequence[Piece]) -> DataFrame:
        """PANE, then a column ``c0``, ``c1``, … for each of the table's."""
        from pyspark.sql import types as T  # a question is checked before there is a pyspark

        from ids.spark.panes import PANE

        types = {
            "bigint": T.LongType(),
            "double": T.DoubleType(),
            "string": T.StringType(),
            "boolean": T.BooleanType(),
        }
        fields = [T.StructField(PANE, T.LongType())]
        fields += [T.StructField(t.text, types[t.type]) for t in self.columns.values()]
        return store.read(pieces, T.StructType(fields))

    def facts(self) -> dict[str, Any]:
        """As JSON has them."""
        columns = [
            [name, typed.kind and typed.kind.value, typed.whole]
            for name, typed in self.columns.items()
        ]
        return asdict(self) | {"columns": columns}

    @classmethod
    def of(cls, facts: dict[str, Any]) -> KeptRows:
        """From what ``facts`` gave."""
        columns = {
            name: Typed(f"c{number}", kind and Kind(kind), whole)
            for number, (name, kind, whole) in enumerate(facts["columns"])
        }
        return cls(**facts | {"columns": columns})
