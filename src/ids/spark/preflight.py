"""Locate tables, read their schemas and report mistakes before Java is started.

Neither this module nor the modules it imports need pyspark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from ids.errors import ArgumentError, Position, ScriptError
from ids.model import (
    Duration,
    Misread,
    Select,
    TimeWindow,
    checked_seed,
    is_remote,
    local_path,
    microseconds,
)
from ids.plan import Schema, SelectPlan, Step, Tables, nothing_asked, planned, statements_of
from ids.sink import check_directory
from ids.source import (
    FORMATS,
    NOTHING,
    Declared,
    FilePath,
    FileSource,
    ParquetPart,
    Source,
    article,
    at_once,
    find_files,
    fitting_types,
    has_files,
    kind_of_type,
    misread_of,
    plain_type,
    sample,
    sampled_source,
    with_declared_types,
)
from ids.spark.file_system import files_at, literal, uri_of
from ids.spark.kafka_topic import Topic, is_kafka, undeclared
from ids.spark.stream_checkpoint import Script, claimed, identity, lock, refuse_another, revised
from ids.spark.stream_output import Output, Target, file_output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_HIGHEST_DEGREE = 2  # panes contain sums and sums of squares
_MOST = 100_000  # rows that Spark's max_by can keep
_PART = r"([^\W\d]\w*|`[^`]+`)"
_TABLE = re.compile(rf"{_PART}(\.{_PART})*")


@dataclass(frozen=True)
class Location:
    """The files of a table, in the order of their rows."""

    place: FilePath
    format: str
    files: Sequence[FilePath]

    @cached_property
    def parts(self) -> list[ParquetPart]:
        """The Parquet files, with their footers."""
        return at_once(ParquetPart, self.files)

    def schema(self, columns: Mapping[str, str], nulls: Sequence[str]) -> Schema:
        """Return the schema that Spark will read, with declared types where there are any."""
        place = str(self.place)
        if self.format == "parquet":
            return source_schema(with_declared_types(FileSource(self.parts), columns, place))
        sampled = sample(self.files, self.format, columns, nulls)
        held = {name: kind_of_type(sql) for name, sql in sampled.types.items()}
        known = {**held, **dict.fromkeys(sampled.untyped)}
        types = fitting_types(columns, known, place)
        kinds = {**known, **{name: kind_of_type(type_) for name, type_ in types.items()}}

        def misread(name: str) -> Misread | None:
            source = sampled_source(self.files, self.format, columns, nulls)
            return None if name in columns else misread_of(source, name)

        return Schema(kinds, sampled.unsupported, misread)

    def load(
        self,
        session: SparkSession,
        members: Sequence[FilePath],
        schema: str,
        options: Mapping[str, str],
        *,
        stream: bool,
    ) -> DataFrame:
        """Load ``members`` as a batch, or the whole directory as a stream."""
        format_ = "json" if self.format == "jsonl" else self.format
        if not stream:
            reader = session.read.format(format_).schema(schema).options(**options)
            return reader.load([literal(uri_of(file)) for file in members])
        suffixes = ",".join(suffix for suffix, known in FORMATS.items() if known == self.format)
        # skips files that are still being copied under a temporary name
        options = {"pathGlobFilter": f"*{{{suffixes}}}", **options}
        stream_reader = session.readStream.format(format_).schema(schema).options(**options)
        return stream_reader.load(literal(uri_of(self.place)))

    def has_odd_names(self) -> bool:
        """Return whether Spark would encode a file name (``a b.csv`` as ``a%20b.csv``)."""
        return any(re.search(r"[^\w.=-]", file.name, re.ASCII) for file in self.files)


def locate(path: FilePath) -> Location:
    """Return the files of a table, given a file or a directory with files of one format."""
    return Location(path, *find_files(path))


def may_be_table(place: object) -> bool:
    """Return whether ``place`` may be a table in Spark's catalog rather than a file.

    >>> may_be_table("lake.sales.orders"), may_be_table("orders.parquet"), may_be_table("in/")
    (True, False, False)
    """
    if not isinstance(place, str) or is_remote(place) or not _TABLE.fullmatch(place):
        return False
    path = local_path(place)
    return path.suffix.lower() not in FORMATS and not path.exists()


def source_schema(source: Source) -> Schema:
    """Return the schema of a table that was opened in process."""
    kinds = {**source.schema, **dict.fromkeys(source.untyped)}
    return Schema(kinds, source.unsupported, partial(misread_of, source))


def schema_at(
    place: str,
    columns: Mapping[str, str] = {},
    nulls: Sequence[str] = (),
    *,
    stream: bool = False,
) -> Schema:
    """Return the schema of local files or a topic, with declared types where there are any.

    The directory of a ``stream`` may be empty.
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
    """Return the schema that consists of the declared columns."""
    plain = {name: plain_type(type_) for name, type_ in columns.items()}
    kinds = {name: kind_of_type(type_) for name, type_ in plain.items() if type_ is not None}
    return Schema(kinds, {n: article(columns[n].lower()) for n, t in plain.items() if t is None})


