"""A real cluster of several processes: the same answers, also when a worker dies in mid-job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ids
from tests.spark.cluster import Cluster, free_port, running
from tests.spark.cluster_jobs import SETTINGS
from tests.spark.tables import events, same

pytestmark = pytest.mark.slow

ITEMS = """
REGISTER PREDICATE eu AS (region = 'EU') ON events;
SELECT AVG(latency) AS mean, SHAPLEY_ATTRIBUTE(AVG(latency), eu WITH (SHARE, LIFT)) AS phi,
       SHAPLEY_DELTA(VAR_POP(level), eu AND tier = 'premium') AS change
FROM events WHERE bytes IS NOT NULL WINDOW w AS (PARTITION BY shop ORDER BY event_time
"""
WINDOWS = {
    "time": "RANGE INTERVAL '10' MINUTE PRECEDING SLIDE INTERVAL '1' MINUTE",
    "count": "ROWS 500 PRECEDING SLIDE 40 ROWS",
}
EXECUTORS = ("spark.executor.memory", "spark.executor.extraJavaOptions")
FILES, ROWS = 16, 2_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for number in range(FILES):
        pq.write_table(events(number, ROWS), folder / f"{number:02}.parquet")
    return folder


def script(folder: Path, window: str) -> Path:
    path = folder / "query.sql"
    path.write_text(f"{ITEMS} {WINDOWS[window]}) EMIT CHANGES;")
    return path


def started(command: list[object]) -> subprocess.CompletedProcess[str]:
    """A driver of its own, whose workers run this Python."""
    return subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        check=False,
    )


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return started([Path(sys.executable).with_name("ids"), "run", *arguments])


@pytest.mark.parametrize("window", WINDOWS)
def test_a_worker_killed_in_mid_job_changes_no_bit(
    cluster: Cluster, data: Path, tmp_path: Path, window: str
) -> None:
    query, out = script(tmp_path, window), tmp_path / "out.parquet"
    victim, *_ = cluster.workers(2)
    program = [sys.executable, "-m", "tests.spark.cluster_jobs"]
    done = started([*program, cluster.master, query, data, out, victim])
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert FILES // 2 <= told["done"] < told["tasks"] == FILES
    assert told["executors"] == 1
    same(ids.sql(query.read_text(), events=data), pq.read_table(out))


def test_a_run_goes_to_the_cluster_by_its_master(
    cluster: Cluster, data: Path, tmp_path: Path
) -> None:
    query, out = script(tmp_path, "time"), tmp_path / "out.parquet"
    cluster.workers(2)
    settings = [f"{name}={SETTINGS[name]}" for name in ("spark.driver.host", *EXECUTORS)]
    conf = [word for setting in settings for word in ("--conf", setting)]
    table = ["--table", f"events={data}"]
    done = run(query, *table, "--output", out, "--master", cluster.master, *conf)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    expected: pa.Table = ids.sql(query.read_text(), events=data)
    same(expected, pq.read_table(out))


def test_a_master_that_is_not_there_is_named_in_one_line(data: Path, tmp_path: Path) -> None:
    master = f"spark://127.0.0.1:{free_port()}"
    done = run(script(tmp_path, "time"), "--table", f"events={data}", "--master", master)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: cannot connect to Spark master {master}: Connection refused; "
        "check the address, and that it runs\n"
    )
