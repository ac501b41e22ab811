from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.metadata import version

import pytest

import ids
from tests.architecture.source import ROOT, SRC

HEAVY = {"pyspark", "numba", "llvmlite", "pandas", "polars", "duckdb", "typer", "rich"}


LISTED = "import ids, ids.spark, sys; dir(ids); dir(ids.spark); ids.__version__; "


def printed(program: str) -> str:
    """What a fresh Python prints."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("imported", ["import ids, sys; ", LISTED])
def test_import_ids_brings_in_nothing_heavy(imported: str) -> None:
    loaded = {name.partition(".")[0] for name in printed(imported + "print(*sys.modules)").split()}
    assert "ids" in loaded
    assert not HEAVY & loaded


def test_import_ids_does_not_read_the_package_metadata() -> None:
    assert "importlib.metadata" not in printed("import ids, sys; print(*sys.modules)").split()


def test_dir_lists_every_public_name_before_its_first_use() -> None:
    listed = printed("import ids; print(*dir(ids)); import ids.spark; print(*dir(ids.spark))")
    of_ids, of_spark = listed.splitlines()
    assert {*ids.__all__, "__version__"} <= set(of_ids.split())
    assert set(ids.spark.__all__) <= set(of_spark.split())


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert ids.__version__ == project["version"] == version(project["name"])


@pytest.mark.parametrize(
    "typed",
    ["--help", "run --help", "run q.sql --nonsense", "run q.sql --engine duck", "ask", "status"],
)
def test_help_and_wrong_options_do_not_wait_for_heavy_modules(typed: str) -> None:
    heavy = {"pyarrow", "numpy", "numba", "pyspark", "pandas", "sqlglot"}
    program = f"import sys; from ids.cli.app import invoke; print(invoke({typed.split()!r}))"
    *_, code, loaded = printed(program + "; print(*sys.modules)").splitlines()
    assert code == ("0" if "--help" in typed else "2")
    assert not heavy & set(loaded.split())
