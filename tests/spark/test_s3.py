"""``s3a://`` for every kind of place, against a local S3 server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ids
from tests.spark.cluster import JAVA_OPTIONS, LIGHT
from tests.spark.maven import NoNetwork
from tests.spark.s3 import Bucket, connector_jars, running, server_jar
from tests.spark.streams import PAPER, events, expected
from tests.spark.tables import same

pytestmark = pytest.mark.slow

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    """A bucket of a local server; skips where the jars cannot be fetched."""
    try:
        connector, server = connector_jars(), server_jar()
    except NoNetwork as error:
        pytest.skip(f"the jars of s3a:// cannot be fetched: {error}")
    with running(server, connector, tmp_path_factory.mktemp("s3")) as bucket:
        yield bucket


@pytest.fixture
def run(bucket: Bucket, tmp_path: Path) -> Run:
    def called(*options: str) -> subprocess.CompletedProcess[str]:
        query = tmp_path / "query.sql"
        query.write_text(PAPER)
        settings = bucket.settings() | {JAVA_OPTIONS: LIGHT}
        conf = [word for item in settings.items() for word in ("--conf", "=".join(item))]
        ids_ = [str(Path(sys.executable).with_name("ids")), "run", str(query)]
        command = [*ids_, "--master", "local[2]", *options, *conf]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return called


def put(bucket: Bucket, key: str, table: pa.Table) -> None:
    content = BytesIO()
    pq.write_table(table, content)
    bucket.put(key, content.getvalue())


def get(bucket: Bucket, prefix: str) -> pa.Table:
    keys = [key for key in bucket.keys(prefix) if key.endswith(".parquet")]
    return pa.concat_tables(pq.read_table(BytesIO(bucket.get(key))) for key in keys)


def spoiled(table: pa.Table) -> pa.Table:
    """The first latency is NaN."""
    values = pa.array([float("nan"), *table["latency"].to_pylist()[1:]])
    return table.set_column(table.column_names.index("latency"), "latency", values)


def test_a_batch_has_all_its_places_in_a_bucket(bucket: Bucket, run: Run) -> None:
    table = spoiled(events(400))
    for number in range(2):
        put(bucket, f"batch/in/{number}.parquet", table.slice(number * 200, 200))
    places = [f"events={bucket.uri}/batch/in/", "--bad-rows", f"{bucket.uri}/batch/bad"]
    answer = ids.sql(PAPER, events=table.slice(1))
    for target in ("out/", "one.parquet", "one.csv"):
        done = run("--table", *places, "--output", f"{bucket.uri}/batch/{target}")
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
    same(answer, get(bucket, "batch/out/"))
    same(answer, get(bucket, "batch/one.parquet"))
    assert len(bucket.get("batch/one.csv").splitlines()) == 1 + answer.num_rows
    assert get(bucket, "batch/bad/").num_rows == 1
    written = [key for key in bucket.keys("batch/") if not key.startswith("batch/in/")]
    assert written == [
        "batch/bad/events.parquet",
        "batch/one.csv",
        "batch/one.parquet",
        "batch/out/_SUCCESS",
        "batch/out/part-00000.parquet",
    ]
    done = run("--table", f"events={bucket.uri}/batch/inn/", "--format", "csv")
    assert (done.returncode, done.stdout) == (1, "")
    missing = f"error: no such file or directory: {bucket.uri}/batch/inn"
    assert done.stderr == f"{missing}; did you mean 'in'?\n"


def test_a_stream_has_all_its_places_in_a_bucket(bucket: Bucket, run: Run) -> None:
    table = events(400)
    base = f"{bucket.uri}/stream"
    written = ["--checkpoint", f"{base}/ck", "--output", f"{base}/out/", "--bad-rows", f"{base}/b"]
    for number, rows in enumerate((spoiled(table).slice(0, 200), table.slice(200))):
        put(bucket, f"stream/in/{number}.parquet", rows)
        done = run("--stream", "--available-now", "--table", f"events={base}/in/", *written)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
    same(expected(PAPER, table.slice(1)), get(bucket, "stream/out/"))
    assert get(bucket, "stream/b/").num_rows == 1
