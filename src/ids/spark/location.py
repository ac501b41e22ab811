"""Where a table lies: which files a place means, what they hold, and how Spark is told of them.

Needs no pyspark, so that files of this machine can be looked at before Java starts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ids.model.place import is_remote, local_path
from ids.model.table import Misread
from ids.plan import Schema
from ids.source import Source, misread_of
from ids.source.conversion import fitting_types, kind_of_type
from ids.source.files import FileSource
from ids.source.folder import FORMATS, FilePath, at_once, find_files
from ids.source.parts import ParquetPart
from ids.source.retyped import retyped
from ids.source.sampling import sample, sampled_source
from ids.spark.files import literal, uri_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["Location", "locate", "may_be_table", "source_schema"]

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
            return source_schema(retyped(FileSource(self.parts), columns, place))
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
