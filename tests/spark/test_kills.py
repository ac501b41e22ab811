"""Kill -9 of executors, again and again: the stream of an undisturbed run."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ids
from ids.model.window import microseconds
from ids.spark.streaming.progress import Totals
from tests.spark.cluster import Cluster, running
from tests.spark.kill_jobs import BATCHES, LATENESS, SCRIPTS
from tests.spark.streams import UTC, arrive, events, expected
from tests.spark.tables import same
from tests.spark.test_cluster import started

pytestmark = pytest.mark.slow

PROGRAM = [sys.executable, "-m", "tests.spark.kill_jobs"]
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
