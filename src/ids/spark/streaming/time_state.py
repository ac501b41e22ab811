"""What a stream of time windows remembers between micro-batches, and how it lies in a snapshot."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc

from ids.errors import CheckpointError
from ids.exact import Parts
from ids.plan import SelectPlan
from ids.spark.panes import PANE, Layout
from ids.spark.streaming.pane_table import Panes
from ids.spark.streaming.widening import Reach, resized

__all__ = ["TimeState"]

_FILE = "panes.arrow"
_FACTS = b"ids"


@dataclass(frozen=True, slots=True)
class TimeState:
    """The panes that a window to come will hold, and how far the stream has come.

    layout   what the panes' sums are
    reaches  how far the values of each measure have reached; None: nothing but 0
    raw      columns to group by as they are; None until rows were seen
    atoms    how many (key, pane, cell) groups the last batch had
    last     the last event time, µs
    passed   the watermark, µs: it never goes back, whatever the lateness is after a restart
    spoken   instants up to this one (in slides) have had their emits
    """

    layout: Layout
    reaches: tuple[Reach | None, ...]
    raw: tuple[str, ...] | None
    atoms: int
    last: int | None
    passed: int | None
    spoken: int | None
    panes: Panes

    @classmethod
    def first(
        cls, plan: SelectPlan, parts: Sequence[Parts], keys: Sequence[pa.DataType]
    ) -> TimeState:
        """The state before any row."""
        layout = Layout.of(plan, parts)
        none = (None,) * len(layout.parts)
        return cls(layout, none, None, 0, None, None, None, Panes.empty(keys, len(layout.sums)))

    def with_parts(self, plan: SelectPlan, parts: Sequence[Parts]) -> TimeState:
        """The same sums under wider parts."""
        layout = Layout.of(plan, parts)
        panes = replace(self.panes, sums=resized(self.panes.sums, self.layout, layout))
        return replace(self, layout=layout, panes=panes)

    def save(self, folder: Path) -> None:
        """Into a snapshot's folder."""
        facts = {
            "parts": self.layout.parts,
            "reaches": [reach and [value.hex() for value in reach] for reach in self.reaches],
            "raw": self.raw,
            "atoms": self.atoms,
            "last": self.last,
            "passed": self.passed,
            "spoken": self.spoken,
        }
        keys = [f"key{number}" for number in range(len(self.panes.keys))]
        table = pa.table(self.panes.arrays(), names=[*keys, PANE, *self.layout.sums])
        table = table.replace_schema_metadata({_FACTS: json.dumps(facts).encode()})
        try:
            with (
                pa.OSFile(str(folder / _FILE), "wb") as file,
                pa.ipc.new_file(file, table.schema) as writer,
            ):
                writer.write_table(table)
        except OSError as error:
            fault = str(error).split("\n", maxsplit=1)[0]
            raise CheckpointError(f"cannot write checkpoint {folder}: {fault}") from error

    @classmethod
    def load(cls, plan: SelectPlan, folder: Path) -> TimeState:
        """From a snapshot's folder."""
        with pa.OSFile(str(folder / _FILE), "rb") as file:
            table = pa.ipc.open_file(file).read_all()
        facts = json.loads(table.schema.metadata[_FACTS])
        return cls(
            Layout.of(plan, [Parts(*parts) for parts in facts["parts"]]),
            tuple(reach and _reach(reach) for reach in facts["reaches"]),
            None if facts["raw"] is None else tuple(facts["raw"]),
            facts["atoms"],
            facts["last"],
            facts["passed"],
            facts["spoken"],
            Panes.of(table, len(plan.partition_by)),
        )


def _reach(texts: Sequence[str]) -> Reach:
    largest, smallest = (float.fromhex(text) for text in texts)
    return largest, smallest
