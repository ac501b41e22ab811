"""Whatever happens to a stream, it ends in the answer of an undisturbed run or in a clear error."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from pyspark.sql import SparkSession

from ids.errors import CheckpointError, IdsError, SinkError
from ids.spark import Stream, start
from tests.spark.streams import PAPER, arrive, events, expected, in_workers, run, source
from tests.spark.test_crash_points import Crash, contents, dying_at

_CUTS = [40, 41, 90]


@pytest.mark.slow
@pytest.mark.parametrize("output", ["out/", "out.jsonl"])
def test_a_crash_at_any_write_leaves_the_answer_of_an_undisturbed_run_on_spark(
    spark: SparkSession, tmp_path: Path, output: str
) -> None:
    table = events(160, 21)
    arrive(table, tmp_path / "in", _CUTS)
    for name in ("calm", "wild"):
        (tmp_path / name).mkdir()

    def stream(name: str) -> Stream:
        place, to = tmp_path / name / "ck", f"{tmp_path}/{name}/{output}"
        return run(spark, PAPER, tmp_path / "in", checkpoint=place, output=to)

    crashes = 0
    for moment in range(1, 40):
        with dying_at(moment), suppress(Crash):
            stream("wild")
            break
        crashes += 1
    assert crashes >= 8
    wild, calm = stream("wild"), stream("calm")
    assert contents(tmp_path / "wild" / output) == contents(tmp_path / "calm" / output)
    assert wild.last_progress.totals == calm.last_progress.totals


def test_parts_and_files_hold_the_emits(spark: SparkSession, tmp_path: Path) -> None:
    table = events(160, 22)
    arrive(table, tmp_path / "in", _CUTS)
    run(spark, PAPER, tmp_path / "in", output=f"{tmp_path}/out/")
    assert pq.read_table(tmp_path / "out").equals(expected(PAPER, table))
    run(spark, PAPER, tmp_path / "in", output=tmp_path / "o.csv", checkpoint=tmp_path / "ck2")

    text = csv.read_csv(tmp_path / "o.csv")
    assert text["a"].to_pylist() == expected(PAPER, table)["a"].to_pylist()
    for wrong, fact in (("o.parquet", "give a directory"), ("none/o.csv", "no such directory")):
        with pytest.raises(SinkError, match=fact):
            run(spark, PAPER, tmp_path / "in", output=tmp_path / wrong, checkpoint=tmp_path / "ck3")
    for taken, fact in (("out/", "already"), ("o.csv", "already"), ("o.csv/", "o.csv is a file;")):
        with pytest.raises(SinkError, match=fact):
            run(
                spark,
                PAPER,
                tmp_path / "in",
                output=f"{tmp_path}/{taken}",
                checkpoint=tmp_path / "ck4",
            )


def test_a_checkpoint_serves_its_own_stream_only(spark: SparkSession, tmp_path: Path) -> None:
    arrive(events(60, 23), tmp_path / "in", [30])
    run(spark, PAPER, tmp_path / "in")
    with pytest.raises(CheckpointError, match="another window; use a new checkpoint"):
        run(spark, PAPER.replace("'30'", "'60'"), tmp_path / "in")
    with pytest.raises(CheckpointError, match=r"'a' .* 'free'\); use another alias"):
        run(spark, PAPER.replace("premium", "free"), tmp_path / "in")
    with pytest.raises(CheckpointError, match="another output"):
        run(spark, PAPER, tmp_path / "in", output=f"{tmp_path}/out/")
    changed = events(60, 23)
    changed = changed.set_column(3, "latency", changed["size"])
    arrive(changed, tmp_path / "other", [])
    with pytest.raises(CheckpointError, match="'latency' is double, not bigint; use a new"):
        run(spark, PAPER, tmp_path / "other", checkpoint=tmp_path / "ck")


def _harmed(path: Path, harm: str) -> None:
    """A file with one bit changed (unknown to Hadoop's own checksums or not), cut, or gone."""
    content = path.read_bytes()
    if harm == "bit, no .crc":
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    path.unlink()
    if harm == "half":
        path.write_bytes(content[: len(content) // 2])
    elif harm.startswith("bit"):
        # in the first page's data, or in the middle of a manifest
        at = 60 if content.startswith(b"PAR1") else len(content) // 2
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])


@pytest.mark.parametrize("workers", [True, False])
def test_harmed_pieces_and_manifests_are_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: bool
) -> None:
    if workers:
        in_workers(monkeypatch)
    monkeypatch.setattr("ids.spark.stream_time._MANY", 1)  # windows are written down
    arrive(events(60, 24), tmp_path / "in", [50])
    (tmp_path / "in/f001.parquet").rename(tmp_path / "next")
    run(spark, PAPER, tmp_path / "in", checkpoint=tmp_path / "whole")
    (tmp_path / "next").rename(tmp_path / "in/f001.parquet")
    for kind, harm in (
        *(("panes", harm) for harm in ("bit, no .crc", "gone")),
        *(("windows", harm) for harm in ("bit, no .crc", "gone")),
        *(("panes", harm) for harm in ("bit", "half") if workers),
        *(("manifest", harm) for harm in ("bit", "half", "gone") if workers),
    ):
        shutil.copytree(tmp_path / "whole", tmp_path / "ck")
        pattern = "ids/*.json" if kind == "manifest" else f"data/*-{kind}/part-*"
        path, *_ = (tmp_path / "ck").glob(pattern)
        _harmed(path, harm)
        with pytest.raises(IdsError) as refused:
            run(spark, PAPER, tmp_path / "in", output=None)
        told = str(refused.value)
        assert str(path if kind == "manifest" else path.parent) in told, (kind, harm, told)
        assert "restore the whole checkpoint" in told and "\n" not in told, (kind, harm, told)
        shutil.rmtree(tmp_path / "ck")


