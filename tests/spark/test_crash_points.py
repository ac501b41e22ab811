"""A stream's runtime dies at each of its writes and goes on: every point, with a step of our own.

No Spark runs here. ``test_stream_faults`` dies at a few of the same points on Spark, and at all of
them in the slow set.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ids.errors import StateError
from ids.spark.streaming.batches import Batches, Totals
from ids.spark.streaming.outputs import file_output
from ids.spark.streaming.retained.folder import Folder
from ids.spark.streaming.retained.manifest import Manifest
from ids.spark.streaming.snapshots import Snapshots
from ids.spark.streaming.step import Batch, Counts, Faults, Outcome

DELTAS = [5, -3, 11, 2, 7]
NEVER = 10_000


class Crash(BaseException):
    """The end of the process, as far as the stream can tell."""


@contextmanager
def dying_at(moment: int) -> Iterator[list[int]]:
    """From the given write to the disk on, nothing reaches it; gives the writes left till then."""
    left = [moment]

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def act(*arguments: Any) -> Any:
            left[0] -= 1
            if left[0] <= 0:
                raise Crash
            return real(*arguments)

        return act

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", dying(lambda _: None))  # a test outlives no power cut
        for name in ("rename", "replace"):
            patch.setattr(os, name, dying(getattr(os, name)))
        yield left


class RunningSum:
    """A step that remembers one number, and emits it as often as it has digits."""

    schema = pa.schema({"batch": pa.int64(), "total": pa.int64()})

    def advance(self, batch: Batch, on_faults: Faults) -> Outcome:
        before = int((batch.before / "total").read_text()) if batch.before else 0
        total = before + DELTAS[batch.number]
        (batch.fresh / "total").write_text(str(total))
        size = len(str(total))
        emits = pa.table([[batch.number] * size, [total] * size], schema=self.schema)
        return Outcome(emits, Counts(size, 0, 0), batch.number, 1)


class Rows:
    """Numbers that are written as Spark writes rows: files in a folder, one of them without any."""

    def __init__(self, *numbers: int) -> None:
        self.write, self._numbers = self, numbers

    def mode(self, _: str) -> Rows:
        return self

    def parquet(self, place: str) -> None:
        shutil.rmtree(place, ignore_errors=True)
        Path(place).mkdir()
        for part, held in enumerate((self._numbers, ())):
            table = pa.table({"ids_p": pa.array(held, pa.int64())})
            pq.write_table(table, f"{place}/part-{part}.parquet")


class Retained(RunningSum):
    """The same, and the numbers of the last three batches are kept in files."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        folder.root.mkdir(exist_ok=True)

    def advance(self, batch: Batch, on_faults: Faults) -> Outcome:
        known = Manifest.load(batch.before) if batch.before else None
        pieces = [*(known.pieces[-2:] if known else ())]
        rows: Any = Rows(DELTAS[batch.number])
        pieces += self._folder.write(rows, f"{batch.number:08d}")
        Manifest({}, {}, 10, 3, pieces=tuple(pieces)).save(batch.fresh)
        return super().advance(batch, on_faults)


def drive(
    root: Path,
    output: str,
    done: list[int],
    *,
    retain: bool = False,
    seen: dict[int, dict[str, bytes]] | None = None,
) -> Totals:
    """What Spark does: batch after batch, noting each end in ``done``, where it also goes on.

    ``seen`` is given what the output holds after each batch.
    """
    snapshots, folder = Snapshots(root / "ids"), Folder(root)
    place = file_output(f"{root}/{output}")
    step = Retained(folder) if retain else RunningSum()
    sweeps = (folder.sweep,)
    batches = Batches(step, lambda: None, snapshots, place, 0, None, None, None, sweeps)
    for number in range(len(done), len(DELTAS)):
        batches(None, number)  # type: ignore[arg-type]
        done.append(number)
        if seen is not None:
            seen[number] = contents(root / output)
    return batches.progress.totals


def contents(place: Path) -> dict[str, bytes]:
    files = [place] if place.is_file() else place.iterdir()
    return {file.name: file.read_bytes() for file in files}


