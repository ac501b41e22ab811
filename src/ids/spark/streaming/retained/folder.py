"""checkpoint/retained, checkpoint/sampled: files that appear whole, and go with their snapshots.

A reader holds a shared lock for as long as it reads, and nothing is taken away from under it.
Where locks do not reach (some network mounts) it still has three batches' time, and looks again.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from ids.errors import CheckpointError
from ids.sink.writing import whole
from ids.spark.streaming.retained.manifest import Manifest, Piece
from ids.spark.streaming.snapshots import Snapshots, sync

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Folder"]

_SCRIPT = "script.sql"
_LOCK = "reading"


class Folder:
    """The rows that a stream keeps; made when first written to.

    ``name`` says what for: what is retained for questions and what samples are drawn from lie
    apart, as a stream may be started again with the one and without the other.
    """

    def __init__(self, checkpoint: Path, name: str = "retained") -> None:
        self._snapshots = Snapshots(checkpoint / "ids")
        self.name, self.root = name, checkpoint / name

    def begin(self, script: str) -> None:
        """Make the folder, and note what the stream runs."""
        try:
            self.root.mkdir(exist_ok=True)
            (self.root / _LOCK).touch()
            with whole(self.root / _SCRIPT) as file:
                file.write(script.encode())
        except OSError as error:
            raise self._unwritable(error) from error

    def script(self) -> str:
        """What the stream runs."""
        return (self.root / _SCRIPT).read_text(encoding="utf-8")

    def write(self, rows: DataFrame, name: str) -> list[Piece]:
        """Have Spark write rows (their pane first) into folder ``name``; those with some."""
        passing, folder = self.root / f".{name}.tmp", self.root / name
        try:
            shutil.rmtree(folder, ignore_errors=True)
            rows.write.mode("overwrite").parquet(str(passing))
            # where there are no rows, Spark writes a file without any
            if not any(passing.glob("part-*.parquet")):
                raise CheckpointError(f"no rows came to {passing}: the workers write elsewhere")
            pieces = list(_tidied(passing, name))
            passing.rename(folder)
            sync(self.root)
        except (OSError, pa.ArrowException) as error:
            if isinstance(error, CheckpointError):
                raise
            raise self._unwritable(error) from error
        finally:
            shutil.rmtree(passing, ignore_errors=True)
        return pieces

    def path(self, piece: Piece) -> Path:
        """Where a file lies."""
        return self.root / piece.name

    def sweep(self) -> None:
        """Remove what no snapshot names; later, if somebody reads."""
        if not self.root.is_dir():
            return
        manifests = [Manifest.load(folder, self.name) for folder in self._snapshots.folders()]
        named = {piece.batch for manifest in manifests if manifest for piece in manifest.pieces}
        unnamed = [
            entry for entry in self.root.iterdir() if entry.is_dir() and entry.name not in named
        ]
        if not unnamed:
            return
        with suppress(OSError), (self.root / _LOCK).open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for entry in unnamed:
                shutil.rmtree(entry, ignore_errors=True)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep every file where it is, while inside."""
        with ExitStack() as held:
            with suppress(OSError):
                fcntl.flock(held.enter_context((self.root / _LOCK).open("rb")), fcntl.LOCK_SH)
            yield

    def _unwritable(self, error: Exception) -> CheckpointError:
        fault = getattr(error, "strerror", None) or str(error).split("\n", maxsplit=1)[0]
        return CheckpointError(f"cannot keep rows in {self.root}: {fault}")


def _tidied(folder: Path, name: str) -> Iterator[Piece]:
    """The files that hold rows, on the disk and under short names; nothing else stays."""
    parts = sorted(folder.glob("part-*.parquet"))
    for other in set(folder.iterdir()) - set(parts):
        other.unlink()
    number = 0
    for part in parts:
        footer = pq.read_metadata(part)
        if not footer.num_rows:
            part.unlink()
            continue
        sync(part)
        length = part.stat().st_size
        part.rename(folder / f"{number}.parquet")
        groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
        panes = [group.column(0).statistics for group in groups]
        first, last = min(pane.min for pane in panes), max(pane.max for pane in panes)
        yield Piece(f"{name}/{number}.parquet", footer.num_rows, length, first, last)
        number += 1
    sync(folder)
