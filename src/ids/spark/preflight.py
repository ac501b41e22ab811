"""A run is checked before Java starts: neither this module nor what it imports needs pyspark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ids.model.query import Select
from ids.model.sampling import checked_seed
from ids.model.table import Kind
from ids.plan import Schema, Step, Tables, nothing_asked, planned, statements_of
from ids.sink.target import check_directory
from ids.source import Declared
from ids.source.conversion import kind_of_type
from ids.source.declared import NOTHING, plain_type
from ids.source.folder import has_files
from ids.source.memory import article
from ids.spark.files import files_at, is_remote, local_path
from ids.spark.limits import only_select, refuse_beyond_panes, refuse_retained_rows
from ids.spark.location import locate, may_be_table
from ids.spark.streaming.identity import claimed, identity, lock, refuse_another
from ids.spark.streaming.outputs import Output, Target, file_output
from ids.spark.streaming.revision import Script, revised
from ids.spark.topic import Topic, is_kafka, undeclared

__all__ = ["check_batch", "check_stream", "schema_at", "steps_of"]


def check_batch(script: str, tables: Mapping[str, object], declared: Declared = NOTHING) -> None:
    """Refuse a script that does not fit its tables, or that Spark does not run.

    Over tables in memory, or that only Spark reaches, its syntax alone is checked.
    """
    if not _within_reach(tables):
        statements_of(script)
        return
    steps = steps_of(script, tables, declared)
    if not steps:
        raise nothing_asked()
    for step in steps:
        if isinstance(step.statement, Select) and step.plan is not None:
            refuse_beyond_panes(step.plan)


def check_stream(
    script: str,
    tables: Mapping[str, object],
    declared: Declared = NOTHING,
    *,
    checkpoint: str | Path,
    output: Target = None,
    retain: bool = False,
    seed: int = 0,
) -> None:
    """Refuse what ``ids.spark.start`` would refuse, as far as that is known without Spark."""
    checked_seed(seed)
    statements_of(script)
    files = None if is_remote(checkpoint) else files_at(checkpoint)
    known = files is not None and claimed(files)
    if not is_remote(checkpoint):
        check_directory(local_path(checkpoint))
    target = _written(output)
    if not known and target is not None:
        target.check()
    if not _within_reach(tables):
        return
    _, plan = only_select(steps_of(script, tables, declared, stream=True))
    refuse_beyond_panes(plan)
    refuse_retained_rows(plan, retain)
    if files is not None and known:
        name = target.name if target else str(output) if is_kafka(output) else "memory"
        plan = replace(plan, seed=seed)
        refuse_another(files, identity(plan, name))
        revised(files, Script.of(plan), plan, name if target and target.fixed else None)
        held = lock(files)
        if held is not None:
            held.close()


def _within_reach(tables: Mapping[str, object]) -> bool:
    """Whether all tables are files of this machine, or topics with declared columns."""
    return all(
        is_kafka(place)
        or (isinstance(place, str | Path) and not (is_remote(place) or may_be_table(place)))
        for place in tables.values()
    )


def _written(output: Target) -> Output | None:
    """The files a stream writes to; None where it writes none."""
    if output is None or callable(output):
        return None
    if is_kafka(output):
        Topic.parse(str(output))
        return None
    if is_remote(output):
        return None
    return file_output(output)


def steps_of(
    script: str,
    tables: Mapping[str, object],
    declared: Declared = NOTHING,
    *,
    stream: bool = False,
) -> list[Step]:
    """Plan a script over files and topics, with the columns declared for them."""

    def opened(place: object, name: str) -> Schema:
        return schema_at(str(place), declared.columns(name), declared.nulls, stream=stream)

    return list(planned(script, Tables(tables, opened).of))


def schema_at(
    place: str,
    columns: Mapping[str, str] = {},
    nulls: Sequence[str] = (),
    *,
    stream: bool = False,
) -> Schema:
    """The columns that Spark will see at a ``place`` that needs no Spark, some as declared.

    A ``stream`` reads a directory, in which there may be no file yet.
    """
    if is_kafka(place):
        Topic.parse(place)
        if not columns:
            raise undeclared(place)
        return _declared(columns)
    path = local_path(place)
    if stream and not has_files(path, declared=bool(columns)):
        return _declared(columns)
    return locate(path).schema(columns, nulls)


def _declared(columns: Mapping[str, str]) -> Schema:
    kinds: dict[str, Kind | None] = {}
    unsupported: dict[str, str] = {}
    for name, type_ in columns.items():
        plain = plain_type(type_)
        if plain is None:
            unsupported[name] = article(type_.lower())
        else:
            kinds[name] = kind_of_type(plain)
    return Schema(kinds, unsupported)
