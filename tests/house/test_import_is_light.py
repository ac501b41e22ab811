from __future__ import annotations

import os
import subprocess
import sys

from tests.house.source import SRC

HEAVY = {"pyspark", "sqlglot", "numba", "llvmlite", "pandas", "polars", "duckdb", "typer", "rich"}


def test_import_ids_brings_in_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import ids, sys; print(*sys.modules)"],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "ids" in loaded
    assert not HEAVY & loaded
