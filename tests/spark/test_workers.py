"""Functions of ours run in a Python that has IDS, or one line says which has not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import ids
from ids.errors import SetupError
from ids.spark import frame as mapping
from ids.spark.failures import translate
from ids.spark.session import ensure_java
from tests.spark.cluster import JAVA_OPTIONS, LIGHT

OUR_OWN = """
import sys
sys.path.insert(0, sys.argv[1])
import ids
from ids.errors import SetupError
from pyspark.sql import SparkSession

script = "SELECT SUM(x) AS s FROM t WINDOW w AS (ORDER BY i ROWS 2 PRECEDING) EMIT CHANGES"
builder = SparkSession.builder.master(sys.argv[2]).config("spark.ui.enabled", "false")
spark = builder.config(sys.argv[3], sys.argv[4]).getOrCreate()
context = spark.sparkContext
before = context.pythonExec, dict(context.environment)
rows = spark.range(3).selectExpr("id AS i", "cast(id as double) AS x")
try:
    print(ids.spark.sql(script, t=rows).toArrow()["s"].to_pylist())
except SetupError as error:
    print(error)
print(before == (context.pythonExec, context.environment))
spark.stop()
"""


@pytest.mark.parametrize(
    ("master", "answer"),
    [
        pytest.param("local[1]", re.escape("[0.0, 1.0, 3.0]"), marks=pytest.mark.slow),
        pytest.param(
            "local-cluster[1,1,1024]",
            r"the Python of Spark's workers has no .*"
            r"before the session \(or the Spark Connect server\) starts",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_session_of_an_environment_that_is_not_activated_runs_our_functions_or_says_why_not(
    tmp_path: Path, master: str, answer: str
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    other = tools / "python3"  # has nothing but the standard library
    other.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    other.chmod(0o755)
    ours = ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    program = [sys.executable, "-c", OUR_OWN, str(Path(ids.__file__).parents[1])]
    done = subprocess.run(
        [*program, master, JAVA_OPTIONS, LIGHT],
        env=kept | {"PATH": f"{tools}:/usr/bin:/bin", "JAVA_HOME": str(ensure_java())},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found, untouched = done.stdout.splitlines()
    assert re.fullmatch(answer, found)
    assert untouched == "True"


@pytest.mark.slow
def test_another_version_of_ids_in_the_workers_is_refused_by_both_names(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapping, "local_context", lambda _: None)
    monkeypatch.setattr(mapping, "_PACKAGE", "pyspark")
    monkeypatch.setattr(mapping, "_CHECKED", set())
    mapping.check_workers(spark)
    assert {spark.sparkContext.applicationId} == mapping._CHECKED
    mapping._CHECKED.clear()
    monkeypatch.setattr(mapping, "_installed", lambda: "0.0.1")
    with pytest.raises(
        SetupError, match=f"workers has IDS {version('pyspark')}, this one has 0.0.1; "
    ):
        mapping.check_workers(spark)


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("ModuleNotFoundError: No module named 'ids'", "has no IDS"),
        ("ModuleNotFoundError: No module named 'pyarrow'", "has no pyarrow"),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.10 than that in "
            "driver: 3.12, PySpark cannot run with different minor versions.",
            "is 3.10, this one is 3.12",
        ),
        ('java.io.IOException: Cannot run program "python3": error=2', "(python3) does not exist"),
    ],
)
def test_a_python_that_cannot_run_our_functions_is_named_in_one_line(said: str, fact: str) -> None:
    error = translate(PySparkException(f"Job aborted\n{said}\n\tat java"))
    assert str(error) == (
        f"the Python of Spark's workers {fact}; install IDS there, or set PYSPARK_PYTHON to a "
        "Python that has it before the session (or the Spark Connect server) starts"
    )
