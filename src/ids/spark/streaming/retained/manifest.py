"""Which files hold the rows of a window, and what their columns are: a page of every snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ids.errors import CheckpointError
from ids.model.table import Kind
from ids.spark.typed import Typed

__all__ = ["Manifest", "Piece"]

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Piece:
    """One file of rows.

    name   below ``retained/``
    bytes  its length
    first  the oldest pane in it
    last   the newest one
    """

    name: str
    rows: int
    bytes: int
    first: int
    last: int

    @property
    def batch(self) -> str:
        """The folder it lies in, that of the batch which wrote it."""
        return self.name.split("/")[0]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is kept after a micro-batch.

    columns      the table's, in the order of the files' own (``c0``, ``c1``, …)
    unsupported  columns that are not kept, and what they hold
    slide        µs
    width        of the window, in slides
    since        rows of panes up to this one may be missing: they came before rows were kept;
                 None if all are there
    spoken       instants up to this one (in slides) have had their emits; None before the first
    """

    columns: dict[str, Typed]
    unsupported: dict[str, str]
    slide: int
    width: int
    since: int | None = None
    spoken: int | None = None
    pieces: tuple[Piece, ...] = ()

    @property
    def expired(self) -> int | None:
        """Panes up to this one have left the window for good."""
        return None if self.spoken is None else self.spoken - self.width

    def inside(self) -> Iterator[Piece]:
        """The files with panes of the window at ``spoken``."""
        if self.spoken is None or self.expired is None:
            return
        for piece in self.pieces:
            if piece.last > self.expired and piece.first <= self.spoken:
                yield piece

    def save(self, folder: Path, name: str = "retained") -> None:
        """Into a snapshot's folder, as the page of what is kept under ``name``."""
        page = _page(folder, name)
        facts = asdict(self) | {
            "version": _VERSION,
            "columns": [
                [name, typed.kind and typed.kind.value, typed.whole]
                for name, typed in self.columns.items()
            ],
        }
        try:
            page.write_text(json.dumps(facts), encoding="utf-8")
        except OSError as error:
            raise CheckpointError(f"cannot write checkpoint {folder}: {error.strerror}") from error

    @classmethod
    def load(cls, folder: Path, name: str = "retained") -> Manifest | None:
        """From a snapshot's folder; None where nothing is kept under ``name``."""
        page = _page(folder, name)
        try:
            facts: dict[str, Any] = json.loads(page.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        if facts.pop("version") != _VERSION:
            raise CheckpointError(f"{page} is of another version of IDS; start anew")
        columns = {
            name: Typed(f"c{number}", kind and Kind(kind), whole)
            for number, (name, kind, whole) in enumerate(facts.pop("columns"))
        }
        pieces = tuple(Piece(**piece) for piece in facts.pop("pieces"))
        return cls(columns=columns, pieces=pieces, **facts)


def _page(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"
