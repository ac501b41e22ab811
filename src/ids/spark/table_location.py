"""Where a table is: which files a place means, what they hold, and how Spark is told of them.

Needs no pyspark, so that files of this machine can be looked at before Java starts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ids.model import Misread, is_remote, local_path
from ids.plan import Schema
from ids.source import (
    FORMATS,
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
from ids.spark.file_system import literal, uri_of
from ids.spark.kafka_topic import Topic, is_kafka, undeclared

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_PART = r"([^\W\d]\w*|`[^`]+`)"
_TABLE = re.compile(rf"{_PART}(\.{_PART})*")


@dataclass(frozen=True)
class Location:
    """The files of a table, in the order in which their rows count."""

    place: FilePath
    format: str
    files: Sequence[FilePath]

    @cached_property
    def parts(self) -> list[ParquetPart]:
        """Parquet files, their footers read."""
        return at_once(ParquetPart, self.files)

    def schema(self, columns: Mapping[str, str], nulls: Sequence[str]) -> Schema:
        """The columns that Spark will see, some of them as they are declared."""
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
        schema: StructType,
        options: Mapping[str, str],
        *,
        stream: bool,
    ) -> DataFrame:
        """``members`` as a batch; as a stream the whole place, where files will arrive."""
        format_ = "json" if self.format == "jsonl" else self.format
        if not stream:
            reader = session.read.format(format_).schema(schema).options(**options)
            return reader.load([literal(uri_of(file)) for file in members])
        suffixes = ",".join(suffix for suffix, known in FORMATS.items() if known == self.format)
        # a file that is still being copied under another name is not there yet
        options = {"pathGlobFilter": f"*{{{suffixes}}}", **options}
        stream_reader = session.readStream.format(format_).schema(schema).options(**options)
        return stream_reader.load(literal(uri_of(self.place)))

    def has_odd_names(self) -> bool:
        """Whether Spark spells a file's name otherwise than its folder does (``a%20b.csv``)."""
        return any(re.search(r"[^\w.=-]", file.name, re.ASCII) for file in self.files)


def locate(path: FilePath) -> Location:
    """A file, or a directory of files of one format: what the in-process reader would take."""
    return Location(path, *find_files(path))


def may_be_table(place: object) -> bool:
    """Whether a place is no file of this machine, but could be a table of Spark's catalog.

    >>> may_be_table("lake.sales.orders"), may_be_table("orders.parquet"), may_be_table("in/")
    (True, False, False)
    """
    if not isinstance(place, str) or is_remote(place) or not _TABLE.fullmatch(place):
        return False
    path = local_path(place)
    return path.suffix.lower() not in FORMATS and not path.exists()


def source_schema(source: Source) -> Schema:
    """The columns of a table that is open in process."""
    kinds = {**source.schema, **dict.fromkeys(source.untyped)}
    return Schema(kinds, source.unsupported, partial(misread_of, source))


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
    """Columns of which nothing is known but their declared types."""
    plain = {name: plain_type(type_) for name, type_ in columns.items()}
    kinds = {name: kind_of_type(type_) for name, type_ in plain.items() if type_ is not None}
    return Schema(kinds, {n: article(columns[n].lower()) for n, t in plain.items() if t is None})
