"""Ctrl-C, at whatever moment: code 130, one line, no traceback, no half-written output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import sleep

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import SELECT
from tests.spark.cluster import JAVA_OPTIONS, LIGHT

ROOT = Path(__file__).resolve().parents[2]
# Touches a file when a module is about to be imported, and waits there.
PROGRAM = """
import sys, time
from pathlib import Path
module, marker = sys.argv.pop(1), Path(sys.argv.pop(1))
class Waiting:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            marker.touch()
            time.sleep(3600)
sys.meta_path.insert(0, Waiting())
from ids.cli import main
main()
"""
# Answers as Java or as Python would, touches a file, and waits until its caller is gone.
WAITING = """#!/bin/sh
case $1 in -version) echo 'openjdk version "17.0.1" 2021-10-19' >&2; exit 0 ;; esac
touch {marker}
exec cat > /dev/null
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where commands run: a script, its table, and a program that waits in ``waiting/bin``."""
    (tmp_path / "query.sql").write_text(SELECT)
    (tmp_path / "t.csv").write_text("at,x\n2024-01-01T00:00:00Z,1\n2024-01-01T00:00:01Z,2\n")
    (tmp_path / "waiting" / "bin").mkdir(parents=True)
    program = tmp_path / "waiting" / "bin" / "java"
    program.write_text(WAITING.format(marker=tmp_path / ".here"))
    program.chmod(0o755)
    return tmp_path


def interrupted(
    folder: Path, module: str, *arguments: str, java: bool = True, sign: str = ".here"
) -> None:
    """Run a command line, interrupt it once a file has the name ``sign``, and see how it ends."""
    before = {path.name for path in folder.iterdir()} | {".here", ".cache"}
    waiting = {} if java else {"JAVA_HOME": str(folder / "waiting")}
    command = [sys.executable, "-c", PROGRAM, module, str(folder / ".here"), *arguments]
    with subprocess.Popen(
        command,
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "XDG_CACHE_HOME": str(folder / ".cache"),
            **waiting,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a terminal sends the signal to all that a command has started
    ) as process:
        while not (seen := any(folder.glob(sign))) and process.poll() is None:
            sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate()
    assert seen, err
    assert process.returncode == 130, err
    assert out == "" or arguments[0] == "demo"
    assert err.endswith("interrupted\n") and "Traceback" not in err and "Error" not in err, err
    assert {path.name for path in folder.iterdir()} <= before


RUN = ("run", "query.sql", "--table", "t=t.csv", "--output", "out.parquet")


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("ids.cli.app", RUN),
        ("typer", RUN),
        ("pyarrow", ("demo",)),
        ("ids.plan", RUN),
        ("ids.spark.preflight", ("explain", "query.sql", "--table", "t=t.csv")),
        ("ids.query", (*RUN, "--engine", "local")),
        ("numba", (*RUN, "--engine", "local")),
        ("pyspark", RUN),
        ("pyspark", ("demo", "--output", "demo")),
        ("ids.spark.stream_question", ("ask", "ck", "SUM(x)", "x > 1")),
    ],
)
def test_an_interrupt_while_modules_are_imported(
    folder: Path, module: str, arguments: tuple[str, ...]
) -> None:
    interrupted(folder, module, *arguments)


@pytest.mark.parametrize("arguments", [RUN, ("demo", "--output", "demo")])
def test_an_interrupt_while_java_starts(folder: Path, arguments: tuple[str, ...]) -> None:
    interrupted(folder, "", *arguments, java=False)


@pytest.mark.parametrize(
    ("output", "sign"),
    [
        pytest.param("out.parquet", ".out.parquet.*", marks=pytest.mark.slow),
        pytest.param("out/", "out/.*.tmp/*", marks=pytest.mark.slow),
        pytest.param("viewfs://ids/data/out/", "out/.*.tmp/*", marks=pytest.mark.slow),
        pytest.param("viewfs://ids/data/one.csv", ".one.csv.*", marks=pytest.mark.slow),
    ],
)
def test_an_interrupt_while_spark_runs_a_job(folder: Path, output: str, sign: str) -> None:
    rows = 1_000_000
    at = pa.array(range(rows), pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"at": at, "x": range(rows)}), folder / "t.parquet")
    (folder / "out.parquet").write_bytes(b"yesterday's")
    table = ("--table", "t=t.parquet", "--output", output)
    mounted = f"spark.hadoop.fs.viewfs.mounttable.ids.link./data=file:{folder}"
    conf = ("--master", "local[2]", "--conf", f"{JAVA_OPTIONS}={LIGHT}", "--conf", mounted)
    # the rows of the job that runs go into a hidden file
    interrupted(folder, "", "run", "query.sql", *table, *conf, sign=sign)
    assert (folder / "out.parquet").read_bytes() == b"yesterday's"


@pytest.mark.slow
def test_an_interrupt_while_the_demo_streams(folder: Path) -> None:
    (folder / "demo").mkdir()
    interrupted(folder, "", "demo", "--rows", "20000", "--output", "demo", sign="demo/checkpoint")
