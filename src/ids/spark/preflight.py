"""A run is checked before Java starts: neither this module nor what it imports needs pyspark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ids.errors import SourceError
from ids.model.query import Select
from ids.model.sampling import checked_seed
from ids.model.table import Kind
from ids.plan import Schema, Step, Tables, nothing_asked, planned, statements_of
from ids.sink.target import check_directory
from ids.source import open_table
from ids.source.folder import find_files
from ids.source.sampling import sample
from ids.spark.declared import declared_schema
from ids.spark.limits import only_select, refuse_beyond_panes, refuse_retained_rows
from ids.spark.streaming.identity import checkpoint_root, claimed, identity, lock, refuse_another
from ids.spark.streaming.outputs import Output, Target, file_output
from ids.spark.topic import Topic, is_kafka, undeclared

__all__ = ["check_batch", "check_stream", "schema_at", "steps_of"]

_KINDS = {"STRING": Kind.TEXT, "BOOLEAN": Kind.BOOLEAN, "TIMESTAMP": Kind.TIME}


def check_batch(
    script: str, tables: Mapping[str, object], schemas: Mapping[str, str] | None = None
) -> None:
    """Refuse a script that does not fit its tables, or that Spark does not run.

    Over tables in memory only its syntax is checked.
    """
    if not _in_files(tables):
        statements_of(script)
        return
    steps = steps_of(script, tables, schemas)
    if not steps:
        raise nothing_asked()
    for step in steps:
        if isinstance(step.statement, Select) and step.plan is not None:
            refuse_beyond_panes(step.plan)


def check_stream(
    script: str,
    tables: Mapping[str, object],
    schemas: Mapping[str, str] | None = None,
    *,
    checkpoint: str | Path,
    output: Target = None,
    retain: bool = False,
    seed: int = 0,
) -> None:
    """Refuse what ``ids.spark.start`` would refuse, as far as that is known without Spark."""
    checked_seed(seed)
    statements_of(script)
    root = checkpoint_root(checkpoint)
    check_directory(root)
    target = _written(output)
    if not claimed(root / "ids") and target is not None:
        target.check()
    if not _in_files(tables):
        return
    _, plan = only_select(steps_of(script, tables, schemas))
    refuse_beyond_panes(plan)
    refuse_retained_rows(plan, retain)
    if claimed(root / "ids"):
        name = target.name if target else str(output) if is_kafka(output) else "memory"
        refuse_another(root / "ids", identity(replace(plan, seed=seed), name))
        lock(root / "ids").close()


def _in_files(tables: Mapping[str, object]) -> bool:
    return all(isinstance(place, str | Path) for place in tables.values())


def _written(output: Target) -> Output | None:
    """The files a stream writes to; None where it writes none."""
    if output is None or callable(output):
        return None
    if is_kafka(output):
        Topic.parse(str(output))
        return None
    return file_output(output)


def steps_of(
    script: str, tables: Mapping[str, object], schemas: Mapping[str, str] | None = None
) -> list[Step]:
    """Plan a script over files and topics, those of ``schemas`` with the columns declared there."""
    declared = {name: declared_schema(schema) for name, schema in (schemas or {}).items()}
    known = Tables(tables, lambda place, name: schema_at(str(place), declared.get(name)))
    return list(planned(script, known.of))


def schema_at(place: str, declared: Schema | None = None) -> Schema:
    """The columns that Spark will see at ``place``."""
    if is_kafka(place):
        Topic.parse(place)
        if declared is None:
            raise undeclared(place)
        return declared
    format_, files = find_files(Path(place))
    if format_ == "parquet":
        if declared is not None:
            raise SourceError(f"{place} has a schema of its own; declare none for Parquet")
        source = open_table(place, place)
        return Schema({**source.schema, **dict.fromkeys(source.untyped)}, source.unsupported)
    sampled = sample(files, format_)
    kinds = {name: _KINDS.get(sql, Kind.NUMBER) for name, sql in sampled.types.items()}
    untyped = dict.fromkeys(sampled.untyped)
    return Schema({**kinds, **untyped, **(declared.kinds if declared else {})}, {})
