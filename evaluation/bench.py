"""Bench: what a step works with. The workloads, the size, a seed, a place to write."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from evaluation.library import Library
from evaluation.size import Size
from evaluation.subject import SUBJECTS, Subject
from evaluation.workloads.manifest import Manifest

__all__ = ["Bench"]


class Bench:
    """A step's surroundings.

    size      how large it is to be
    library   the prepared workloads
    scratch   a directory of its own, removed when the step is done
    said      told how much of the step is done, from 0 to 1
    """

    def __init__(
        self,
        size: Size,
        library: Library,
        scratch: Path,
        said: Callable[[float], None] = lambda _: None,
    ) -> None:
        self.size = size
        self.library = library
        self.scratch = scratch
        self.said = said

    @property
    def real(self) -> Subject:
        """The real stream, or where no trips were given, the one that is skewed most like it."""
        return SUBJECTS[self.library.named("real")]

    def events(self, subject: Subject, rows: int | None = None, first: int = 0) -> pa.Table:
        """The columns of a workload in order, from row ``first`` on; text as dictionaries.

        A stream shorter than ``rows`` is repeated from its beginning, its times set forth.
        """
        directory = self.library.place(subject.workload)
        texts = [name for name, kind in Manifest.read(directory).schema.items() if kind == "string"]
        pieces = [
            pa.parquet.read_table(directory / path, columns=subject.columns, read_dictionary=texts)
            for path in Manifest.read(directory).files
        ]
        whole = pa.concat_tables(pieces).unify_dictionaries().combine_chunks()
        if rows is None:
            return whole.slice(first)
        return _repeated(whole, first + rows).slice(first)

    def rng(self, name: str) -> np.random.Generator:
        """Random numbers that depend on the name alone."""
        return np.random.default_rng(zlib.crc32(name.encode()))


def _repeated(whole: pa.Table, rows: int) -> pa.Table:
    if rows <= whole.num_rows:
        return whole.slice(0, rows)
    times = whole["event_time"]
    column = times.to_numpy()
    span = column[-1] - column[0]
    copies = -(-rows // whole.num_rows)
    at = whole.column_names.index("event_time")
    later = [
        whole.set_column(at, "event_time", pa.array(column + k * span, times.type))
        for k in range(copies)
    ]
    return pa.concat_tables(later).slice(0, rows).combine_chunks()
