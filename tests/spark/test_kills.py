"""Kill -9 of executors and of drivers, again and again: the stream of an undisturbed run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import sleep

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import ids
from ids.model import microseconds
from ids.spark.stream_checkpoint import Totals
from tests.spark.cluster import Cluster, running
from tests.spark.kill_jobs import BATCHES, LATENESS, OUTPUTS, SCRIPTS, begin, done
from tests.spark.streams import UTC, arrive, events, expected
from tests.spark.tables import same
from tests.spark.test_cluster import started

pytestmark = pytest.mark.slow

PROGRAM = [sys.executable, "-m", "tests.spark.kill_jobs"]
MOMENTS = 30
FILES = 40  # a micro-batch each, more than the streams take in before the last of these moments
FILE = 40  # rows


def unruly(files: int) -> pa.Table:
    """Events of which some come late, a whole file among them, and some have no number."""
    rng = np.random.default_rng(131)
    table = events(files * FILE, 131, files * 10)
    at = table["event_time"].cast(pa.int64()).to_numpy().copy()
    at[(rng.random(len(at)) < 0.05) & (at > 60_000_000)] -= 60_000_000
    at[7 * FILE : 8 * FILE] = 1
    latency = table["latency"].to_numpy().copy()
    empty = np.isnan(latency)
    latency[rng.random(len(at)) < 0.02] = np.inf
    values = pa.array(latency, mask=empty)
    table = table.set_column(0, "event_time", pa.array(at, UTC))
    return table.set_column(3, "latency", values)


def undisturbed(window: str, table: pa.Table, batch: int) -> tuple[pa.Table, Totals]:
    """The emits and the totals of batches of so many rows, as recounted in process."""
    at = table["event_time"].cast(pa.int64()).to_numpy()
    bad = np.isinf(table["latency"].to_numpy())
    late = np.zeros(len(at), np.bool_)
    for first in range(batch, len(at), batch):
        passed = at[:first][~bad[:first]].max() - microseconds(LATENESS)
        late[first : first + batch] = (at < passed)[first : first + batch]
    late &= ~bad
    kept = table.filter(pa.array(~late & ~bad))
    emits = expected(SCRIPTS[window], kept, LATENESS)
    counts = {"late": int(late.sum()), "bad": int(bad.sum())}
    return emits, Totals(rows=table.num_rows, emits=emits.num_rows, **counts)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("cluster")) as began:
        yield began


@pytest.mark.parametrize("window", SCRIPTS)
def test_executors_killed_in_ten_batches_change_no_bit_and_no_count(
    cluster: Cluster, tmp_path: Path, window: str
) -> None:
    files = 3 * (BATCHES + 4)
    table = unruly(files)
    arrive(table, tmp_path / "in", range(FILE, files * FILE, FILE))
    program = [*PROGRAM, tmp_path, window, cluster.master, *cluster.workers(2)]
    ended = started(program)
    assert ended.returncode == 0, ended.stderr
    killed = json.loads(ended.stdout)
    assert len(killed) == BATCHES
    assert all(tasks > 0 for tasks, _ in killed.values())
    assert {executors for _, executors in killed.values()} == {1, 2}
    emits, totals = undisturbed(window, table, 3 * FILE)
    parts = sorted((tmp_path / "out").glob("part-*.parquet"))
    same(emits, pa.concat_tables(map(pq.read_table, parts)))
    assert ids.spark.status(tmp_path / "ck").totals == totals
    bad = [pq.read_table(file).num_rows for file in (tmp_path / "bad").iterdir()]
    assert sum(bad) == totals.bad > 0
    assert totals.late > FILE


def test_a_driver_killed_at_thirty_moments_leaves_the_stream_of_an_undisturbed_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    rng = np.random.default_rng(132)
    table = unruly(FILES)
    arrive(table, tmp_path / "in", range(FILE, table.num_rows, FILE))
    driver = [*PROGRAM, str(tmp_path)]
    victims: list[int] = []
    try:
        victims.extend(_killed(driver, tmp_path, moment, rng) for moment in range(MOMENTS))
        finished = subprocess.run(driver, check=False, capture_output=True, text=True)
    finally:
        for group in victims:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
    assert finished.returncode == 0, finished.stderr
    for window in SCRIPTS:
        calm, here = tmp_path / "calm" / window, tmp_path / window
        begin(spark, tmp_path, window, calm, output=OUTPUTS[window]).await_termination()
        assert _lines(here / OUTPUTS[window]) == _lines(calm / OUTPUTS[window])
        assert sorted(_lines(here / "bad")) == sorted(_lines(calm / "bad"))
        assert _told(here) == _told(calm)
        _, totals = undisturbed(window, table, FILE)
        assert ids.spark.status(here / "ck").totals == totals


def _killed(driver: list[str], folder: Path, moment: int, rng: np.random.Generator) -> int:
    """Start a driver, and kill it, or half of it, on its way; its process group."""
    with subprocess.Popen(
        driver, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        if moment % 2:  # so that one stream, then the other, gets on
            checkpoint = folder / [*SCRIPTS][moment // 2 % 2] / "ck"
            before = done(checkpoint)
            while done(checkpoint) == before < FILES and process.poll() is None:
                sleep(0.01)
        sleep(rng.random() * (0.8 if moment % 2 else 2.5))
        assert process.poll() is None, "the streams have come to their end"
        java = [int(pid) for pid in _children(process.pid)]
        victims: list[int] = [[process.pid], java, [process.pid, *java]][rng.integers(3)]
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
    return process.pid


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def _lines(place: Path) -> list[str]:
    """The rows of a file or of a directory's files, in order.

    Not the files: killed between two notes of its own, Spark takes two files in one batch.
    """
    if place.is_file():
        return place.read_text("utf-8").splitlines()
    return [repr(row) for row in pq.read_table(place).to_pylist()]


def _told(folder: Path) -> tuple[object, ...]:
    """How the stream stands."""
    found = ids.spark.status(folder / "ck")
    return found.totals, found.watermark, found.items, found.state_rows
