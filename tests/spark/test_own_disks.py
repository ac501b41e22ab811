"""A cluster whose workers have disks of their own: shared places work, others are refused.

Each worker is in a mount namespace with an empty directory in the place of the driver's ``own``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ids
from tests.spark.cluster import Cluster, running
from tests.spark.cluster_jobs import SETTINGS
from tests.spark.kill_jobs import SCRIPTS
from tests.spark.streams import PAPER, arrive, events, expected
from tests.spark.tables import same
from tests.spark.test_cluster import EXECUTORS, run

pytestmark = pytest.mark.slow

UNSHARED = "the workers do not see the same {} as the driver; use storage that they share"


def _unshares() -> bool:
    tried = ["unshare", "--mount", "mount", "-t", "tmpfs", "ids", "/mnt"]
    try:
        return subprocess.run(tried, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not _unshares():
        pytest.skip("no right to make a mount namespace: run as root")
    return tmp_path_factory.mktemp("own")


@pytest.fixture(scope="module")
def cluster(own: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("cluster"), own) as started:
        started.workers(2)
        yield started


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return events(4_000, seconds=2_000)


def places(cluster: Cluster, own: Path) -> list[str]:
    """What the driver and each worker have in the directory that they do not share."""
    seen = [own, *(Path(f"/proc/{pid}/root{own}") for pid in cluster.workers(2))]
    return sorted(str(path) for folder in seen for path in folder.iterdir())


def ids_run(
    cluster: Cluster, tmp_path: Path, *options: object, script: str = PAPER
) -> subprocess.CompletedProcess[str]:
    query = tmp_path / "query.sql"
    query.write_text(script)
    settings = [f"{name}={SETTINGS[name]}" for name in ("spark.driver.host", *EXECUTORS)]
    conf = [word for setting in settings for word in ("--conf", setting)]
    return run(query, *options, "--master", cluster.master, *conf)


def test_a_worker_has_a_disk_of_its_own(cluster: Cluster, own: Path) -> None:
    (own / "of the driver").touch()
    try:
        assert places(cluster, own) == [str(own / "of the driver")]
    finally:
        (own / "of the driver").unlink()


@pytest.mark.parametrize("target", ["out.parquet", "out/", "out.csv/"])
def test_a_batch_on_a_shared_path_is_the_one_in_process(
    cluster: Cluster, own: Path, table: pa.Table, tmp_path: Path, target: str
) -> None:
    arrive(table, tmp_path / "in", [1_000, 3_000])
    given = ["--table", f"events={tmp_path / 'in'}", "--bad-rows", tmp_path / "bad"]
    done = ids_run(cluster, tmp_path, *given, "--output", f"{tmp_path}/{target}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    answer = ids.sql(PAPER, events=table)
    if "csv" in target:
        rows = [part.read_text().splitlines() for part in sorted((tmp_path / "out.csv").glob("p*"))]
        assert sum(len(lines) - 1 for lines in rows) == answer.num_rows
    else:
        same(answer, pq.read_table(f"{tmp_path}/{target}"))
    assert places(cluster, own) == []


@pytest.mark.parametrize("kind", ["table", "file", "directory", "bad rows"])
def test_a_batch_on_a_path_that_is_not_shared_is_refused(
    cluster: Cluster, own: Path, table: pa.Table, tmp_path: Path, kind: str
) -> None:
    data = own if kind == "table" else tmp_path / "in"
    arrive(table, data, [])
    before = places(cluster, own)
    out = {"file": f"{own}/out.parquet", "directory": f"{own}/out/"}.get(kind, f"{tmp_path}/out/")
    bad = own / "bad" if kind == "bad rows" else tmp_path / "bad"
    given = ["--table", f"events={data}", "--bad-rows", bad, "--output", out]
    done = ids_run(cluster, tmp_path, *given)
    named = {"table": f"{own}/f000.parquet", "bad rows": str(bad)}.get(kind, out.rstrip("/"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: {UNSHARED.format(named)}\n"
    assert places(cluster, own) == before
    assert not (tmp_path / "out").exists() and not (tmp_path / "bad").exists()
    for path in own.iterdir():
        path.unlink()


def test_the_terminal_needs_no_disk_that_is_shared(
    cluster: Cluster, table: pa.Table, tmp_path: Path
) -> None:
    arrive(table, tmp_path / "in", [])
    done = ids_run(cluster, tmp_path, "--table", f"events={tmp_path / 'in'}", "--format", "csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1 + ids.sql(PAPER, events=table).num_rows


@pytest.mark.parametrize("script", [PAPER, SCRIPTS["count"]], ids=["time", "count"])
def test_a_stream_on_a_shared_path_is_the_batch_in_process(
    cluster: Cluster, own: Path, table: pa.Table, tmp_path: Path, script: str
) -> None:
    streamed = ["--stream", "--available-now", "--table", f"events={tmp_path / 'in'}"]
    written = ["--checkpoint", str(tmp_path / "ck"), "--output", f"{tmp_path}/out/"]
    for first, rows in enumerate((table.slice(0, 2_000), table.slice(2_000))):
        arrive(rows, tmp_path / "in", [], first)
        done = ids_run(cluster, tmp_path, *streamed, *written, script=script)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
    parts = sorted((tmp_path / "out").glob("part-*.parquet"))
    same(expected(script, table), pa.concat_tables(map(pq.read_table, parts)))
    assert places(cluster, own) == []


@pytest.mark.parametrize("kind", ["table", "checkpoint", "output", "bad rows"])
def test_a_stream_on_a_path_that_is_not_shared_is_refused(
    cluster: Cluster, own: Path, table: pa.Table, tmp_path: Path, kind: str
) -> None:
    data = own if kind == "table" else tmp_path / "in"
    arrive(table, data, [])
    before = places(cluster, own)
    names = {"checkpoint": "ck", "output": "out", "bad rows": "bad"}
    at = {each: (own if each == kind else tmp_path) / name for each, name in names.items()}
    given = [
        "--stream",
        "--available-now",
        "--table",
        f"events={data}",
        "--bad-rows",
        at["bad rows"],
    ]
    written = ["--checkpoint", at["checkpoint"], "--output", f"{at['output']}/"]
    done = ids_run(cluster, tmp_path, *given, *written)
    named = at.get(kind, own / "f000.parquet")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: {UNSHARED.format(named)}\n"
    assert places(cluster, own) == before
    assert sorted(path.name for path in tmp_path.iterdir()) in (["in", "query.sql"], ["query.sql"])
    for path in own.iterdir():
        path.unlink()


@pytest.mark.parametrize("kind", ["batch", "stream"])
def test_one_worker_of_two_with_another_disk_is_an_error_and_no_shorter_file(
    own: Path, table: pa.Table, tmp_path: Path, kind: str
) -> None:
    arrive(table, tmp_path / "in", range(500, 4_000, 500))
    given = ["--table", f"events={tmp_path / 'in'}"]
    if kind == "batch":
        given += ["--output", f"{own}/out.parquet"]
    else:
        given += [
            "--stream",
            "--available-now",
            "--checkpoint",
            str(tmp_path / "ck"),
            "--output",
            f"{own}/out/",
        ]
    (tmp_path / "cluster").mkdir()
    with running(tmp_path / "cluster") as cluster:
        cluster.workers(1)
        cluster.own = own
        cluster.workers(2)
        done = ids_run(cluster, tmp_path, *given)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert [path for path in own.rglob("*") if path.is_file()] == []