def test_a_torn_checkpoint_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    arrive(events(60, 25), tmp_path / "in", [30])
    (tmp_path / "in/f001.parquet").rename(tmp_path / "next")
    run(spark, PAPER, tmp_path / "in")
    shutil.copytree(tmp_path / "ck/spark", tmp_path / "older")
    (tmp_path / "next").rename(tmp_path / "in/f001.parquet")
    run(spark, PAPER, tmp_path / "in")
    arrive(events(60, 25), tmp_path / "in", [20], 2)
    run(spark, PAPER, tmp_path / "in")
    shutil.copytree(tmp_path / "ck", tmp_path / "half")
    shutil.rmtree(tmp_path / "half/spark")
    with pytest.raises(CheckpointError, match="lacks Spark's files"):
        run(spark, PAPER, tmp_path / "in", checkpoint=tmp_path / "half")
    shutil.copytree(tmp_path / "older", tmp_path / "half/spark")
    with pytest.raises(
        CheckpointError, match=r"inconsistent: Spark is at batch 1, .* manifest is 3"
    ):
        run(spark, PAPER, tmp_path / "in", checkpoint=tmp_path / "half")
    (tmp_path / "ck/ids/00000003.json").unlink()
    with pytest.raises(CheckpointError, match=r"00000003.json is missing or was altered; restore"):
        run(spark, PAPER, tmp_path / "in")


def test_two_streams_do_not_share_a_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    arrive(events(30, 26), tmp_path / "in", [])
    first = start(PAPER, checkpoint=tmp_path / "ck", events=source(spark, tmp_path / "in"))
    try:
        with pytest.raises(CheckpointError, match="in use"):
            start(PAPER, checkpoint=tmp_path / "ck", events=source(spark, tmp_path / "in"))
    finally:
        first.stop()
    run(spark, PAPER, tmp_path / "in")


def test_a_stream_killed_before_its_first_batch_starts_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = events(30, 26)
    arrive(table, tmp_path / "in", [])
    half_written = tmp_path / "ck/spark/offsets/.0.7f.tmp"
    half_written.parent.mkdir(parents=True)
    half_written.write_bytes(b"v1")
    run(spark, PAPER, tmp_path / "in", output=f"{tmp_path}/out/")
    assert pq.read_table(tmp_path / "out").equals(expected(PAPER, table))


def _reached(running: Stream, batch: int) -> None:
    """Wait for a batch; a stream that fails or hangs ends the test."""
    until = monotonic() + 300
    while running.last_progress.batch != batch:
        assert running.is_active and monotonic() < until
        sleep(0.05)