def steps_of(
    script: str,
    tables: Mapping[str, object],
    declared: Declared = NOTHING,
    *,
    stream: bool = False,
) -> list[Step]:
    """Plan a script over local files and topics."""

    def opened(place: object, name: str) -> Schema:
        return schema_at(str(place), declared.columns(name), declared.nulls, stream=stream)

    return list(planned(script, Tables(tables, opened).of))


def _need_no_spark(tables: Mapping[str, object]) -> bool:
    """Return whether all tables are local files or topics."""
    return all(
        is_kafka(place)
        or (isinstance(place, str | Path) and not (is_remote(place) or may_be_table(place)))
        for place in tables.values()
    )


def check_batch(script: str, tables: Mapping[str, object], declared: Declared = NOTHING) -> None:
    """Raise an error if a script does not match its tables, or if Spark cannot run it.

    If a table is in memory, or only Spark can access it, only the syntax is checked.
    """
    if not _need_no_spark(tables):
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
    """Raise those errors of ``ids.spark.start`` that can be detected without Spark."""
    checked_seed(seed)
    statements_of(script)
    files = None if is_remote(checkpoint) else files_at(checkpoint)
    known = files is not None and claimed(files)
    if not is_remote(checkpoint):
        check_directory(local_path(checkpoint))
    target = _written(output)
    if not known and target is not None:
        target.check()
    if not _need_no_spark(tables):
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


def _written(output: Target) -> Output | None:
    """Return the output if it consists of local files; None if the stream writes elsewhere."""
    if output is None or callable(output):
        return None
    if is_kafka(output):
        Topic.parse(str(output))
        return None
    return None if is_remote(output) else file_output(output)


def only_select(steps: Iterable[Step]) -> tuple[Select, SelectPlan]:
    """Return the only SELECT of a stream's script; raise ScriptError if there is not exactly one.

    SHOW and EXPLAIN are rejected as well.
    """
    known = list(steps)
    selects = [step.statement for step in known if isinstance(step.statement, Select)]
    if len(known) > len(selects):
        raise ScriptError("a stream cannot run SHOW or EXPLAIN", hint="run them without a stream")
    if len(selects) != 1:
        raise ScriptError(
            f"a stream runs one SELECT, and this script has {len(selects) or 'none'}",
            selects[1].at if selects else None,
            "start a stream for each, with its own checkpoint and output",
        )
    (select,), plan = selects, known[0].plan
    assert plan is not None
    refuse_final(plan, select.at)
    return select, plan


def refuse_final(plan: SelectPlan, at: Position | None = None) -> None:
    """Raise ScriptError for EMIT FINAL on a stream."""
    if plan.final:
        raise ScriptError(
            "EMIT FINAL answers at the end of the input, and a stream has no end",
            at,
            "use EMIT CHANGES, or run it over the files as a batch",
        )


def refuse_beyond_panes(plan: SelectPlan) -> None:
    """Raise ScriptError if a time window has an item that cannot be computed on Spark.

    Panes contain no sums of cubes or higher powers, and samples have a maximum size.
    """
    if not isinstance(plan.window, TimeWindow):
        return
    high = [item.game.name for item in plan.items if item.game.degree > _HIGHEST_DEGREE]
    if high:
        raise ScriptError(
            f"{high[0]} over a time window does not run on Spark",
            hint="use ROWS, or run it in process with ids.sql",
        )
    for item in plan.sampled:
        assert item.approximate is not None
        if item.approximate.size + 2 * item.extremes > _MOST:
            raise ScriptError(
                f"a sample of {item.approximate.size:,} rows over a time window does not run on "
                "Spark",
                item.approximate.at,
                f"choose at most {_MOST * 4 // 5:,}, use ROWS, or run it in process",
            )


def refuse_retained_rows(plan: SelectPlan, retain: bool) -> None:
    """Raise ScriptError if ``retain`` is set for a count window."""
    if retain and not isinstance(plan.window, TimeWindow):
        raise ScriptError(
            "only a time window can retain rows, and this window is ROWS",
            hint="use RANGE, or start the stream without retain",
        )


def ahead_cap(max_ahead: Duration | None) -> int | None:
    """Return how far ahead of the other rows a row may be, in µs; None if there is no limit."""
    cap = None if max_ahead is None else microseconds(max_ahead)
    if cap is not None and cap < 1:
        raise ArgumentError(
            f"max_ahead must be longer than 0, not {max_ahead!r}",
            hint="use a longer duration, as in '1 day'",
        )
    return cap
