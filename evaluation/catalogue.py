"""The chapters by key, loaded when asked for: each brings in what it measures beside."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ids.errors import SetupError, UnknownNameError

__all__ = ["KEYS", "chapter", "chapters"]

KEYS = ("rq1", "rq2", "rq3", "rq4", "rq5", "rq6", "beyond")
_PEERS = ("duckdb", "markdown_it", "matplotlib", "pandas", "polars", "scipy", "shap", "shapiq")


def chapters(asked: Iterable[str] = ()) -> list[Any]:
    """Those that were asked for, in the paper's order; all without."""
    wanted = {_known(key) for key in asked} or set(KEYS)
    missing = [package for package in _PEERS if find_spec(package) is None]
    if missing:
        raise SetupError(
            f"python -m evaluation needs {', '.join(missing)}; "
            "install them: pip install 'ids-engine[evaluation]'"
        )
    return [chapter(key) for key in KEYS if key in wanted]


def chapter(key: str) -> Any:
    """One chapter, of the package that bears its key."""
    return import_module(f"evaluation.{key}").CHAPTER


def _known(key: str) -> str:
    if key.lower() not in KEYS:
        raise UnknownNameError("research question", key, KEYS)
    return key.lower()
