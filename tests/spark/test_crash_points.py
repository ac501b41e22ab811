"""A stream's runtime dies at each of its writes and goes on: every point, with a step of our own.

No Spark runs here. ``test_stream_faults`` dies at a few of the same points on Spark, and at all of
them in the slow set.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ids.errors import StateError
from ids.spark.streaming.batches import Batches, Totals
from ids.spark.streaming.outputs import file_output
from ids.spark.streaming.snapshots import Snapshots
from ids.spark.streaming.step import Batch, Counts, Faults, Outcome

DELTAS = [5, -3, 11, 2, 7]


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


def drive(root: Path, output: str, done: list[int]) -> Totals:
    """What Spark does: batch after batch, noting each end in ``done``, where it also goes on."""
    snapshots = Snapshots(root / "ids")
    place = file_output(f"{root}/{output}")
    batches = Batches(RunningSum(), lambda: None, snapshots, place, 0, None, None, None, ())
    for number in range(len(done), len(DELTAS)):
        batches(None, number)  # type: ignore[arg-type]
        done.append(number)
    return batches.progress.totals


def contents(place: Path) -> dict[str, bytes]:
    files = [place] if place.is_file() else place.iterdir()
    return {file.name: file.read_bytes() for file in files}


@pytest.mark.parametrize("output", ["out/", "csv/", "out.jsonl", "out.csv"])
def test_a_crash_at_any_write_leaves_the_answer_of_an_undisturbed_run(
    tmp_path: Path, output: str
) -> None:
    (tmp_path / "calm/ids").mkdir(parents=True)
    with dying_at(10_000) as left:
        totals = drive(tmp_path / "calm", output, [])
    writes = 10_000 - left[0]
    assert writes >= 4 * len(DELTAS)
    for moment in range(1, writes + 1):
        root = tmp_path / f"crash {moment}"
        (root / "ids").mkdir(parents=True)
        done: list[int] = []
        with dying_at(moment), pytest.raises((Crash, StateError)):
            drive(root, output, done)
        assert len(done) < len(DELTAS)
        assert drive(root, output, done) == totals, moment
        assert contents(root / output) == contents(tmp_path / "calm" / output), moment


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
