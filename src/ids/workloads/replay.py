"""Replay: a prepared workload as the same sequence of deltas, run after run."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from pyarrow import types

from ids.engine import Engine
from ids.errors import SourceError, UnknownNameError
from ids.workloads.manifest import Manifest, differences

__all__ = ["Replay"]

_READ = 1 << 16  # rows read at a time, whatever the size of a delta


class Replay:
    """The events of a workload in order, cut into deltas of ``size`` inserted rows each.

    directory   a prepared workload; every hash is checked before the first delta
    size        rows in a delta; the last may have fewer
    columns     which columns, all without it

    Where one file ends and the next begins is not seen in the deltas. Memory holds one reading and
    one delta. Iterating again begins again.

        replay = Replay("synthetic/", size=1000)
        replay.feed(engine)
    """

    def __init__(
        self, directory: str | Path, size: int, columns: Sequence[str] | None = None
    ) -> None:
        self.directory = Path(directory).expanduser()
        self.manifest = Manifest.read(self.directory)
        self.size = size
        self.columns = list(self.manifest.schema if columns is None else columns)
        if size < 1:
            raise SourceError(f"a delta of {size} rows is none; give a size of at least 1")
        for name in self.columns:
            if name not in self.manifest.schema:
                raise UnknownNameError("column", name, self.manifest.schema)
        found = differences(self.directory)
        if found:
            raise SourceError(
                f"{self.directory} differs from its manifest ({found[0]}); prepare it again"
            )

    @property
    def events(self) -> Path:
        """The directory of the events: a table for ``ids.sql`` and ``ids run``."""
        return self.directory / "events"

    def __len__(self) -> int:
        """How many deltas."""
        return -(-self.manifest.rows // self.size)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        rest: list[pa.RecordBatch] = []
        waiting = 0
        for batch in self._read():
            taken = 0
            while waiting + batch.num_rows - taken >= self.size:
                needed = self.size - waiting
                yield _joined([*rest, batch.slice(taken, needed)])
                taken += needed
                rest, waiting = [], 0
            if taken < batch.num_rows:
                rest.append(batch.slice(taken))
                waiting += batch.num_rows - taken
        if rest:
            yield _joined(rest)

    def feed(self, target: Engine | Callable[[pa.RecordBatch], object]) -> int:
        """Give every delta to an engine or to any callable; returns how many rows."""
        take = target.ingest if isinstance(target, Engine) else target
        rows = 0
        for delta in self:
            take(delta)
            rows += delta.num_rows
        return rows

    def write_files(self, directory: Path) -> None:
        """A Parquet file a delta, for a stream to take in this order; ``directory`` is new.

        A stream takes files by the time they were changed, so each is a second younger than the
        one before.
        """
        directory.mkdir()
        begun = time.time() - len(self)
        for number, delta in enumerate(self):
            path = directory / f"delta-{number:05}.parquet"
            pa.parquet.write_table(pa.Table.from_batches([delta]), path)
            os.utime(path, (begun + number, begun + number))

    def digest(self) -> str:
        """The SHA-256 of the sequence: columns, types, every value, and where the deltas end.

        It covers what the deltas say, not how a file spells it: two releases of Spark or Arrow
        that give the same events give the same digest.
        """
        whole = hashlib.sha256()
        for name in self.columns:
            whole.update(f"{name} {self.manifest.schema[name]}\n".encode())
        for delta in self:
            whole.update(delta.num_rows.to_bytes(8, "little"))
            for column in delta.columns:
                for piece in _bytes(column):
                    whole.update(piece)
        return whole.hexdigest()

    def _read(self) -> Iterator[pa.RecordBatch]:
        for entry in self.manifest.events:
            path = self.directory / entry.path
            try:
                with pa.parquet.ParquetFile(path) as file:
                    yield from file.iter_batches(_READ, columns=self.columns)
            except (OSError, pa.ArrowException) as error:
                fault = str(error).strip().split("\n", maxsplit=1)[0]
                raise SourceError(f"cannot read {path}: {fault}") from error


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _bytes(column: pa.Array) -> Iterator[bytes | memoryview]:
    """What a column says, little-endian: which rows are valid, then each value (0 where NULL)."""
    yield np.packbits(column.is_valid().to_numpy(zero_copy_only=False)).tobytes()
    if types.is_string(column.type):
        texts = pc.fill_null(column, "")
        yield pc.binary_length(texts).to_numpy().astype("<i4").tobytes()
        yield _letters(texts)
        return
    if types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    values = pc.fill_null(column, pa.scalar(0, column.type)).to_numpy(zero_copy_only=False)
    yield values.astype(values.dtype.newbyteorder("<")).tobytes()


def _letters(texts: pa.StringArray) -> memoryview:
    """All texts, one after the other, as they lie in Arrow's own memory."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[[texts.offset, texts.offset + len(texts)]]
    return memoryview(data or b"")[ends[0] : ends[1]]
