"""Streams: the same script over rows that keep coming, exactly once."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ids.spark.streaming.overview import Status, status
    from ids.spark.streaming.progress import Progress, Totals
    from ids.spark.streaming.retained.asking import ask
    from ids.spark.streaming.running import Running
    from ids.spark.streaming.starting import MAX_AHEAD, start

__all__ = ["MAX_AHEAD", "Progress", "Running", "Status", "Totals", "ask", "start", "status"]

# Loaded on first use: what is checked before Java starts lies beside these, and needs no pyspark.
_HOMES = {
    "MAX_AHEAD": "starting",
    "Progress": "progress",
    "Running": "running",
    "Status": "overview",
    "Totals": "progress",
    "ask": "retained.asking",
    "start": "starting",
    "status": "overview",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ids.spark.streaming' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"ids.spark.streaming.{_HOMES[name]}"), name)
    return found
