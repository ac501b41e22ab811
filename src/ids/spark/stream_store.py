"""Store the state of a stream in pieces (directories of Parquet files) and manifests.

    CHECKPOINT/ids/00000041.json              the manifest of batch 41
    CHECKPOINT/data/00000041-3f9c-panes/…     a piece: Parquet files written by batch 41

A manifest is a small file that lists the pieces with the state after a batch. A batch starts from
the previous manifest and writes pieces under new names. It writes its own manifest last, and is
complete once that exists; files of an incomplete batch are deleted at the next start. Nothing is
renamed, so this also works on object stores. A manifest is JSON, followed by a line with its
SHA-256.
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

FORMAT = 2  # of manifests and pieces
MANIFESTS = "ids"


@dataclass(frozen=True, slots=True)
class Piece:
    """A directory of Parquet files with the rows that one batch wrote.

    name   path relative to the checkpoint
    files  number of files
    bytes  total size of the files
    rows   number of rows
    total  sum of the ``total`` column, if one was passed to ``write``
    first  oldest pane of the rows
    last   newest pane of the rows
    facts  other values that are needed to read the rows
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
    def directory(self) -> str:
        """The directory that ``write`` or ``write_by`` created, which may contain more pieces."""
        return "/".join(self.name.split("/")[:2])

    @property
    def batch(self) -> int:
        """The number of the batch that wrote the piece."""
        return int(self.name.partition("/")[2].partition("-")[0])


@dataclass(frozen=True, slots=True)
class Manifest:
    """The state of a stream after a batch.

    batch       the number of the batch
    facts       JSON values, such as row totals and the watermark
    pieces      the pieces by kind, such as ``panes``
    written_by  the IDS version that wrote the manifest
    """

    batch: int
    facts: dict[str, Any]
    pieces: Mapping[str, Sequence[Piece]]
    written_by: str = ""

    def of(self, kind: str) -> list[Piece]:
        """Return the pieces of one kind."""
        return list(self.pieces.get(kind, ()))

    def named(self) -> set[str]:
        """Return the names of the listed pieces and of the directories that contain them."""
        return {name for piece in self._every for name in (piece.directory, piece.name)}

    @property
    def rows(self) -> int:
        """The number of rows in all pieces."""
        return sum(piece.rows for piece in self._every)

    @property
    def bytes(self) -> int:
        """The total size of all pieces."""
        return sum(piece.bytes for piece in self._every)

    @property
    def files(self) -> int:
        """The number of files in all pieces."""
        return sum(piece.files for piece in self._every)

    @property
    def _every(self) -> list[Piece]:
        return [piece for pieces in self.pieces.values() for piece in pieces]


def manifest_name(number: int) -> str:
    """Return the path of a batch's manifest, relative to the checkpoint."""
    return f"{MANIFESTS}/{number:08d}.json"


def encoded(manifest: Manifest) -> bytes:
    """Return the content of the file for a manifest."""
    facts = {"format": FORMAT, **asdict(manifest), "written_by": _version()}
    text = json.dumps(facts).encode()
    return text + b"\n" + sha256(text).hexdigest().encode() + b"\n"


class Manifests:
    """Reads the manifests of a checkpoint, without Spark."""

    def __init__(self, files: Readable) -> None:
        self.files = files

    def manifests(self) -> list[int]:
        """Return the batch numbers of all manifests, complete or partially written, in order."""
        names = [entry.name for entry in self.files.entries(MANIFESTS)]
        return sorted(int(n[:-5]) for n in names if n.endswith(".json") and n[:-5].isdigit())

    def latest(self) -> Manifest | None:
        """Return the newest complete manifest; None if there is none yet.

        A driver that died may have left a partially written manifest, which is ignored.
        """
        while True:
            known = self.manifests()
            for number in reversed(known[-2:]):
                manifest = self.load(number)
                if manifest is not None:
                    return manifest
            if known == self.manifests():  # otherwise the stream has just written another one
                break
        if known not in ([], [0]):
            raise altered(self.files, manifest_name(known[-1]))
        return None

    def load(self, number: int) -> Manifest | None:
        """Return the manifest of a batch; None if it is missing or incomplete."""
        try:
            content = self.files.read(manifest_name(number))
        except FileNotFoundError:
            return None
        text, _, digest = content.rstrip(b"\n").rpartition(b"\n")
        if sha256(text).hexdigest().encode() != digest:
            if content.endswith(b"\n") and re.fullmatch(rb"[0-9a-f]{64}", digest):
                raise altered(self.files, manifest_name(number))
            return None  # partially written
        facts = json.loads(text)
        if facts["format"] != FORMAT:
            raise unknown_format(self.files, facts["format"], facts["written_by"])
        pieces = {kind: [Piece(**each) for each in some] for kind, some in facts["pieces"].items()}
        return Manifest(facts["batch"], facts["facts"], pieces, facts["written_by"])