@pytest.mark.parametrize("output", ["out/", "csv/", "out.jsonl", "out.csv"])
def test_a_crash_at_any_write_leaves_the_answer_of_an_undisturbed_run(
    tmp_path: Path, output: str
) -> None:
    (tmp_path / "calm/ids").mkdir(parents=True)
    calm: dict[int, dict[str, bytes]] = {}
    with dying_at(NEVER) as left:
        totals = drive(tmp_path / "calm", output, [], seen=calm)
    writes = NEVER - left[0]
    assert writes >= 4 * len(DELTAS)
    rows = sum(len(str(total)) for total in accumulate(DELTAS))
    assert (totals.rows, totals.emits) == (rows, rows)
    for moment in range(1, writes + 1):
        root = tmp_path / f"crash {moment}"
        (root / "ids").mkdir(parents=True)
        done: list[int] = []
        with dying_at(moment), pytest.raises((Crash, StateError)):
            drive(root, output, done)
        assert len(done) < len(DELTAS)
        with dying_at(1 + moment % 7), suppress(Crash, StateError):  # on its way back, too
            drive(root, output, done)
        seen: dict[int, dict[str, bytes]] = {}
        with dying_at(NEVER):
            assert drive(root, output, done, seen=seen) == totals, moment
        assert seen == {number: calm[number] for number in seen}, moment
        assert contents(root / output) == calm[len(DELTAS) - 1], moment


@pytest.mark.parametrize("output", ["out/", "out.jsonl"])
def test_a_crash_between_the_snapshot_and_sparks_own_note_repeats_nothing(
    tmp_path: Path, output: str
) -> None:
    (tmp_path / "ids").mkdir()
    done: list[int] = []
    totals = drive(tmp_path, output, done)
    before = contents(tmp_path / output)
    done.pop()  # Spark has not heard that the last batch is done
    assert drive(tmp_path, output, done) == totals
    assert contents(tmp_path / output) == before


def test_kept_rows_are_those_of_an_undisturbed_run_after_a_crash_at_any_write(
    tmp_path: Path,
) -> None:
    def kept(root: Path) -> dict[str, list[int]]:
        manifest = Manifest.load(Snapshots(root / "ids").folders()[-1])
        assert manifest is not None
        paths = {piece.name: root / "retained" / piece.name for piece in manifest.pieces}
        assert all(paths[p.name].stat().st_size == p.bytes for p in manifest.pieces)
        return {name: pq.read_table(path)["ids_p"].to_pylist() for name, path in paths.items()}

    (tmp_path / "calm/ids").mkdir(parents=True)
    with dying_at(NEVER) as left:
        drive(tmp_path / "calm", "out/", [], retain=True)
    right = {f"{n:08d}/0.parquet": [DELTAS[n]] for n in (2, 3, 4)}
    assert kept(tmp_path / "calm") == right
    on_disk = sorted(path.name for path in (tmp_path / "calm/retained").iterdir())
    for moment in range(1, NEVER - left[0] + 1):
        root, done = tmp_path / f"crash {moment}", list[int]()
        (root / "ids").mkdir(parents=True)
        with dying_at(moment), pytest.raises((Crash, StateError)):
            drive(root, "out/", done, retain=True)
        with dying_at(NEVER):
            drive(root, "out/", done, retain=True)
        assert kept(root) == right, moment
        assert sorted(path.name for path in (root / "retained").iterdir()) == on_disk, moment


def test_what_a_crash_leaves_of_an_old_snapshot_goes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object, **__: object) -> None:
        raise Crash

    snapshots = Snapshots(tmp_path)
    for number in range(5):
        with monkeypatch.context() as patched, suppress(Crash):
            snapshots.fresh(number)
            if number == 3:
                patched.setattr(shutil, "rmtree", crash)
            snapshots.commit(number, {})
        if number == 3:
            assert sorted(path.name for path in tmp_path.iterdir())[0] == ".00000000.old"
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "00000002",
        "00000003",
        "00000004",
    ]
