"""What a record was made with: the machine, the versions, the commit."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["describe"]

_HERE = Path(__file__).resolve().parent
_PACKAGES = (
    "ids-engine", "numpy", "numba", "pyarrow", "pandas", "polars", "duckdb", "pyspark",
    "scipy", "shap", "shapiq",
)  # fmt: skip


def describe(load: float | None = None) -> dict[str, Any]:
    """The machine, the versions and the commit a record was made with."""
    return {
        "machine": {
            "cores": os.cpu_count(),
            "load_before": os.getloadavg()[0] if load is None else load,
            "python": platform.python_version(),
            "platform": f"{platform.system()} {platform.machine()}",
        },
        "versions": dict(filter(None, map(_version, _PACKAGES))),
        "commit": _commit(),
    }


def _version(package: str) -> tuple[str, str] | None:
    try:
        return package, version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the source this runs from; None where it was installed without one."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(_HERE), *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        if not git("ls-files", "--", "machine.py"):
            return None  # a repository, but of somebody else's
        return git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return None
