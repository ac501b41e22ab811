"""Every place is a URI that Spark's file systems know: tables, outputs, bad rows, checkpoints.

``viewfs://`` is in Spark's own jars: here it leads to a folder of the test, so that what is written
there can be looked at as local files, and compared with what local paths give.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

import ids
from ids import sink
from ids.cli.app import invoke
from ids.errors import IdsError, SinkError, SourceError
from ids.sink import LocalFiles
from ids.spark import file_system as probe
from ids.spark import read
from ids.spark import spark_write as sinks
from ids.spark.file_system import files_at
from ids.spark.frame import ORIGIN
from ids.spark.stream import check_files
from tests.spark.parity import in_process, plain
from tests.spark.streams import PAPER, arrive, events, expected

SUFFIXES = ["parquet", "csv", "jsonl"]
SELECT = """SELECT SUM(latency) AS s, SHAPLEY_ATTRIBUTE(AVG(latency), region = 'EU') AS phi FROM t
WINDOW w AS (PARTITION BY tier ORDER BY event_time ROWS 5 PRECEDING SLIDE 3 ROWS) EMIT CHANGES;"""


class Mount(NamedTuple):
    """A folder, and the URI under which Spark knows it."""

    folder: Path
    uri: str


@pytest.fixture(scope="module")
def root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Mount:
    folder = tmp_path_factory.mktemp("mounted")
    settings: Any = spark._jsc.hadoopConfiguration()
    settings.set("fs.viewfs.mounttable.ids.link./data", f"file:{folder}")
    return Mount(folder, "viewfs://ids/data")


@pytest.fixture
def mount(root: Mount, request: pytest.FixtureRequest) -> Mount:
    """A new folder below it."""
    name = f"{abs(hash(request.node.name)):x}"
    (root.folder / name).mkdir()
    return Mount(root.folder / name, f"{root.uri}/{name}")


def save(table: pa.Table, path: Path) -> int:
    path.parent.mkdir(exist_ok=True)
    return sink.write(table, path)


def visible(folder: Path) -> list[str]:
    """What a folder holds, but for Hadoop's checksums."""
    return sorted(p.name for p in folder.iterdir() if p.suffix != ".crc")


def same_bytes(one: Path, other: Path) -> None:
    """The same files with the same rows, in the same types and order."""
    assert visible(one) == visible(other)
    for name in visible(one):
        if name.endswith(".parquet"):
            found = pq.ParquetFile(one / name).schema_arrow
            assert found.equals(pq.ParquetFile(other / name).schema_arrow)
            assert pq.read_table(one / name).equals(pq.read_table(other / name))
        else:
            assert (one / name).read_bytes() == (other / name).read_bytes()


# ── tables ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_table_elsewhere_is_the_table_it_would_be_here(
    spark: SparkSession, mount: Mount, suffix: str
) -> None:
    for name, seed in (("b c", 0), ("a%20", 1), ("z", 2), ("_hidden", 3)):
        save(events(30, seed), mount.folder / "in" / f"{name}.{suffix}")
    for below in ("in", f"in/b c.{suffix}"):
        frame = read(spark, f"{mount.uri}/{below}").orderBy(ORIGIN).drop(ORIGIN)
        assert plain(frame.toArrow()) == in_process(mount.folder / below)


SPOILED: dict[str, Callable[[Path], object]] = {
    "missing": lambda _: None,
    "near": lambda folder: save(events(3), folder / "inn" / "0.csv"),
    "empty": lambda folder: (folder / "in").mkdir(),
    "mixed": lambda folder: [
        save(events(3), folder / "in" / name) for name in ("a.csv", "b.parquet")
    ],
    "partitioned": lambda folder: save(events(3), _made(folder / "in") / "day=1" / "a.csv"),
    "of no format": lambda folder: (_made(folder / "in") / "a.xlsx").touch(),
    "half a footer": lambda folder: _half(folder / "in" / "a.parquet"),
    "ragged": lambda folder: (_made(folder / "in") / "a.csv").write_text("event_time,x\n1,2,3\n"),
    "no object": lambda folder: (_made(folder / "in") / "a.jsonl").write_text('{"x": 1}\n[2]\n'),
    "another column": lambda folder: save(
        events(3).drop_columns("latency"), folder / "in" / "a.parquet"
    ),
    "text for numbers": lambda folder: [
        save(_renamed("latency", texts), folder / "in" / f"{number}.parquet")
        for number, texts in enumerate([["1", "2", "3"], ["4", "NA", "6"]])
    ],
    "an NA among numbers": lambda folder: (_made(folder / "in") / "a.csv").write_text(
        "event_time,tier,region,latency\n2024-01-01 00:00:00,a,EU,1\n2024-01-01 00:00:01,a,EU,NA\n"
    ),
}


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def _half(path: Path) -> None:
    save(events(3), path)
    path.write_bytes(path.read_bytes()[:-20])


