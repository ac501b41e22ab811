"""A run is checked before Java starts: neither this module nor what it imports needs pyspark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ids.model.query import Select
from ids.model.sampling import checked_seed
from ids.model.table import Kind, Misread
from ids.plan import Schema, Step, Tables, nothing_asked, planned, statements_of
from ids.sink.target import check_directory
from ids.source import Declared, Source, misread_of, open_table
from ids.source.conversion import fitting_types, kind_of_type
from ids.source.declared import NOTHING, plain_type
from ids.source.folder import find_files, has_files
from ids.source.memory import article
from ids.source.sampling import sample, sampled_source
from ids.spark.limits import only_select, refuse_beyond_panes, refuse_retained_rows
from ids.spark.streaming.identity import checkpoint_root, claimed, identity, lock, refuse_another
from ids.spark.streaming.outputs import Output, Target, file_output
from ids.spark.topic import Topic, is_kafka, undeclared

__all__ = ["check_batch", "check_stream", "schema_at", "source_schema", "steps_of"]


def check_batch(script: str, tables: Mapping[str, object], declared: Declared = NOTHING) -> None:
    """Refuse a script that does not fit its tables, or that Spark does not run.

    Over tables in memory only its syntax is checked.
    """
    if not _in_files(tables):
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
    root = checkpoint_root(checkpoint)
    check_directory(root)
    target = _written(output)
    if not claimed(root / "ids") and target is not None:
        target.check()
    if not _in_files(tables):
        return
    _, plan = only_select(steps_of(script, tables, declared, stream=True))
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
    """The columns that Spark will see at ``place``, some of them as they are declared.

    A ``stream`` reads a directory, in which there may be no file yet.
    """
    if is_kafka(place):
        Topic.parse(place)
        if not columns:
            raise undeclared(place)
        return _declared(columns)
    if stream and not has_files(Path(place), declared=bool(columns)):
        return _declared(columns)
    format_, files = find_files(Path(place))
    if format_ == "parquet":
        return source_schema(open_table(place, place, columns))
    sampled = sample(files, format_, columns, nulls)
    held = {name: kind_of_type(sql) for name, sql in sampled.types.items()}
    known = {**held, **dict.fromkeys(sampled.untyped)}
    types = fitting_types(columns, known, place)
    kinds = {**known, **{name: kind_of_type(type_) for name, type_ in types.items()}}

    def misread(name: str) -> Misread | None:
        source = sampled_source(files, format_, columns, nulls)
        return None if name in columns else misread_of(source, name)

    return Schema(kinds, {}, misread)


def source_schema(source: Source) -> Schema:
    """The columns of a table that is open in process."""
    kinds = {**source.schema, **dict.fromkeys(source.untyped)}
    return Schema(kinds, source.unsupported, partial(misread_of, source))


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
