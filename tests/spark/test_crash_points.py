"""A stream's runtime dies at each of its writes and goes on: every point, with a step of our own.

No Spark runs here. ``test_stream_faults`` dies at a few of the same points on Spark, and at all of
them in the slow set.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ids.errors import CheckpointError, StateError
from ids.model import local_path
from ids.sink import Format, LocalFiles, write_stream
from ids.spark import spark_write as parts
from ids.spark.file_system import files_at
from ids.spark.spark_prepare import Faults
from ids.spark.stream_batch import Batch, Batches, Counts, Emits, Outcome
from ids.spark.stream_checkpoint import Totals
from ids.spark.stream_output import file_output
from ids.spark.stream_store import Piece, Store

DELTAS = [5, -3, 11, 2]
NEVER = 10_000
OUTPUTS = ["out/", "out.csv/", "out.jsonl", "out.csv"]


class Crash(BaseException):
    """The end of the process, as far as the stream can tell."""


@contextmanager
def dying_at(moment: int) -> Iterator[list[int]]:
    """From the given write to the disk on, nothing reaches it; gives the writes left till then."""
    left = [moment]

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def act(*arguments: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] <= 0:
                raise Crash
            return real(*arguments, **options)

        return act

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", dying(lambda _: None))  # a test outlives no power cut
        for name in ("rename", "replace", "unlink", "rmdir"):
            patch.setattr(os, name, dying(getattr(os, name)))
        yield left


class Rows:
    """A table that is written as Spark writes one: files in a directory, the last may be empty.

    Spark dies with the driver, so each of the files is a write at which that may happen.
    """

    def __init__(self, table: pa.Table) -> None:
        self.write, self._table = self, table

    def mode(self, _: str) -> Rows:
        return self

    def options(self, **_: str) -> Rows:
        return self

    def partitionBy(self) -> Rows:
        return self

    def parquet(self, uri: str) -> None:
        self.save(local_path(uri), Format.PARQUET)

    def save(self, place: Path, format_: Format) -> list[str]:
        assert not place.exists(), "Spark was to write anew"
        place.mkdir(parents=True)
        half = -(-self._table.num_rows // 2)
        for number, part in enumerate((self._table[:half], self._table[half:])):
            with (place / f"part-{number:05d}{format_.value}").open("wb") as file:
                write_stream(part, file, format_)
                os.fsync(file.fileno())
        return [f"part-{number:05d}{format_.value}" for number in range(2)]

    def toArrow(self) -> pa.Table:
        return self._table


def fake_parts(
    data: Rows, _: pa.Schema, files: LocalFiles, name: str, format_: Format
) -> tuple[list[str], int]:
    """Stands for ``write_parts``, which needs Spark."""
    shutil.rmtree(files.path / name, ignore_errors=True)
    names = data.save(files.path / name, format_)
    files.sync(name)
    return names, data.toArrow().num_rows


class RunningSum:
    """A step that remembers a total and the last two numbers; emits it as often as its digits.

    The total is a fact of the manifest, each number a piece of the store.
    """

    schema = pa.schema({"batch": pa.int64(), "total": pa.int64()})

    def advance(self, batch: Batch, on_faults: Faults) -> Outcome:
        before, held = batch.facts or {"total": 0}, batch.pieces("numbers")
        number, delta = batch.number, DELTAS[batch.number]
        known = [[each] for each in DELTAS[max(0, number - 2) : number]]
        assert [numbers(batch.store, piece) for piece in held] == known
        total = before["total"] + delta
        if number == 1:  # one that is written again, and one that is not needed after all
            self._write(batch, "numbers", 0)
            self._write(batch, "nothing", 0)
        piece = self._write(batch, "numbers", delta)
        assert (piece.rows, piece.total, piece.first, piece.last) == (1, delta, delta, delta)
        size = len(str(total))
        emits: Any = Rows(pa.table([[number] * size, [total] * size], schema=self.schema))
        pieces = {"numbers": [*held[-1:], piece]}
        counts = Counts(size, 0, 0)
        return Outcome(Emits(emits, self.schema), counts, number, {"total": total}, pieces)

    def _write(self, batch: Batch, kind: str, number: int) -> Piece:
        rows: Any = Rows(pa.table({"ids_p": [number]}))
        return batch.store.write(rows, batch.number, kind, total="ids_p", panes="ids_p")


def numbers(store: Store, piece: Piece) -> list[int]:
    assert isinstance(store.files, LocalFiles)
    found = sorted((store.files.path / piece.name).glob("part-*"))
    assert (len(found), sum(file.stat().st_size for file in found)) == (piece.files, piece.bytes)
    return [number for file in found for number in pq.read_table(file)["ids_p"].to_pylist()]


def drive(root: Path, output: str, seen: dict[int, dict[str, bytes]] | None = None) -> Totals:
    """What Spark does: batch after batch, noting the end of each, from where its notes end.

    ``seen`` is given what the output holds after each batch.
    """
    store, ends = Store(files_at(root)), root / "spark/commits"
    ends.mkdir(parents=True, exist_ok=True)
    (root / "ids").mkdir(exist_ok=True)
    place = file_output(f"{root}/{output}")
    batches = Batches(RunningSum(), lambda: None, store, place, 0, None, None, None)
    for number in range(ended(root), len(DELTAS)):
        batches(MagicMock(), number)
        (ends / str(number)).touch()
        if seen is not None:
            seen[number] = contents(root / output)
    return batches.progress.totals


def ended(root: Path) -> int:
    """How many batches are done, as Spark knows it."""
    return len([*(root / "spark/commits").glob("*")])


def contents(place: Path) -> dict[str, bytes]:
    files = [place] if place.is_file() else place.iterdir()
    return {file.name: file.read_bytes() for file in files}


def remembered(root: Path) -> tuple[object, list[list[int]], list[str]]:
    """What the newest manifest tells, and all that lies in the store but for names of attempts."""
    store = Store(files_at(root))
    manifest = store.latest()
    assert manifest is not None
    on_disk = [f"{path.name[:8]}{path.name[13:]}" for path in (root / "data").iterdir()]
    on_disk += [path.name for path in (root / "ids").iterdir()]
    kept = [numbers(store, piece) for piece in manifest.of("numbers")]
    return manifest.facts["step"], kept, sorted(on_disk)


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "write_parts", fake_parts)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr("ids.spark.stream_store._KEPT", 2)  # so that few batches will do


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_crash_at_any_write_leaves_the_answer_of_an_undisturbed_run(
    tmp_path: Path, output: str
) -> None:
    calm = tmp_path / "calm"
    after: dict[int, dict[str, bytes]] = {}
    with dying_at(NEVER) as left:
        totals = drive(calm, output, after)
    writes = NEVER - left[0]
    assert writes >= 10 * len(DELTAS)
    rows = sum(len(str(total)) for total in accumulate(DELTAS))
    assert (totals.rows, totals.emits) == (rows, rows)
    manifests = ["00000002.json", "00000003.json"]
    on_disk = [*(f"{n:08d}-numbers" for n in (1, 2, 3)), *manifests]
    assert remembered(calm) == ({"total": 15}, [[11], [2]], sorted(on_disk))
    for moment in range(1, writes + 1):
        root = tmp_path / f"crash {moment}"
        with dying_at(moment), pytest.raises((Crash, StateError)):
            drive(root, output)
        assert ended(root) < len(DELTAS)
        with dying_at(1 + moment % 7), suppress(Crash, StateError):  # on its way back, too
            drive(root, output)
        seen: dict[int, dict[str, bytes]] = {}
        with dying_at(NEVER):
            assert drive(root, output, seen) == totals, moment
        assert seen == {number: after[number] for number in seen}, moment
        assert contents(root / output) == after[len(DELTAS) - 1], moment
        assert remembered(root) == remembered(calm), moment


@pytest.mark.parametrize("output", ["out/", "out.jsonl"])
def test_a_crash_between_the_manifest_and_sparks_own_note_repeats_nothing(
    tmp_path: Path, output: str
) -> None:
    totals = drive(tmp_path, output)
    before, state = contents(tmp_path / output), contents(tmp_path / "ids")
    (tmp_path / "spark/commits/3").unlink()
    assert drive(tmp_path, output) == totals
    assert contents(tmp_path / output) == before
    assert contents(tmp_path / "ids") == state


@pytest.mark.parametrize("batch", [0, 1, 3])
def test_half_a_manifest_is_a_batch_that_is_not_done(tmp_path: Path, batch: int) -> None:
    totals = drive(tmp_path / "calm", "out.csv")
    # nothing, a letter, half, no digest (with and without the line's end), no end of the digest
    for number, cut in enumerate((0, 1, 300, -66, -65, -2)):
        root = tmp_path / f"{number}"
        with pytest.MonkeyPatch.context() as patch, pytest.raises(StateError):
            patch.setattr(LocalFiles, "write", torn_at(batch, cut))
            drive(root, "out.csv")
        assert ended(root) == batch
        latest = Store(files_at(root)).latest()
        assert (latest and latest.batch) == (batch - 1 if batch else None)
        assert drive(root, "out.csv") == totals
        assert contents(root / "out.csv") == contents(tmp_path / "calm/out.csv")
        assert remembered(root) == remembered(tmp_path / "calm")


def torn_at(batch: int, cut: int) -> Callable[..., None]:
    """A ``write`` that dies in the middle of a batch's manifest, as one on a remote disk may."""
    real = LocalFiles.write

    def write(self: LocalFiles, name: str, content: bytes) -> None:
        if name != f"ids/{batch:08d}.json":
            return real(self, name, content)
        assert len(content) > 500
        (self.path / name).write_bytes(content[:cut])
        raise Crash

    return write


