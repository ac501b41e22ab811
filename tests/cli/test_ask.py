from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv
from pyspark.sql import SparkSession

import ids
from ids.spark import start
from tests.cli.conftest import Outcome
from tests.spark.cluster import JAVA_OPTIONS, LIGHT
from tests.spark.streams import UTC, arrive, events, run, source
from tests.spark.test_retained import script as stream_script

Call = Callable[..., Outcome]


def at(table: pa.Table, instant: object, **options: str) -> list[tuple[object, ...]]:
    """Keys, value, share, lift, n of the query in process, at an instant."""
    item = "SHAPLEY_ATTRIBUTE(AVG(latency), slow OR size > 0 WITH (SHARE, LIFT)) AS q"
    emits = ids.sql(stream_script(items=item, **options), events=table)
    then = emits.filter(pc.equal(emits["emit_at"], pa.scalar(instant, UTC)))
    return [
        tuple(row[name] for name in ("tier", "q", "q_share", "q_lift", "n") if name in row)
        for row in then.to_pylist()
    ]


@pytest.fixture(scope="module")
def checkpoint(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a stream that has come to its end, and kept its rows."""
    folder = tmp_path_factory.mktemp("asked")
    arrive(events(60, 72, 60), folder / "in", [])
    run(spark, stream_script(), folder / "in", retain=True)
    return folder / "ck"


@pytest.mark.slow
def test_a_stream_run_with_retain_is_asked(spark: SparkSession, call: Call, tmp_path: Path) -> None:
    table = events(120, 71, 60)
    arrive(table, tmp_path / "in", [])
    query = tmp_path / "query.sql"
    query.write_text(stream_script(keys="tier"))
    code, _, err = call(
        "run", query, "--engine", "spark", "--stream", "--available-now", "--retain",
        "--checkpoint", tmp_path / "ck", "--table", f"events={tmp_path / 'in'}",
    )  # fmt: skip
    assert code == 0, err
    code, out, err = call("ask", tmp_path / "ck", "AVG(latency)", "slow OR size > 0")
    assert (code, err) == (0, "")
    (tmp_path / "out.csv").write_text(out)
    options = csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
    shown = csv.read_csv(tmp_path / "out.csv", convert_options=options)
    assert shown.column_names == [
        *("tier", "value", "share", "lift", "n", "window_end", "mechanism"),
    ]
    rows = shown.select(shown.column_names[:5]).to_pylist()
    instant = shown["window_end"][0].as_py()
    assert [tuple(row.values()) for row in rows] == at(table, instant, keys="tier")
    assert shown["mechanism"].unique().to_pylist() == ["scan"]


def test_a_seed_reaches_a_stream(
    spark: SparkSession, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, object] = {}

    def start(*_: object, **given: object) -> None:
        asked.update(given)
        raise ids.IdsError("that will do")

    monkeypatch.setattr("ids.spark.start", start)
    arrive(events(20, 71, 20), tmp_path / "in", [])
    query = tmp_path / "query.sql"
    query.write_text(stream_script())
    code, _, err = call(
        "run", query, "--engine", "spark", "--stream", "--seed", "7",
        "--checkpoint", tmp_path / "ck", "--table", f"events={tmp_path / 'in'}",
    )  # fmt: skip
    assert (code, err, asked["seed"]) == (1, "error: that will do\n", 7)


def test_a_person_is_shown_a_table(
    checkpoint: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ids.cli.script_run.is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    code, out, err = call("ask", checkpoint, "COUNT(*)", "TRUE")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["value", "share", "lift", "n", "window_end", "mechanism"]
    assert lines[2][-1] == "scan" and lines[2][0].startswith(lines[2][3])
    code, out, err = call(
        *("ask", checkpoint, "COUNT(*)", "slow OR latency < 10"),
        *("--sample", "4", "--confidence", "0.9", "--seed", "3"),
    )
    assert (code, err) == (0, "")
    folded, names, _, shown, *_ = (line.split() for line in out.splitlines())
    assert folded == ["standard_"]
    assert names == ["value", "share", "lift", "error", "error", "n", "window_end", "mechanism"]
    assert shown[-1] == "sample" and float(shown[3]) > 0


def test_a_wrong_question_needs_no_spark(
    checkpoint: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ids.spark.local_session", lambda *_: pytest.fail("Spark was started"))
    code, out, err = call("ask", checkpoint, "AVG(latency)", "tir = 'free'")
    assert (code, out) == (1, "")
    assert err == "error: unknown column 'tir' at line 1, column 1; did you mean 'tier'?\n"
    code, _, err = call("ask", tmp_path / "none", "AVG(latency)", "eu")
    assert code == 1 and err.startswith(f"error: {tmp_path / 'none'} is not a checkpoint; give")
    for option, wrong in (("--sample", "0"), ("--confidence", "1.5")):
        asked = ["AVG(latency)", "eu", "--sample", "9", option, wrong]
        code, _, err = call("ask", checkpoint, *asked)
        assert code == 1 and f" of {wrong}" in err, err
    code, _, err = call("ask", checkpoint, "AVG(latency)", "eu", "--seed", "7")
    assert code == 2 and "only available for samples; add --sample ROWS" in err
    code, _, err = call("run", "q.sql", "--engine", "spark", "--retain")
    assert code == 2 and "only available for streams; add --stream" in err


@pytest.mark.slow
def test_another_process_asks_while_the_stream_runs(spark: SparkSession, tmp_path: Path) -> None:
    table = events(120, 74, 60)
    arrive(table, tmp_path / "in", [60])
    running = start(
        stream_script(), checkpoint=tmp_path / "ck", retain=True,
        events=source(spark, tmp_path / "in"),
    )  # fmt: skip
    try:
        until = monotonic() + 300
        while running.last_progress.batch != 1:
            assert running.is_active and monotonic() < until
            sleep(0.05)
        command = "import sys; from ids.cli import main; main()"
        question = ["ask", str(tmp_path / "ck"), "AVG(latency)", "slow OR size > 0"]
        spark_of_its_own = ["--master", "local[1]", "--conf", f"{JAVA_OPTIONS}={LIGHT}"]
        told = subprocess.run(
            [sys.executable, "-c", command, *question, *spark_of_its_own],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert running.is_active
        assert (told.returncode, told.stderr) == (0, "")
        (tmp_path / "out.csv").write_text(told.stdout)
        (row,) = csv.read_csv(tmp_path / "out.csv").to_pylist()
        assert row["window_end"] == running.window_end
        assert [tuple(row.values())[:4]] == at(table, running.window_end)
    finally:
        running.stop()
