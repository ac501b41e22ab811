"""What a stream remembers: pieces of rows that Spark writes, and manifests that name them.

    CHECKPOINT/ids/00000041.json              the manifest of batch 41; once it is there, 41 is done
    CHECKPOINT/data/00000041-3f9c-panes/…     a piece: rows that batch 41 has written, in Parquet

A batch starts from the manifest before it and writes pieces under names of its own. The manifest
comes last, as one small file: a batch without one has not happened, and what it wrote is swept.
Nothing is renamed, so the store works on object stores, too. A manifest is JSON, then a line with
its SHA-256.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ids.errors import CheckpointError, SourceError
from ids.sink import Entry, Files, LocalFiles, Readable
from ids.spark.failures import translated
from ids.spark.file_system import UNMARKED, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

FORMAT = 2  # of manifests and pieces; 1 was a folder of NumPy arrays a batch
MANIFESTS = "ids"


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows that one batch has written: a directory of Parquet files.

    name   below the checkpoint
    files  how many
    bytes  of all files
    total  the sum of the column that was asked to be added up, if any
    first  the oldest pane of its rows
    last   the newest one
    facts  whatever else is needed to read it
    """

    name: str
    files: int
    bytes: int
    rows: int = 0
    total: int = 0
    first: int = 0
    last: int = 0
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The directory of all that was written with it."""
        return "/".join(self.name.split("/")[:2])

    @property
    def batch(self) -> int:
        """The batch that wrote it."""
        return int(self.name.partition("/")[2].partition("-")[0])


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a stream knows after a batch.

    facts   of the runtime and of the step, as JSON has them
    pieces  by what they are for
    """

    batch: int
    facts: dict[str, Any]
    pieces: Mapping[str, Sequence[Piece]]
    written_by: str = ""

    def of(self, kind: str) -> list[Piece]:
        """The pieces of a kind."""
        return list(self.pieces.get(kind, ()))

    def named(self) -> set[str]:
        """The directories of its pieces, and those that they lie in."""
        return {name for piece in self._every for name in (piece.place, piece.name)}

    @property
    def rows(self) -> int:
        """How many rows it names."""
        return sum(piece.rows for piece in self._every)

    @property
    def bytes(self) -> int:
        """How long the files are that it names."""
        return sum(piece.bytes for piece in self._every)

    @property
    def files(self) -> int:
        """How many files it names."""
        return sum(piece.files for piece in self._every)

    @property
    def _every(self) -> list[Piece]:
        return [piece for pieces in self.pieces.values() for piece in pieces]


def manifest_name(number: int) -> str:
    """The manifest of a batch, below the checkpoint."""
    return f"{MANIFESTS}/{number:08d}.json"


def encoded(manifest: Manifest) -> bytes:
    """The manifest as its file holds it."""
    facts = {"format": FORMAT, **asdict(manifest), "written_by": _version()}
    text = json.dumps(facts).encode()
    return text + b"\n" + sha256(text).hexdigest().encode() + b"\n"


class Manifests:
    """The manifests below a checkpoint; to read them takes no Spark."""

    def __init__(self, files: Readable) -> None:
        self.files = files

    def manifests(self) -> list[int]:
        """The batches that have a manifest, whole or not, in order."""
        names = [entry.name for entry in self.files.entries(MANIFESTS)]
        return sorted(int(n[:-5]) for n in names if n.endswith(".json") and n[:-5].isdigit())

    def latest(self) -> Manifest | None:
        """The newest whole manifest; None before the first.

        A driver that died while it wrote one may have left half of it: that batch is not done.
        """
        while True:
            known = self.manifests()
            for number in reversed(known[-2:]):
                manifest = self.load(number)
                if manifest is not None:
                    return manifest
            if known == self.manifests():  # else the stream has gone on meanwhile
                break
        if known not in ([], [0]):
            raise altered(self.files, manifest_name(known[-1]))
        return None

    def load(self, number: int) -> Manifest | None:
        """The manifest of a batch; None where it is not there, or not whole."""
        try:
            content = self.files.read(manifest_name(number))
        except FileNotFoundError:
            return None
        text, _, digest = content.rstrip(b"\n").rpartition(b"\n")
        if sha256(text).hexdigest().encode() != digest:
            if content.endswith(b"\n") and re.fullmatch(rb"[0-9a-f]{64}", digest):
                raise altered(self.files, manifest_name(number))
            return None  # only its beginning was written
        facts = json.loads(text)
        if facts["format"] != FORMAT:
            raise unknown_format(self.files, facts["format"], facts["written_by"])
        pieces = {kind: [Piece(**each) for each in some] for kind, some in facts["pieces"].items()}
        return Manifest(facts["batch"], facts["facts"], pieces, facts["written_by"])