def test_a_file_that_does_not_fit_stops_the_stream_until_it_is_mended(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = events(120, 27)
    arrive(table.slice(0, 60), tmp_path / "in", [])
    second = table.slice(60)
    as_text = second.set_column(3, "latency", second["latency"].cast(pa.string()))
    place, hidden = tmp_path / "in" / "f001.parquet", tmp_path / "in" / ".f001"
    rows = source(spark, tmp_path / "in")

    def begun() -> Stream:
        return start(PAPER, checkpoint=tmp_path / "ck", output=f"{tmp_path}/out/", events=rows)

    running = begun()
    _reached(running, 0)
    for harmed in (None, second.drop_columns(["latency"]), as_text):
        if harmed is None:
            hidden.write_bytes(b"PAR1" + bytes(500))
        else:
            pq.write_table(harmed, hidden)
        hidden.rename(place)
        with pytest.raises(IdsError, match=r"f001\.parquet .*write it again"):
            (running if running.is_active else begun()).await_termination()
    arrive(second, tmp_path / "in", [], 1)
    again = run(spark, PAPER, tmp_path / "in", output=f"{tmp_path}/out/")
    assert pq.read_table(tmp_path / "out").equals(expected(PAPER, table))
    assert again.last_progress.totals.rows == 120


@pytest.mark.slow
def test_a_full_disk_stops_the_stream_and_loses_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = events(400, 28)
    arrive(table, tmp_path / "in", [100, 200, 300])
    output = tmp_path / "out.csv"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    failures = 0
    for limit in (500, 2_000, 3_500, 6_500, 12_500, 100_000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            running = run(spark, PAPER, tmp_path / "in", output=output)
            break
        except IdsError as error:
            assert "cannot write" in str(error)
            failures += 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert failures
    calm = run(spark, PAPER, tmp_path / "in", output=tmp_path / "c.csv", checkpoint=tmp_path / "c")
    assert output.read_bytes() == (tmp_path / "c.csv").read_bytes()
    assert running.last_progress.totals == calm.last_progress.totals


def test_ctrl_c_leaves_a_stream_that_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    table = events(160, 29)
    arrive(table, tmp_path / "in", _CUTS)
    running = start(
        PAPER, checkpoint=tmp_path / "ck", output=f"{tmp_path}/out/",
        events=source(spark, tmp_path / "in"),
        on_progress=lambda _: os.kill(os.getpid(), signal.SIGINT),
    )  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        running.await_termination()
    assert not running.is_active
    run(spark, PAPER, tmp_path / "in", output=f"{tmp_path}/out/")
    assert pq.read_table(tmp_path / "out").equals(expected(PAPER, table))


_DRIVER = """
import os, signal, sys
from pathlib import Path
from ids.spark.session import local_session
from tests.spark.test_crash_points import Crash, contents, dying_at
from tests.spark.streams import PAPER, run

left = int(sys.argv[2])

def killed(real):
    def act(*arguments):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments)
    return act

spark = local_session("local[2]")
for name in ("fsync", "rename", "replace"):
    setattr(os, name, killed(getattr(os, name)))
root = Path(sys.argv[1])
run(spark, PAPER, root / "in", output=f"{root}/out/")
spark.stop()
"""


@pytest.mark.slow
def test_kill_9_of_the_driver_loses_and_doubles_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = events(160, 30)
    arrive(table, tmp_path / "in", _CUTS)
    codes = [
        subprocess.run(
            [sys.executable, "-c", _DRIVER, str(tmp_path), str(moment)],
            check=False,
            capture_output=True,
        ).returncode
        for moment in (5, 12, 0)
    ]
    assert codes == [-signal.SIGKILL, -signal.SIGKILL, 0]
    run(
        spark, PAPER, tmp_path / "in",
        checkpoint=tmp_path / "calm", output=f"{tmp_path}/calm-out/",
    )  # fmt: skip
    assert contents(tmp_path / "out") == contents(tmp_path / "calm-out")
    assert pq.read_table(tmp_path / "out").equals(expected(PAPER, table))
