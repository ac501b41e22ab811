"""Spark Connect: the same answers over a session that has no JVM of its own.

Batches run as anywhere, with time and with count windows (for these the server's Python must have
IDS); a streaming DataFrame gives a streaming DataFrame.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import ids
from ids.errors import SetupError
from ids.spark import local_session
from tests.spark.cluster import free_port
from tests.spark.connect_jobs import COUNT, TIME
from tests.spark.connect_server import serving
from tests.spark.tables import events, same

pytest.importorskip("grpc", reason="pyspark[connect] is not installed")


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return events(seed=11, rows=1_000)


@pytest.fixture(scope="module")
def jobs(
    table: pa.Table, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, str], str]:
    """Where the answers are, the refusals, and what a person would have seen on stderr."""
    folder = tmp_path_factory.mktemp("connect")
    (folder / "in").mkdir()
    pq.write_table(table, folder / "in" / "events.parquet")
    with serving(folder) as url:
        program = [sys.executable, "-m", "tests.spark.connect_jobs"]
        command = [*program, url, str(folder / "in"), str(folder)]
        root = Path(__file__).parents[2]
        done = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("job", "script"), [("time", TIME), ("count", COUNT), ("files", TIME)])
def test_a_batch_over_connect_is_that_of_the_in_process_engine(
    jobs: tuple[Path, dict[str, str], str], table: pa.Table, job: str, script: str
) -> None:
    same(ids.sql(script, events=table), pq.read_table(jobs[0] / f"{job}.parquet"))


@pytest.mark.slow
def test_a_stream_over_connect_has_the_emits_that_its_watermark_has_passed(
    jobs: tuple[Path, dict[str, str], str], table: pa.Table
) -> None:
    found = pq.read_table(jobs[0] / "stream.parquet")
    last = pc.max(found["emit_at"])
    whole = ids.sql(TIME, events=table)
    passed = whole.filter(pc.less_equal(whole["emit_at"], last))
    assert 0 < whole.num_rows - passed.num_rows < passed.num_rows
    same(passed, found)


@pytest.mark.slow
def test_what_goes_wrong_over_connect_is_one_line_and_nothing_beside_it(
    jobs: tuple[Path, dict[str, str], str],
) -> None:
    _, refusals, stderr = jobs
    assert refusals["bad row"].startswith("DataError: NaN of 'x' in t, row 1; leave such rows out")
    assert stderr == ""


def test_a_server_that_is_not_there_is_named_in_one_line() -> None:
    url = f"sc://127.0.0.1:{free_port()}"
    with pytest.raises(
        SetupError, match=f"^cannot connect to Spark master {url}: Connection refused; check"
    ):
        local_session(url)