def shown(files: Readable) -> str:
    """A directory as a person names it."""
    return files.uri.removeprefix("file:")


def altered(files: Readable, name: str) -> CheckpointError:
    """A file of the checkpoint is not what was written."""
    return CheckpointError(
        f"{shown(files)}/{name} was altered or is gone; restore the checkpoint as a whole, or "
        "start anew in another directory"
    )


def unknown_format(
    files: Readable, found: object, written_by: str | None = None
) -> CheckpointError:
    """The checkpoint is one that this version does not read."""
    writer = "" if written_by is None else f", written by IDS {written_by}"
    return CheckpointError(
        f"checkpoint {shown(files)} has format {found}{writer}, IDS {_version()} reads format "
        f"{FORMAT}; go on with the version that wrote it, or start anew in another directory"
    )


def _version() -> str:
    try:
        return version("ids-engine")
    except PackageNotFoundError:
        return "of a source tree"


_DATA = "data"
_ENDS = "spark/commits"  # where Spark notes that a batch is done
_KEPT = 3  # manifests: readers have so many batches' time
_TOGETHER = 16
_SMALL = 2**16  # rows; larger pieces stay as they are
# a page whose bits have changed must not be taken for rows
_CHECKED = {"parquet.page.verify-checksum.enabled": "true"}


