"""A mistake is told before Java starts, and before pyspark is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

PYTHON = [sys.executable, "-c"]
ROOT = Path(__file__).resolve().parents[2]
QUERY = """SELECT SUM(x) AS s FROM t
WINDOW w AS (ORDER BY at RANGE INTERVAL '2' MINUTE PRECEDING SLIDE INTERVAL '1' MINUTE)
EMIT CHANGES;
"""
# pyspark is installed, but an import of it is an error; prints what invoke does for each command.
PROGRAM = """
import contextlib, io, json, sys
from importlib.machinery import ModuleSpec
class Forbidden:
    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self) if name in ("pyspark", "py4j") else None
    def create_module(self, spec):
        raise ImportError(f"{spec.name} was imported")
    def exec_module(self, module):
        pass
sys.meta_path.insert(0, Forbidden())
from ids.cli.app import invoke
told = []
for arguments in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = invoke(arguments)
    told.append([code, out.getvalue(), err.getvalue()])
json.dump(told, sys.stdout)
"""
JAVA = """#!/bin/sh
touch {marker}
echo 'openjdk version "17.0.1" 2021-10-19' >&2
case $1 in -version) exit 0 ;; esac
echo "Java was started" >&2
exit 1
"""
STREAM = ["--table", "t=in/", "--stream", "--checkpoint"]
# name: (command line, exit code, what stderr says)
MISTAKES: dict[str, tuple[list[str], int, str]] = {
    "syntax": (
        ["run", "selct.sql", "--table", "t=t.parquet"],
        1,
        "unknown statement 'SELCT' at line 1, column 1; did you mean 'SELECT'?",
    ),
    "parquet column": (
        ["run", "wrong.sql", "--table", "t=t.parquet"],
        1,
        "unknown column 'xx' at line 1, column 12; did you mean 'x'?",
    ),
    "csv column": (
        ["run", "wrong.sql", "--table", "t=t.csv"],
        1,
        "unknown column 'xx' at line 1, column 12",
    ),
    "directory column": (
        ["run", "wrong.sql", "--table", "t=parts/"],
        1,
        "unknown column 'xx' at line 1, column 12",
    ),
    "declared column": (
        ["run", "wrong.sql", "--table", "t=kafka://h:9092/t", "--schema", "t=at TIMESTAMP, x INT"],
        1,
        "unknown column 'xx' at line 1, column 12",
    ),
    "declared type": (
        ["run", "query.sql", "--table", "t=t.csv", "--schema", "t=x DUBLE"],
        1,
        "unknown type DUBLE for column 'x' in the schema; did you mean 'DOUBLE'?",
    ),
    "undeclared topic": (
        ["run", "query.sql", "--table", "t=kafka://h:9092/t"],
        1,
        "kafka://h:9092/t has no schema; declare its columns",
    ),
    "kind of a column": (
        ["run", "text.sql", "--table", "t=t.csv"],
        1,
        "at line 1, column",
    ),
    "a stream of a file": (
        ["run", "query.sql", "--table", "t=t.csv", "--stream", "--checkpoint", "ck"],
        1,
        "t.csv is a file, but a stream reads a directory; give ./ or run the query without a",
    ),
    "a stream of nothing": (
        ["run", "query.sql", "--table", "t=empty/", "--stream", "--checkpoint", "ck"],
        1,
        "empty contains no data files yet; declare their columns with --schema 'a STRING, b DOUBLE",
    ),
    "times as text": (
        ["run", "query.sql", "--table", "t=t.csv", "--schema", "at STRING"],
        1,
        "RANGE must be ordered by a timestamp, 'at' is text at line 2, column 23",
    ),
    "missing table": (["run", "query.sql"], 1, "add --table t=PATH"),
    "misspelt table": (["run", "query.sql", "--table", "tt=t.csv"], 1, "unknown table 't'"),
    "missing file": (
        ["run", "query.sql", "--table", "t=u.csv"],
        1,
        "no such file or directory: u.csv",
    ),
    "explained column": (
        ["explain", "wrong.sql", "--table", "t=t.parquet"],
        1,
        "unknown column 'xx' at line 1, column 12",
    ),
    "too high a moment": (
        ["run", "sample.sql", "--table", "t=t.csv"],
        1,
        "over a time window does not run on Spark",
    ),
    "output format": (
        ["run", "query.sql", "--table", "t=t.csv", "--output", "out.xlsx"],
        1,
        "cannot tell the format of out.xlsx",
    ),
    "output directory": (
        ["run", "query.sql", "--table", "t=t.csv", "--output", "none/out.csv"],
        1,
        "no such directory",
    ),
    "foreign output": (
        ["run", "query.sql", "--table", "t=t.csv", "--output", "parts/"],
        1,
        "already contains 0.csv; give an empty or a new directory",
    ),
    "bad rows": (
        ["run", "query.sql", "--table", "t=t.csv", "--bad-rows", "t.csv/bad"],
        1,
        "t.csv is a file; give an existing or a new directory",
    ),
    "master": (
        ["run", "query.sql", "--table", "t=t.csv", "--master", "lcal[2]"],
        2,
        "--master: not a Spark master: 'lcal[2]'; use local[4], local[*], spark://host:7077",
    ),
    "master's port": (
        ["run", "query.sql", "--table", "t=t.csv", "--master", "spark://host"],
        2,
        "not a Spark master: 'spark://host'",
    ),
    "lateness": (
        ["run", "query.sql", *STREAM, "ck", "--lateness", "soon"],
        2,
        "--lateness: not a duration: 'soon'",
    ),
    "trigger": (
        ["run", "query.sql", *STREAM, "ck", "--trigger", "often"],
        2,
        "--trigger: not a duration: 'often'",
    ),
    "max ahead": (
        ["run", "query.sql", *STREAM, "ck", "--max-ahead", "0 seconds"],
        2,
        "--max-ahead: max_ahead must be longer than 0",
    ),
    "no checkpoint": (
        ["run", "query.sql", "--table", "t=in/", "--stream"],
        2,
        "--checkpoint",
    ),
    "checkpoint is a file": (
        ["run", "query.sql", *STREAM, "t.csv"],
        1,
        "t.csv is a file",
    ),
    "checkpoint of another stream": (
        ["run", "query.sql", *STREAM, "other"],
        1,
        "belongs to a stream with another",
    ),
    "stream's column": (
        ["run", "wrong.sql", *STREAM, "ck"],
        1,
        "unknown column 'xx' at line 1, column 12",
    ),
    "stream's output is there": (
        ["run", "query.sql", *STREAM, "ck", "--output", "t.csv"],
        1,
        "t.csv already exists; give a new file",
    ),
    "stream's output never ends": (
        ["run", "query.sql", *STREAM, "ck", "--output", "out.parquet"],
        1,
        "a stream cannot write the single file",
    ),
    "two SELECTs of a stream": (
        ["run", "two.sql", *STREAM, "ck"],
        1,
        "a stream runs one SELECT, and this script has 2 at line 4, column 1",
    ),
    "retained rows": (
        ["run", "rows.sql", *STREAM, "ck", "--retain"],
        1,
        "only a time window can retain rows, and this window is ROWS",
    ),
    "asked of no checkpoint": (["ask", "none", "SUM(x)", "x > 1"], 1, "none is not a checkpoint"),
    "status of no checkpoint": (
        ["status", "in"],
        1,
        "in is not a checkpoint; give the checkpoint directory",
    ),
    "asked on no master": (
        ["ask", "none", "SUM(x)", "x > 1", "--master", "lcal"],
        2,
        "not a Spark master: 'lcal'",
    ),
    "demo on no master": (["demo", "--master", "lcal"], 2, "not a Spark master: 'lcal'"),
    "demo into a file": (["demo", "--output", "t.csv"], 1, "t.csv is a file"),
    "former name of --output": (["demo", "--out=t.csv"], 1, "t.csv is a file"),
    "former name of --sample": (
        ["ask", "none", "SUM(x)", "x > 1", "--approximate", "9"],
        1,
        "none is not a checkpoint",
    ),
}


def _folder(folder: Path) -> Path:
    """Scripts and tables for the command lines above."""
    table = pa.table({"at": pa.array([0, 90], pa.timestamp("s", "UTC")), "x": [1, 2]})
    pq.write_table(table, folder / "t.parquet")
    text = "at,x\n2024-01-01T00:00:00Z,1\n2024-01-01T00:01:30Z,2\n"
    (folder / "t.csv").write_text(text)
    for name in ("parts", "in"):
        (folder / name).mkdir()
        (folder / name / "0.csv").write_text(text)
    (folder / "empty").mkdir()
    scripts = {
        "query": QUERY,
        "selct": QUERY.replace("SELECT", "SELCT"),
        "wrong": QUERY.replace("(x)", "(xx)"),
        "text": QUERY.replace("FROM t", "FROM t WHERE x = 'abc'"),
        "two": QUERY * 2,
        "rows": QUERY.replace(
            "RANGE INTERVAL '2' MINUTE PRECEDING SLIDE INTERVAL '1' MINUTE", "ROWS 2 PRECEDING"
        ),
        "sample": QUERY.replace(
            "SUM(x)",
            "SHAPLEY_ATTRIBUTE(SUM(x), x > 1 APPROXIMATE USING RESERVOIR SAMPLE 200000)",
        ),
    }
    for name, script in scripts.items():
        (folder / f"{name}.sql").write_text(script)
    (folder / "other" / "ids").mkdir(parents=True)
    (folder / "other" / "ids" / "stream").write_text('{"version": 2}')
    (folder / "java" / "bin").mkdir(parents=True)
    java = folder / "java" / "bin" / "java"
    java.write_text(JAVA.format(marker=folder / "java-was-started"))
    java.chmod(0o755)
    return folder


def _environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "JAVA_HOME": str(folder / "java"),
        "PATH": f"{folder / 'java' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(folder / "cache"),
    }


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[object]]:
    """What each mistake is told, by one process in which neither Java nor pyspark can start."""
    folder = _folder(tmp_path_factory.mktemp("mistakes"))
    before = sorted(str(path) for path in folder.rglob("*"))
    done = subprocess.run(
        [*PYTHON, PROGRAM],
        input=json.dumps([arguments for arguments, *_ in MISTAKES.values()]),
        cwd=folder,
        env=_environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not (folder / "java-was-started").exists()
    assert sorted(str(path) for path in folder.rglob("*")) == before
    return dict(zip(MISTAKES, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_without_java_and_without_pyspark(
    told: dict[str, list[object]], mistake: str
) -> None:
    _, expected, says = MISTAKES[mistake]
    code, out, err = told[mistake]
    assert (code, out) == (expected, ""), err
    assert says in str(err)
    assert str(err).startswith("error: ") and "Traceback" not in str(err)


def test_a_script_without_mistakes_does_start_java(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    done = subprocess.run(
        [*PYTHON, "from ids.cli import main; main()", "run", "query.sql", "--table", "t=t.csv"],
        cwd=folder,
        env=_environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (folder / "java-was-started").exists()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: Spark did not start")


def test_the_python_calls_check_a_script_before_they_start_java(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    program = """
import ids
from pathlib import Path
wrong = Path("wrong.sql").read_text()
for call in (
    lambda: ids.spark.sql("SELCT 1", t={"x": [1]}),
    lambda: ids.spark.sql(wrong, t="t.parquet"),
    lambda: ids.spark.start("SELCT 1", checkpoint="ck", t="in"),
    lambda: ids.spark.start(wrong, checkpoint="ck", t="in"),
    lambda: ids.spark.start(wrong, checkpoint="ck", t="in", trigger="often"),
):
    try:
        call()
    except ids.IdsError as error:
        print(error)
"""
    done = subprocess.run(
        [*PYTHON, program],
        cwd=folder,
        env=_environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not (folder / "java-was-started").exists()
    told = done.stdout.splitlines()
    starts = ["unknown statement 'SELCT'", "unknown column 'xx'"] * 2 + ["not a duration"]
    assert [line.startswith(start) for line, start in zip(told, starts, strict=True)] == [True] * 5