def shown(files: Readable) -> str:
    """Return the path of a directory as shown in messages."""
    return files.uri.removeprefix("file:")


def altered(files: Readable, name: str) -> CheckpointError:
    """Return the error for a file in the checkpoint that is missing or was altered."""
    return CheckpointError(
        f"{shown(files)}/{name} is missing or was altered; restore the whole checkpoint from a "
        "backup, or start with a new one"
    )


def unknown_format(
    files: Readable, found: object, written_by: str | None = None
) -> CheckpointError:
    """Return the error for a checkpoint whose format this version cannot read."""
    writer = "" if written_by is None else f", written by IDS {written_by}"
    return CheckpointError(
        f"checkpoint {shown(files)} has format {found}{writer}, but IDS {_version()} reads "
        f"format {FORMAT}; use the version that wrote it, or start with a new checkpoint"
    )


def _version() -> str:
    try:
        return version("ids-engine")
    except PackageNotFoundError:
        return "(source tree)"


_DATA = "data"
_COMMITS = "spark/commits"  # where Spark records completed batches
_KEPT = 3  # number of manifests kept, so that a reader has the time of several batches to finish
_TOGETHER = 16
_SMALL = 2**16  # rows; larger pieces are not merged
# corrupted pages must raise an error
_CHECKED = {"parquet.page.verify-checksum.enabled": "true"}