def test_no_cut_and_no_bit_of_a_manifest_goes_unseen(tmp_path: Path) -> None:
    drive(tmp_path, "out.csv")
    store, file = Store(files_at(tmp_path)), tmp_path / f"ids/{3:08d}.json"
    whole = file.read_bytes()
    for place in range(len(whole) - 1):  # the last is the end of the line
        file.write_bytes(whole[:place])
        assert store.load(3) is None, place
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with suppress(CheckpointError):  # no crash does that
            assert store.load(3) is None, place
    file.write_bytes(whole)
    assert store.load(3) == store.latest()


@pytest.mark.parametrize("harm", ["gone", "cut", "bit"])
@pytest.mark.parametrize("batch", [0, 3])
def test_a_harmed_manifest_of_a_batch_that_spark_has_noted_is_refused(
    tmp_path: Path, batch: int, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "DELTAS", DELTAS[: batch + 1])
    drive(tmp_path, "out/")
    file = tmp_path / f"ids/{batch:08d}.json"
    whole = file.read_bytes()
    emits, data = contents(tmp_path / "out"), sorted(os.walk(tmp_path / "data"))
    harmed = {"gone": None, "cut": whole[:-9], "bit": whole.replace(b"total", b"tota1", 1)}[harm]
    file.unlink()
    if harmed is not None:
        file.write_bytes(harmed)
    with pytest.raises(CheckpointError, match=rf"{file} is missing or was altered; restore the"):
        drive(tmp_path, "out/")
    # and nothing was taken away that is needed when it is put back
    assert contents(tmp_path / "out") == emits
    assert sorted(os.walk(tmp_path / "data")) == data
    file.write_bytes(whole)
    drive(tmp_path, "out/")


def test_two_manifests_that_are_not_whole_are_no_crash(tmp_path: Path) -> None:
    drive(tmp_path, "out/")
    shutil.rmtree(tmp_path / "spark")
    for number in (2, 3):
        os.truncate(tmp_path / f"ids/{number:08d}.json", 99)
    with pytest.raises(CheckpointError, match="is missing or was altered"):
        drive(tmp_path, "out/")
