"""Engines as measurements need them: predicates registered, rows taken in batch by batch."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

import ids

__all__ = ["filled", "registered", "registering"]


def registered(engine: ids.Engine, conditions: Mapping[str, str]) -> ids.Engine:
    """The same engine, with these predicates by name."""
    for name, condition in conditions.items():
        engine.register(name, condition)
    return engine


def registering(conditions: Mapping[str, str], stream: str) -> str:
    """The lines of a script that register the same predicates on a stream.

    >>> registering({"eu": "region = 'EU'"}, "events")
    "REGISTER PREDICATE eu AS (region = 'EU') ON events;"
    """
    return "\n".join(
        f"REGISTER PREDICATE {name} AS ({condition}) ON {stream};"
        for name, condition in conditions.items()
    )


def filled(engine: ids.Engine, events: pa.Table, batch: int) -> ids.Engine:
    """The same engine, after it was given the rows, so many at a time."""
    for first in range(0, events.num_rows, batch):
        engine.ingest(events.slice(first, batch))
    return engine