class Store(Manifests):
    """Reads and writes the pieces (only with a session) and manifests of a checkpoint."""

    files: Files

    def __init__(self, files: Files, session: SparkSession | None = None) -> None:
        super().__init__(files)
        self.session = session
        self._attempt = os.urandom(2).hex()
        self._kept: list[Manifest] = []
        self._written: set[str] = set()  # names of pieces written since the last commit

    def commit(self, manifest: Manifest) -> None:
        """Write the manifest that completes a batch, and delete pieces no longer listed.

        The last few manifests are kept, along with the pieces that they list.
        """
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
        """Delete the files of incomplete batches, and return the newest manifest.

        Raises CheckpointError if the manifest of a batch that Spark recorded as completed is
        missing.
        """
        newest = self.latest()
        noted = [int(e.name) for e in self.files.entries(_COMMITS) if e.name.isdigit()]
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
            folder = f"{_DATA}/{entry.name}"
            below = [f"{folder}/{e.name}" for e in self.files.entries(folder) if "=" in e.name]
            for name in [*below, folder]:
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
        """Write rows for batch ``number`` with Spark, and return the piece.

        The driver reads the row count, the sum of column ``total`` and the smallest and largest
        value of column ``panes`` back from the files. This shows whether it sees all of them.
        """
        name = self._saved(rows, number, kind)
        with self._reading_back(name):
            parts = self._parts(name)
            counts = (
                self._counts(name, [part.name for part in parts], total, panes) if parts else {}
            )
        size = sum(part.bytes for part in parts)
        return Piece(name, len(parts), bytes=size, facts=facts, **counts)

    def write_by(self, rows: DataFrame, number: int, kind: str, column: str) -> dict[int, Piece]:
        """Write rows for batch ``number`` with Spark, as one piece per value of a column.

        Raises CheckpointError if the driver finds fewer or more rows than were computed.
        """
        from pyspark.sql import Observation  # manifests are read without pyspark
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
        # Spark drops the observation from a plan that turns out to be empty
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
        """Count the rows that were written for each value of a column."""
        if isinstance(self.files, LocalFiles):
            counts = {}
            for value, some in parts.items():
                folder = f"{name}/{column}={value}"
                counts[value] = self._counts(folder, [p.name for p in some], None, None)["rows"]
            return counts
        with translated():
            data = self._spark.read.parquet(literal(f"{self.files.uri}/{name}"))
            found = data.groupBy(column).count().collect()
        return {int(value): rows for value, rows in found}

    def write_table(
        self, rows: pa.Table, number: int, kind: str, *, total: str, panes: str, **facts: Any
    ) -> Piece:
        """Write a small table for batch ``number`` without Spark, and return the piece."""
        name, content = self._cleared(number, kind), BytesIO()
        pq.write_table(
            rows, content, use_dictionary=False, write_statistics=False, write_page_checksum=True
        )
        with self._reading_back(name):
            self.files.make(name)
            self.files.write(f"{name}/part-00000.parquet", content.getvalue())
        counts = {"rows": rows.num_rows, "total": pc.sum(rows.column(total)).as_py() or 0}
        if rows.num_rows:
            ends = pc.min_max(rows.column(panes)).as_py()
            counts |= {"first": ends["min"], "last": ends["max"]}
        return Piece(name, 1, bytes=len(content.getbuffer()), facts=facts, **counts)

    def _cleared(self, number: int, kind: str) -> str:
        """Return the name of a new piece, and delete what a failed attempt wrote there."""
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

    def _counts(
        self, name: str, parts: Sequence[str], total: str | None, panes: str | None
    ) -> dict[str, int]:
        """Read the counts of a new piece back from its files."""
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

    def read(self, pieces: Iterable[Piece], schema: StructType | str) -> DataFrame:
        """Return the rows of some pieces that have the same schema."""
        paths = []
        for piece in pieces:
            self.check(piece)
            if piece.rows:
                paths.append(literal(f"{self.files.uri}/{piece.name}"))
        with translated():
            if not paths:
                return self._spark.createDataFrame([], schema)
            return self._spark.read.schema(schema).options(**_CHECKED).parquet(*paths)

    def fetch(self, piece: Piece) -> pa.Table:
        """Read a small piece without Spark, and return its rows."""
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
        """Return the files of a piece; raise CheckpointError if their number or size changed."""
        parts = self._parts(piece.name)
        if (len(parts), sum(part.bytes for part in parts)) != (piece.files, piece.bytes):
            raise altered(self.files, piece.name)
        return parts

    @contextmanager
    def faults_as_altered(self) -> Iterator[None]:
        """Raise CheckpointError in place of a SourceError for an unreadable file of a piece."""
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
        """Return the error for a piece in which the driver finds fewer rows than were written."""
        return CheckpointError(
            f"only {found:,} of {due:,} rows arrived in {shown(self.files)}/{name}; "
            "use a checkpoint on storage that the driver and the workers share, and run again"
        )

    def _unwritable(self, name: str, error: Exception) -> CheckpointError:
        fault = getattr(error, "strerror", None) or str(error).split("\n", maxsplit=1)[0]
        return CheckpointError(f"cannot write checkpoint {shown(self.files)}/{name}: {fault}")


def _read_back(files: Sequence[Path], total: str | None, panes: str | None) -> dict[str, int]:
    """Return the counts of a piece, read from its local files."""
    counts = {"rows": 0, "total": 0, "first": 0, "last": 0}
    ends: list[int] = []
    for path in files:
        with pq.ParquetFile(path) as file:
            counts["rows"] += file.metadata.num_rows
            for batch in file.iter_batches(columns=[c for c in (total, panes) if c]):
                if total is not None:
                    counts["total"] += pc.sum(batch.column(total)).as_py() or 0
                if panes is not None and batch.num_rows:
                    ends += pc.min_max(batch.column(panes)).as_py().values()
    return counts | ({"first": min(ends), "last": max(ends)} if ends else {})


def alike(pieces: Sequence[Piece]) -> list[Piece]:
    """Return at least 16 small pieces of similar size to merge; [] if there are not that many.

    Sizes are similar if they lie between the same powers of 16. The merged piece is about 16 times
    as large, so a row is rewritten only a few times.
    """
    sizes: dict[int, list[Piece]] = {}
    for piece in pieces:
        if piece.rows < _SMALL:
            sizes.setdefault((piece.rows.bit_length() - 1) // 4, []).append(piece)
    enough = [some for some in sizes.values() if len(some) >= _TOGETHER]
    return max(enough, key=len, default=[])