def _renamed(name: str, texts: list[str]) -> pa.Table:
    table = events(len(texts))
    return table.set_column(table.column_names.index(name), name, pa.array(texts))


@pytest.mark.parametrize("fault", SPOILED)
def test_what_is_wrong_elsewhere_is_told_as_it_is_here(
    spark: SparkSession, mount: Mount, fault: str
) -> None:
    SPOILED[fault](mount.folder)
    told = []
    for place in (f"{mount.folder}/in", f"{mount.uri}/in"):
        with pytest.raises(IdsError) as caught:
            ids.spark.sql(SELECT, spark=spark, t=place).collect()
        told.append(str(caught.value))
    assert told[0].replace(str(mount.folder), mount.uri) == told[1]


def test_a_plain_path_is_of_this_machine_whatever_the_default_is(
    spark: SparkSession, mount: Mount, tmp_path: Path
) -> None:
    table = events(40)
    save(table, tmp_path / "in" / "0.csv")
    spark.conf.set("fs.defaultFS", "viewfs://ids/")
    try:
        answer = ids.spark.sql(SELECT, spark=spark, t=str(tmp_path / "in"))
        assert answer.toArrow().equals(ids.sql(SELECT, t=table))
        for target in ("out.csv", "out/"):
            assert sinks.write(answer, f"{tmp_path}/{target}") == answer.count()
    finally:
        spark.conf.unset("fs.defaultFS")
    assert pq.read_table(tmp_path / "out").equals(ids.sql(SELECT, t=table))


def test_a_place_of_this_machine_may_be_a_uri(spark: SparkSession, tmp_path: Path) -> None:
    table = events(20)
    save(table, tmp_path / "a%20b" / "0.parquet")
    for uri in (f"file:{tmp_path}/a%20b", f"file://{tmp_path}/a%20b/0.parquet"):
        for sql in (ids.sql, lambda *a, **k: ids.spark.sql(*a, spark=spark, **k).toArrow()):
            assert sql(SELECT, t=uri).equals(ids.sql(SELECT, t=table))
    sink.write(table, f"file:{tmp_path}/out.csv")
    assert (tmp_path / "out.csv").exists()


def test_a_file_system_that_nobody_knows_is_named(spark: SparkSession) -> None:
    with pytest.raises(IdsError, match=r"the session has no file system for s3x://b/in; set spark"):
        ids.spark.sql(SELECT, spark=spark, t="s3x://b/in")


def test_the_engine_in_process_says_that_it_keeps_to_this_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = r"^s3a://b/x requires Spark; use ids.spark, or a local path$"
    (tmp_path / "query.sql").write_text(SELECT)
    (tmp_path / "t.csv").write_text("event_time,tier,region,latency\n2024-01-01 00:00:00,a,b,1\n")
    here = {"t": str(tmp_path / "t.csv"), "bad_rows": None, "output": "-"}
    for given in ({"t": "s3a://b/x"}, {"bad_rows": "s3a://b/x"}, {"output": "s3a://b/x"}):
        to: dict[str, Any] = here | given
        if "output" in given:
            with pytest.raises(SourceError, match=refused[:-1].replace("b/x", "b/x.csv")):
                sink.write(events(1), "s3a://b/x.csv")
            to["output"] += ".csv"
        else:
            with pytest.raises(SourceError, match=refused):
                ids.sql(SELECT, t=to["t"], bad_rows=to["bad_rows"])
        bad = ["--bad-rows", to["bad_rows"]] if to["bad_rows"] else []
        options = ["--table", f"t={to['t']}", "--output", to["output"], *bad, "--engine", "local"]
        assert invoke(["run", str(tmp_path / "query.sql"), *options]) == 1
        way_out = "requires Spark; remove --engine local, or use a local path\n"
        assert capsys.readouterr().err.endswith(way_out)


# ── tables of the catalog ────────────────────────────────────────────────────────────────────────


@pytest.fixture
def catalog(spark: SparkSession) -> Iterator[pa.Table]:
    table = events(60)
    spark.sql("CREATE DATABASE shop")
    spark.createDataFrame(table).coalesce(1).write.saveAsTable("shop.events")
    yield table
    spark.sql("DROP DATABASE shop CASCADE")