class Store(Manifests):
    """The pieces and manifests below a checkpoint; pieces take a session."""

    files: Files

    def __init__(self, files: Files, session: SparkSession | None = None) -> None:
        super().__init__(files)
        self.session = session
        self._attempt = os.urandom(2).hex()
        self._kept: list[Manifest] = []
        self._written: set[str] = set()  # since the last commit

    def commit(self, manifest: Manifest) -> None:
        """Make the batch done, and take away what no kept manifest needs."""
        try:
            self.files.write(manifest_name(manifest.batch), encoded(manifest))
        except OSError as error:
            raise self._unwritable(MANIFESTS, error) from error
        self._kept.append(manifest)
        gone, self._kept = self._kept[:-_KEPT], self._kept[-_KEPT:]
        for each in gone:
            self.files.remove(manifest_name(each.batch))
        known = self._written.union(*(each.named() for each in gone))
        for name in sorted(known - self._needed()):
            self.files.remove(name)
        self._written.clear()

    def begin(self) -> Manifest | None:
        """Sweep what crashed batches and forgotten manifests have left; the newest manifest.

        Where Spark has noted the end of a batch, its manifest has been there whole.
        """
        newest = self.latest()
        noted = [int(e.name) for e in self.files.entries(_ENDS) if e.name.isdigit()]
        if noted and (newest is None or newest.batch < max(noted)):
            raise altered(self.files, manifest_name(max(noted)))
        known = self.manifests()
        done = [n for n in known if newest is not None and n <= newest.batch]
        loaded = [self.load(number) for number in done[-_KEPT:]]
        self._kept = [each for each in loaded if each is not None]
        for number in set(known) - {each.batch for each in self._kept}:
            self.files.remove(manifest_name(number))
        needed = self._needed()
        for entry in self.files.entries(_DATA):
            place = f"{_DATA}/{entry.name}"
            below = [f"{place}/{e.name}" for e in self.files.entries(place) if "=" in e.name]
            for name in [*below, place]:
                if name not in needed:
                    self.files.remove(name)
        return newest

    def _needed(self) -> set[str]:
        return {name for each in self._kept for name in each.named()}

    def write(
        self,
        rows: DataFrame,
        number: int,
        kind: str,
        *,
        total: str | None = None,
        panes: str | None = None,
        **facts: Any,
    ) -> Piece:
        """Have Spark write rows for batch ``number``.

        What the piece tells of them is read back from the files, as the driver sees them;
        ``total`` is a column to be added up, ``panes`` one whose first and last value are told.
        """
        name = self._saved(rows, number, kind)
        with self._reading_back(name):
            parts = self._parts(name)
            told = self._told(name, [part.name for part in parts], total, panes) if parts else {}
        size = sum(part.bytes for part in parts)
        return Piece(name, len(parts), bytes=size, facts=facts, **told)

    def write_by(self, rows: DataFrame, number: int, kind: str, column: str) -> dict[int, Piece]:
        """Have Spark write rows for batch ``number``, those of each value of a column as a piece.

        The pieces must hold as many rows as were computed, as far as the driver sees.
        """
        from pyspark.sql import Observation  # manifests are read where there is no pyspark
        from pyspark.sql import functions as F

        computed = Observation()
        watched = rows.observe(computed, F.count(F.lit(1)).alias("rows"))
        name = self._saved(watched, number, kind, column)
        parts: dict[int, list[Entry]] = {}
        with self._reading_back(name):
            for entry in self.files.entries(name):
                if entry.name.startswith(f"{column}="):
                    parts[int(entry.name.partition("=")[2])] = self._parts(f"{name}/{entry.name}")
            counts = self._counted_by(name, column, parts) if parts else {}
        found = sum(counts.values())
        # a plan that turns out empty forgets what it has watched
        due = computed.get["rows"] if found else int(not rows.isEmpty())
        if found != due:
            raise self.lacking(name, found, due)
        return {
            value: Piece(f"{name}/{column}={value}", len(some), sum(p.bytes for p in some), rows)
            for (value, some), rows in zip(parts.items(), map(counts.get, parts), strict=True)
            if rows
        }

    def _counted_by(
        self, name: str, column: str, parts: Mapping[int, Sequence[Entry]]
    ) -> dict[int, int]:
        """How many rows the files of each value of a column hold."""
        if isinstance(self.files, LocalFiles):
            counts = {}
            for value, some in parts.items():
                place = f"{name}/{column}={value}"
                counts[value] = self._told(place, [p.name for p in some], None, None)["rows"]
            return counts
        with translated():
            data = self._spark.read.parquet(literal(f"{self.files.uri}/{name}"))
            found = data.groupBy(column).count().collect()
        return {int(value): rows for value, rows in found}

    def write_table(
        self, rows: pa.Table, number: int, kind: str, *, total: str, panes: str, **facts: Any
    ) -> Piece:
        """Write a few rows that are here for batch ``number``; else as ``write``."""
        name, content = self._cleared(number, kind), BytesIO()
        pq.write_table(
            rows, content, use_dictionary=False, write_statistics=False, write_page_checksum=True
        )
        with self._reading_back(name):
            self.files.make(name)
            self.files.write(f"{name}/part-00000.parquet", content.getvalue())
        told = {"rows": rows.num_rows, "total": pc.sum(rows.column(total)).as_py() or 0}
        if rows.num_rows:
            ends = pc.min_max(rows.column(panes)).as_py()
            told |= {"first": ends["min"], "last": ends["max"]}
        return Piece(name, 1, bytes=len(content.getbuffer()), facts=facts, **told)

    def _cleared(self, number: int, kind: str) -> str:
        """The name of a new piece, with nothing under it."""
        name = f"{_DATA}/{number:08d}-{self._attempt}-{kind}"
        self._written.add(name)
        try:
            self.files.remove(name)
        except OSError as error:
            raise self._unwritable(name, error) from error
        return name

    def _saved(self, rows: DataFrame, number: int, kind: str, *by: str) -> str:
        name = self._cleared(number, kind)
        with translated():
            writer = rows.write.mode("overwrite").options(**UNMARKED).partitionBy(*by)
            writer.parquet(f"{self.files.uri}/{name}")
        return name

    @contextmanager
    def _reading_back(self, name: str) -> Iterator[None]:
        try:
            yield
        except CheckpointError:
            raise
        except (OSError, pa.ArrowException) as error:
            raise self._unwritable(name, error) from error

    def _parts(self, name: str) -> list[Entry]:
        return [entry for entry in self.files.entries(name) if entry.name.startswith("part-")]

    def _told(
        self, name: str, parts: Sequence[str], total: str | None, panes: str | None
    ) -> dict[str, int]:
        """How many rows these files hold, and what was asked about two of their columns."""
        if isinstance(self.files, LocalFiles):
            self.files.sync(name)
            return _read_back([self.files.path / name / part for part in parts], total, panes)
        asked = {"rows": "count(*)"}
        if total is not None:
            asked["total"] = f"coalesce(sum({total}), 0L)"
        if panes is not None:
            asked |= {"first": f"coalesce(min({panes}), 0L)", "last": f"coalesce(max({panes}), 0L)"}
        with translated():
            data = self._spark.read.parquet(literal(f"{self.files.uri}/{name}"))
            found = data.selectExpr(*asked.values()).first()
        assert found is not None
        return dict(zip(asked, map(int, found), strict=True))

    def read(self, pieces: Iterable[Piece], schema: StructType) -> DataFrame:
        """The rows of pieces of one schema."""
        places = []
        for piece in pieces:
            self.check(piece)
            if piece.rows:
                places.append(literal(f"{self.files.uri}/{piece.name}"))
        with translated():
            if not places:
                return self._spark.createDataFrame([], schema)
            return self._spark.read.schema(schema).options(**_CHECKED).parquet(*places)

    def fetch(self, piece: Piece) -> pa.Table:
        """The rows of a small piece, in this process."""
        parts = self.check(piece)
        try:
            return pa.concat_tables(
                pq.ParquetFile(
                    BytesIO(self.files.read(f"{piece.name}/{part.name}")),
                    page_checksum_verification=True,
                ).read()
                for part in parts
            )
        except (OSError, pa.ArrowException) as error:
            raise altered(self.files, piece.name) from error

    def check(self, piece: Piece) -> list[Entry]:
        """The files of a piece; refuse one that has other files than were written."""
        parts = self._parts(piece.name)
        if (len(parts), sum(part.bytes for part in parts)) != (piece.files, piece.bytes):
            raise altered(self.files, piece.name)
        return parts

    @contextmanager
    def blaming(self) -> Iterator[None]:
        """What a job says of a file of a piece is said of the checkpoint."""
        try:
            yield
        except SourceError as error:
            piece = rf"(?:cannot read )?{re.escape(shown(self.files))}/({_DATA}/[^/]+)/"
            found = re.match(piece, str(error))
            if found is None:
                raise
            raise altered(self.files, found[1]) from error

    @property
    def _spark(self) -> SparkSession:
        assert self.session is not None
        return self.session

    def lacking(self, name: str, found: int, due: int) -> CheckpointError:
        """For the caller to raise where fewer rows were found than were written."""
        return CheckpointError(
            f"{found:,} of {due:,} rows came to {shown(self.files)}/{name}; "
            "check that the checkpoint lies on storage that the workers share, and run again"
        )

    def _unwritable(self, name: str, error: Exception) -> CheckpointError:
        fault = getattr(error, "strerror", None) or str(error).split("\n", maxsplit=1)[0]
        return CheckpointError(f"cannot write checkpoint {shown(self.files)}/{name}: {fault}")


def _read_back(files: Sequence[Path], total: str | None, panes: str | None) -> dict[str, int]:
    """What ``Store.write`` tells, of local files."""
    told = {"rows": 0, "total": 0, "first": 0, "last": 0}
    ends: list[int] = []
    for path in files:
        with pq.ParquetFile(path) as file:
            told["rows"] += file.metadata.num_rows
            for batch in file.iter_batches(columns=[c for c in (total, panes) if c]):
                if total is not None:
                    told["total"] += pc.sum(batch.column(total)).as_py() or 0
                if panes is not None and batch.num_rows:
                    ends += pc.min_max(batch.column(panes)).as_py().values()
    return told | ({"first": min(ends), "last": max(ends)} if ends else {})


def alike(pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces of one size, in powers of sixteen, of which there are enough; none if there are not.

    Sixteen of a size become one of the next, so a row is moved a few times in all.
    """
    sizes: dict[int, list[Piece]] = {}
    for piece in pieces:
        if piece.rows < _SMALL:
            sizes.setdefault((piece.rows.bit_length() - 1) // 4, []).append(piece)
    enough = [some for some in sizes.values() if len(some) >= _TOGETHER]
    return max(enough, key=len, default=[])
