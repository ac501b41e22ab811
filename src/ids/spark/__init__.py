"""The data pipeline on Apache Spark: the same scripts, the same answers, batch and stream."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ids.spark.script import Result, sql, sql_all
    from ids.spark.streaming import Status, ask, start, status

__all__ = ["Result", "Status", "ask", "sql", "sql_all", "start", "status"]

# Loaded on first use: not everyone who imports IDS has Spark to start.
_HOMES = {
    "Result": "ids.spark.script",
    "Status": "ids.spark.streaming",
    "ask": "ids.spark.streaming",
    "sql": "ids.spark.script",
    "sql_all": "ids.spark.script",
    "start": "ids.spark.streaming",
    "status": "ids.spark.streaming",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ids.spark' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found
