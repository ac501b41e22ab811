"""Every result reaches the user: on the screen, in a pipe, in a file, a file for each SELECT."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ids
from ids import sink
from ids.cli.script_run import Job, _suggest_local
from tests.cli.conftest import EMITS, SELECT, FakeEngine, Outcome

Call = Callable[..., Outcome]
ROOT = Path(__file__).resolve().parents[2]
OTHER = pa.table({"n": [7], "s": [0.5]})
TWO = SELECT + "SHOW PREDICATES;" + SELECT.replace("FROM t", "FROM `a b/c`")


@pytest.fixture
def two(engine: FakeEngine, script: str) -> str:
    """A script of two SELECTs, with another result for each."""
    Path(script).write_text(TWO)
    engine.tables = [EMITS, OTHER]
    return script


@pytest.mark.parametrize(
    ("name", "options", "suffix"),
    [
        ("out/", [], ".parquet"),
        ("out/", ["--format", "csv"], ".csv"),
        ("out.jsonl/", [], ".jsonl"),
    ],
)
def test_a_directory_gets_a_file_for_each_select(
    call: Call, two: str, tmp_path: Path, name: str, options: list[str], suffix: str
) -> None:
    out, expected = tmp_path / name, tmp_path / f"expected{suffix}"
    for _ in range(2):  # over our own earlier output, too
        assert call("run", two, "--output", f"{out}/", *options) == Outcome(0, "", "")
    files = {f"1-t{suffix}": EMITS, f"2-a_b_c{suffix}": OTHER}
    assert sorted(path.name for path in out.iterdir()) == [*files, "_SUCCESS"]
    for file, table in files.items():
        sink.write(table, expected)
        assert (out / file).read_bytes() == expected.read_bytes()
    (out / "3-u.csv").touch()
    code, _, err = call("run", two, "--output", f"{out}/", *options)
    assert code == 1 and "already contains 3-u.csv; give an empty or a new directory" in err


def test_a_select_that_fails_leaves_no_file_of_those_before_it(
    engine: FakeEngine, call: Call, two: str, tmp_path: Path
) -> None:
    engine.tables = [EMITS]  # the second SELECT finds none
    code, _, _ = call("run", two, "--output", f"{tmp_path / 'out'}/")
    assert code != 0
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "output", [[], ["--output", "-"], ["--output", "out.csv"], ["--output", "kafka://h/t"]]
)
def test_two_selects_and_one_file_are_refused_before_anything_runs(
    engine: FakeEngine, call: Call, two: str, output: list[str]
) -> None:
    code, out, err = call("run", two, *output)
    assert (code, out, engine.asked) == (2, "", {})
    assert err.startswith("error: --output: the script has 2 SELECTs, and ")
    assert "use a directory (out/), which gets a file for each" in err
    assert ("or --format table" in err) == (output[1:] in ([], ["-"]))


def test_a_pipe_gets_every_emit_of_every_result_as_tables(
    engine: FakeEngine, call: Call, two: str
) -> None:
    engine.tables = [pa.table({"n": range(50)}), OTHER]
    code, out, err = call("run", two, "--format", "table")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert all([str(n)] in lines for n in range(50))
    assert ["predicate", "table", "condition"] in lines and ["7", "0.50000"] in lines


@pytest.mark.parametrize("output", [[], ["--output", "-"]])
@pytest.mark.parametrize("format_", ["csv", "jsonl", "parquet"])
def test_standard_output_is_the_result_in_the_format_asked_for(
    engine: FakeEngine,
    script: str,
    tmp_path: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
    output: list[str],
    format_: str,
) -> None:
    from ids.cli.app import invoke

    assert invoke(["run", script, "--engine", "local", *output, "--format", format_]) == 0
    sink.write(EMITS, tmp_path / f"expected.{format_}")
    assert capfdbinary.readouterr() == ((tmp_path / f"expected.{format_}").read_bytes(), b"")


def test_a_terminal_gets_lines_if_they_are_asked_for(
    engine: FakeEngine, call: Call, script: str, terminal: None
) -> None:
    code, out, _ = call("run", script, "--format", "jsonl")
    assert code == 0
    assert [json.loads(line)["n"] for line in out.splitlines()] == [1, 10_000]
    code, _, err = call("run", script, "--format", "parquet")
    assert code == 2 and "--format: cannot show Parquet on a terminal" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "xml"], "--format: unknown format 'xml'; use table, csv, jsonl or parquet"),
        (
            ["--output", "out.csv", "--format", "table"],
            "table is only available on standard output; use csv",
        ),
        (["--output", "out.csv", "--format", "jsonl"], "out.csv has the extension of CSV"),
        (["--output", "/dev/stdout"], "format of /dev/stdout; give --format csv or jsonl"),
        (
            ["--output", "kafka://h/t", "--format", "csv"],
            "--format: a Kafka topic always receives JSON",
        ),
        (["--output", "kafka://h/t"], "writing to Kafka requires Spark; remove --engine local"),
    ],
)
def test_a_format_that_does_not_fit_is_refused_before_anything_runs(
    engine: FakeEngine, call: Call, script: str, options: list[str], message: str
) -> None:
    code, out, err = call("run", script, *options)
    assert code in (1, 2)
    assert (out, engine.asked) == ("", {})
    assert message in err


def test_a_file_without_an_extension_is_written_in_the_format_asked_for(
    engine: FakeEngine, call: Call, script: str, tmp_path: Path
) -> None:
    assert call("run", script, "--output", tmp_path / "out", "--format", "parquet").code == 0
    assert pq.read_table(tmp_path / "out").equals(EMITS)


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text("at,x\n2024-01-01T00:00:00Z,1\n2024-01-01T00:00:01Z,2\n")
    return path


def _command(script: str, events: Path, *options: str) -> list[str]:
    program = "from ids.cli import main; main()"
    table = ["--table", f"t={events}", "--engine", "local"]
    return [sys.executable, "-c", program, "run", script, *table, *options]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src")}


@pytest.mark.slow
def test_devices_get_what_a_file_would_get(script: str, events: Path, tmp_path: Path) -> None:
    expected = '{"emit_at":"2024-01-01T00:00:00.000000Z","n":1,"s":1}\n'
    expected += '{"emit_at":"2024-01-01T00:00:01.000000Z","n":2,"s":3}\n'
    log, fifo = tmp_path / "log", tmp_path / "fifo"
    os.mkfifo(fifo)
    log.write_text("before\n")
    reading, writing = os.pipe()

    def run(output: str, **given: object) -> None:
        command = _command(script, events, "--output", output, "--format", "jsonl")
        done = subprocess.run(command, env=_environment(), check=True, **given)  # type: ignore[call-overload]
        assert done.returncode == 0

    with log.open("ab") as appended:  # as with >>
        run("/dev/stdout", stdout=appended)
    assert log.read_text() == "before\n" + expected
    run(f"/dev/fd/{writing}", pass_fds=[writing])
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() == expected
    with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE, text=True) as reader:
        run(str(fifo))
        assert reader.stdout is not None and reader.stdout.read() == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fifo", "log", "query.sql", "t.csv"]


def test_every_select_of_a_script_runs_on_spark_as_in_process(
    spark: object, call: Call, script: str, tmp_path: Path
) -> None:
    text = """
    REGISTER PREDICATE big AS (x > 2) ON t;
    SELECT SHAPLEY_ATTRIBUTE(AVG(x), big) AS phi FROM t
    WINDOW w AS (ORDER BY at ROWS 2 PRECEDING) EMIT CHANGES;
    SHOW PREDICATES;
    SELECT SHAPLEY_ATTRIBUTE(SUM(x), y > 3 OR y < 2) AS phi, COUNT(*) AS rows FROM u
    WINDOW w AS (ORDER BY at RANGE INTERVAL '2' SECOND PRECEDING SLIDE INTERVAL '1' SECOND)
    EMIT CHANGES;
    EXPLAIN SELECT SUM(x) AS s FROM t WINDOW w AS (ORDER BY at ROWS 2 PRECEDING) EMIT FINAL;
    """
    Path(script).write_text(text)
    for name, column in (("t", "x"), ("u", "x,y")):
        rows = [f"2024-01-01T00:00:0{i}Z,{i}" + f",{i}" * (name == "u") for i in range(5)]
        (tmp_path / f"{name}.csv").write_text("\n".join([f"at,{column}", *rows]) + "\n")
    tables: dict[str, Any] = {name: tmp_path / f"{name}.csv" for name in ("t", "u")}
    ours, theirs = ids.spark.sql_all(text, **tables), ids.sql_all(text, **tables)
    assert [r.statement for r in ours] == [r.statement for r in theirs]
    assert [r.table.toArrow().to_pylist() for r in ours] == [r.table.to_pylist() for r in theirs]
    assert ids.sql(text, **tables).equals(theirs[2].table)

    given = [arg for name, path in tables.items() for arg in ("--table", f"{name}={path}")]
    written = {}
    for engine in ("spark", "local"):
        out = tmp_path / engine
        to = ("--output", f"{out}/", "--format", "csv", "--engine", engine)
        assert call("run", script, *given, *to) == Outcome(0, "", "")
        written[engine] = {path.name: path.read_text() for path in out.iterdir()}
    assert written["spark"] == written["local"]
    assert sorted(written["spark"]) == ["1-t.csv", "2-u.csv", "_SUCCESS"]

    Path(script).write_text(text[text.index("SELECT SHAPLEY_ATTRIBUTE(SUM") :])
    lines = [call("run", script, *given, "--format", "jsonl", "--engine", e) for e in written]
    assert lines[0] == lines[1] and lines[0].out.count("\n") == 5
    shown = [call("run", script, *given, "--format", "table", "--engine", e) for e in written]
    assert shown[0] == shown[1] and "emit only the last answer" in shown[0].out


@pytest.mark.parametrize(("master", "watched"), [(None, True), (None, False), ("local[2]", True)])
def test_who_runs_a_small_file_on_spark_is_told_of_the_local_engine(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    master: str | None,
    watched: bool,
) -> None:
    (tmp_path / "t.csv").write_text("x\n1\n")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: watched)
    _suggest_local(Job("", {"t": str(tmp_path / "t.csv")}, master=master))
    hint = "note: 1 KB of data does not need Spark: --engine local takes about a second\n"
    assert capsys.readouterr().err == (hint if watched and master is None else "")