def test_a_table_of_the_catalog_is_read_by_its_name(
    spark: SparkSession,
    catalog: pa.Table,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = ids.sql(SELECT, t=catalog)
    places: list[str | DataFrame] = ["shop.events", "spark_catalog.shop.`events`"]
    for place in (*places, spark.table("shop.events")):
        assert ids.spark.sql(SELECT, spark=spark, t=place).toArrow().equals(answer)
    (tmp_path / "query.sql").write_text(SELECT)
    run = ["run", "query.sql", "--output", "out.parquet", "--table"]
    assert invoke([*run, "t=shop.events"]) == 0, capsys.readouterr().err
    assert pq.read_table("out.parquet").equals(answer)
    for name in ("shop.evnts", "lake.shop.events"):
        assert invoke([*run, f"t={name}"]) == 1
        assert (
            f"error: no such file, directory or table: {name}; known: " in capsys.readouterr().err
        )
    streamed = ids.spark.start(
        PAPER, spark=spark, available_now=True, checkpoint="ck", events="shop.events"
    )
    streamed.await_termination()
    assert streamed.table().equals(expected(PAPER, catalog))


def test_a_file_wins_over_a_table_of_its_name(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = events(20)
    spark.createDataFrame(events(5, seed=9)).createOrReplaceTempView("requests")
    try:
        view = ids.spark.sql(SELECT, spark=spark, t="requests").toArrow()
        save(table, tmp_path / "requests" / "0.parquet")
        file = ids.spark.sql(SELECT, spark=spark, t="requests").toArrow()
    finally:
        spark.catalog.dropTempView("requests")
    assert view.equals(ids.sql(SELECT, t=events(5, seed=9)))
    assert file.equals(ids.sql(SELECT, t=table))


# ── outputs ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_output_elsewhere_is_the_output_it_would_be_here(
    spark: SparkSession, mount: Mount, tmp_path: Path, suffix: str
) -> None:
    table = events(50)
    parts = spark.createDataFrame(table).repartitionByRange(3, "event_time", "size")
    ordered = parts.sortWithinPartitions("event_time", "size")
    rows = ordered.toArrow()
    for target in (f"out.{suffix}", f"dir.{suffix}/"):
        for _ in range(2):  # over our own earlier output, too
            assert sinks.write(ordered, f"{mount.uri}/{target}") == 50
        sinks.write(ordered, f"{tmp_path}/{target}")
    sink.write(rows, tmp_path / f"whole.{suffix}")
    (tmp_path / f"out.{suffix}").rename(tmp_path / f"whole2.{suffix}")
    (mount.folder / f"out.{suffix}").rename(tmp_path / f"whole3.{suffix}")
    for number in (2, 3):
        one, other = tmp_path / f"whole{number}.{suffix}", tmp_path / f"whole.{suffix}"
        if suffix == "parquet":
            assert pq.read_table(one).equals(pq.read_table(other))
        else:
            assert one.read_bytes() == other.read_bytes()
    assert visible(mount.folder) == [f"dir.{suffix}"]
    directory = tmp_path / f"dir.{suffix}"
    names = [f"part-{number:05}.{suffix}" for number in range(3)]
    assert visible(directory) == ["_SUCCESS", *names]
    same_bytes(directory, mount.folder / f"dir.{suffix}")
    assert in_process(directory) == in_process(tmp_path / f"whole.{suffix}")


def test_fewer_files_than_before_leave_none_of_the_earlier(
    spark: SparkSession, mount: Mount, tmp_path: Path
) -> None:
    for place, folder in ((f"{tmp_path}/out/", tmp_path), (f"{mount.uri}/out/", mount.folder)):
        for count in (4, 2, 1):
            sinks.write(spark.range(0, 100, 1, count), place)
            assert len(visible(folder / "out")) == count + 1
            found = pq.read_table(folder / "out")["id"].to_pylist()
            assert found == list(range(100))
        sink.write(pa.table({"n": [1]}), f"{folder}/out/")
        assert visible(folder / "out") == ["_SUCCESS", "part-00000.parquet"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_result_without_rows_has_its_columns(
    spark: SparkSession, mount: Mount, tmp_path: Path, suffix: str
) -> None:
    for target in (f"out.{suffix}", f"dir.{suffix}/"):
        for place in (f"{tmp_path}/{target}", f"{mount.uri}/{target}"):
            assert sinks.write(spark.range(0).selectExpr("id", "'a' AS k"), place) == 0
        path = target if "/" not in target else f"{target}part-00000.{suffix}"
        sink.write(
            pa.table({"id": pa.array([], "int64"), "k": pa.array([], "string")}),
            tmp_path / f"e.{suffix}",
        )
        for folder in (tmp_path, mount.folder):
            if suffix == "parquet":
                assert pq.read_table(folder / path).equals(pq.read_table(tmp_path / "e.parquet"))
            else:
                assert (folder / path).read_bytes() == (tmp_path / f"e.{suffix}").read_bytes()


@pytest.mark.parametrize("target", ["a.parquet", "a.csv", "dir/", "dir.jsonl/"])
def test_a_job_that_fails_leaves_what_was_there(
    spark: SparkSession, mount: Mount, target: str
) -> None:
    failing = spark.range(0, 9, 1, 3).selectExpr(
        "IF(id > 7, CAST(raise_error('row 8 is bad; mend it') AS LONG), id) AS n"
    )
    with pytest.raises(IdsError, match=r"^row 8 is bad; mend it$"):
        sinks.write(failing, f"{mount.uri}/{target}")
    assert list(mount.folder.iterdir()) == []
    sinks.write(spark.range(3), f"{mount.uri}/{target}")
    before = {p: p.read_bytes() for p in mount.folder.rglob("*") if p.is_file()}
    with pytest.raises(IdsError):
        sinks.write(failing, f"{mount.uri}/{target}")
    assert {p: p.read_bytes() for p in mount.folder.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("target", ["a.parquet", "a.csv", "dir/", "dir.csv/"])
@pytest.mark.parametrize("lost", ["a part", "all"])
def test_rows_that_do_not_arrive_are_an_error_and_no_shorter_file(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    lost: str,
) -> None:
    """As on workers with disks of their own: what they write is not where the driver looks."""
    frame = spark.range(0, 60, 1, 3)
    sinks.write(spark.range(5), f"{tmp_path}/{target}")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    for name in ("parquet", "text"):
        write = getattr(DataFrameWriter, name)

        def losing(self: Any, path: str, *a: Any, write: Any = write, **k: Any) -> None:
            write(self, path, *a, **k)
            parts = sorted(Path(path.removeprefix("file:")).glob("part-*"))
            for part in parts if lost == "all" else parts[1:2]:
                part.unlink()

        monkeypatch.setattr(DataFrameWriter, name, losing)
    told = "nothing" if lost == "all" else r"only \d+ of \d+ (rows|bytes)"
    with pytest.raises(SinkError, match=f"^{told} arrived in .*; use storage that the driver"):
        sinks.write(frame, f"{tmp_path}/{target}")
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_a_directory_elsewhere_that_holds_other_files_is_refused(
    spark: SparkSession, mount: Mount
) -> None:
    save(events(3), mount.folder / "other.csv")
    with pytest.raises(SinkError, match=r"already contains other.csv; give an empty or a new"):
        sinks.write(spark.range(3), f"{mount.uri}/")
    with pytest.raises(SinkError, match=r"/dir.csv is a directory; end it with /$"):
        (mount.folder / "dir.csv").mkdir()
        sinks.write(spark.range(3), f"{mount.uri}/dir.csv")
    assert visible(mount.folder) == ["dir.csv", "other.csv"]


def test_bad_rows_go_anywhere(spark: SparkSession, mount: Mount, tmp_path: Path) -> None:
    table = events(40)
    bad = table.set_column(
        3, "latency", pa.array([float("nan") if i % 7 == 3 else i / 3 for i in range(40)])
    )
    save(bad, mount.folder / "in" / "0.parquet")
    bad_rows = f"{mount.uri}/bad/rows"
    answer = ids.spark.sql(SELECT, spark=spark, bad_rows=bad_rows, t=f"{mount.uri}/in")
    assert answer.toArrow().equals(ids.sql(SELECT, t=bad, bad_rows=tmp_path))
    kept = pq.read_table(mount.folder / "bad" / "rows" / "t.parquet")
    assert kept.num_rows == 6
    assert kept["ids_row"].to_pylist() == [f"row {i + 1} of 0.parquet" for i in range(3, 40, 7)]
    assert visible(mount.folder / "bad" / "rows") == ["t.parquet"]


# ── the command line ─────────────────────────────────────────────────────────────────────────────


def test_a_run_reads_and_writes_elsewhere_as_here(
    spark: SparkSession, mount: Mount, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(events(40), mount.folder / "in" / "0.csv")
    query = tmp_path / "query.sql"
    query.write_text(SELECT + SELECT.replace("ROWS 5", "ROWS 7"))
    for place, uri in ((str(mount.folder), False), (mount.uri, True)):
        out = f"{place}/{'there' if uri else 'here'}"
        options = ["--table", f"t={place}/in", "--bad-rows", f"{place}/bad", "--format", "csv"]
        assert invoke(["run", str(query), *options, "--output", f"{out}/"]) == 0
        assert capsys.readouterr() == ("", "")
    assert visible(mount.folder / "here") == ["1-t.csv", "2-t.csv", "_SUCCESS"]
    same_bytes(mount.folder / "here", mount.folder / "there")
    query.write_text(SELECT)
    assert invoke(["run", str(query), "--table", f"t={mount.uri}/in", "--format", "jsonl"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["n"] for line in lines] == ids.sql(SELECT, t=mount.folder / "in")[
        "n"
    ].to_pylist()
    assert invoke(["explain", str(query), "--table", f"t={mount.uri}/in"]) == 1
    told = capsys.readouterr().err
    assert told.endswith("put EXPLAIN before the SELECT and use ids run\n")


# ── streams ──────────────────────────────────────────────────────────────────────────────────────


def test_a_stream_has_all_its_places_elsewhere(
    spark: SparkSession, mount: Mount, tmp_path: Path
) -> None:
    table = events(120)
    nan = pa.array([float("nan"), *table["latency"].to_pylist()[1:]])
    bad = table.set_column(3, "latency", nan)
    places: dict[str, Any] = {
        "checkpoint": f"{mount.uri}/ck",
        "output": f"{mount.uri}/out/",
        "bad_rows": f"{mount.uri}/bad",
        "events": f"{mount.uri}/in",
    }
    for first, rows in enumerate((bad.slice(0, 60), bad.slice(60))):
        arrive(rows, mount.folder / "in", [], first)
        running = ids.spark.start(PAPER, spark=spark, available_now=True, **places)
        running.await_termination()
    assert running.last_progress.totals.bad == 1
    found = pa.concat_tables(
        pq.read_table(path) for path in sorted((mount.folder / "out").glob("part-*.parquet"))
    )
    assert found.equals(expected(PAPER, table.slice(1)))
    assert pq.read_table(mount.folder / "bad").num_rows == 1
    pq.write_table(table.drop_columns("latency"), mount.folder / "in" / "f001.parquet")
    with pytest.raises(SourceError, match=r"^viewfs://.*/f001.parquet lacks column 'latency'"):
        check_files(spark, files_at(places["checkpoint"], spark), ["size", "latency"])


# ── the probe ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """The local session taken for one of a cluster."""
    for module in (probe, sinks):
        monkeypatch.setattr(module, "is_on_cluster", lambda _: True)


@pytest.mark.usefixtures("cluster")
def test_a_path_that_the_workers_share_is_written_to(spark: SparkSession, tmp_path: Path) -> None:
    sinks.write(spark.range(3), f"{tmp_path}/out/")
    probe.check_shared(spark, tmp_path / "to" / "be" / "made")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("kind", ["output", "bad rows", "checkpoint", "a stream's output"])
def test_a_path_that_the_workers_do_not_share_is_refused_before_any_work(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: str,
) -> None:
    here, there, data = (tmp_path / name for name in ("here", "there", "in"))
    for folder in (here, there):
        folder.mkdir()
    arrive(events(20), data, [])

    original = probe._shared

    def apart(session: SparkSession, files: LocalFiles, name: str) -> bool:
        files.uri = files.uri.replace("/here", "/there")  # what the workers see under that name
        return original(session, files, name)

    monkeypatch.setattr(probe, "_shared", apart)
    refused = "the workers do not see the same .*here/x.* as the driver; use storage"
    given: dict[str, Any] = {"spark": spark, "events": data}
    ways: dict[str, Callable[[], object]] = {
        "output": lambda: sinks.write(spark.range(3), f"{here}/x/"),
        "bad rows": lambda: ids.spark.sql(PAPER, bad_rows=f"{here}/x", **given),
        "checkpoint": lambda: ids.spark.start(PAPER, checkpoint=f"{here}/x", **given),
        "a stream's output": lambda: ids.spark.start(
            PAPER, checkpoint=f"{tmp_path}/ck", output=f"{here}/x/", **given
        ),
    }
    with pytest.raises(SourceError, match=refused):
        ways[kind]()
    assert list(here.iterdir()) == list(there.iterdir()) == []
    assert not (tmp_path / "ck").exists()


@pytest.mark.usefixtures("cluster")
def test_what_goes_to_the_terminal_needs_no_disk_that_is_shared(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(events(20), tmp_path / "in.parquet")
    (tmp_path / "query.sql").write_text(SELECT)
    options = ["--table", f"t={tmp_path / 'in.parquet'}", "--format", "csv"]
    assert invoke(["run", str(tmp_path / "query.sql"), *options]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(ids.sql(SELECT, t=events(20)))
