"""A Spark table as IDS sees it: what each column holds, and how it reads as one of four types.

Numbers become BIGINT or DOUBLE, texts STRING, truths BOOLEAN, instants BIGINT (µs since 1970 UTC,
whatever the session's time zone). That is what the in-process engine computes with, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from ids.model.table import Kind
from ids.plan import Schema
from ids.source.memory import article
from ids.spark.sources.canonical import quoted
from ids.spark.typed import Typed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

__all__ = ["HIDDEN", "Frame", "Typed", "quoted"]

HIDDEN = ("ids_origin", "ids_malformed")  # what our own sources put beside a table's columns

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


@dataclass(frozen=True, slots=True)
class Frame:
    """A DataFrame, the columns IDS reads of it, and why it does not read the others."""

    data: DataFrame
    columns: dict[str, Typed]
    unsupported: dict[str, str]

    @classmethod
    def of(cls, data: DataFrame) -> Frame:
        """Read a DataFrame's schema; no job runs."""
        columns: dict[str, Typed] = {}
        unsupported: dict[str, str] = {}
        for field in data.schema.fields:
            if field.name in HIDDEN:
                continue
            typed = _typed(field.name, field.dataType)
            if typed is None:
                unsupported[field.name] = _described(field.dataType)
            else:
                columns[field.name] = typed
        return cls(data, columns, unsupported)

    @property
    def schema(self) -> Schema:
        """What a plan needs to know; a column of Spark's VOID holds nothing."""
        kinds = {name: typed.kind for name, typed in self.columns.items()}
        return Schema(kinds, self.unsupported)


def _typed(name: str, type_: DataType) -> Typed | None:
    text, spelled = quoted(name), type_.simpleString()
    if spelled in _INTEGERS:
        return Typed(text if spelled == "bigint" else f"cast({text} as bigint)", Kind.NUMBER, True)
    if spelled in ("double", "float") or spelled.startswith("decimal"):
        return Typed(text if spelled == "double" else f"cast({text} as double)", Kind.NUMBER)
    if spelled == "string" or spelled.startswith(("char(", "varchar(", "string collate")):
        plain = spelled != "string"
        return Typed(f"cast({text} as string)" if plain else text, Kind.TEXT)
    if spelled == "boolean":
        return Typed(text, Kind.BOOLEAN)
    if spelled == "void":
        return Typed(text, None)
    if spelled == "timestamp":
        return Typed(f"unix_micros({text})", Kind.TIME)
    if spelled == "date":
        return Typed(f"(unix_date({text}) * 86400000000L)", Kind.TIME)
    if spelled == "timestamp_ntz":
        # a difference of two times without a zone knows no zone either
        return Typed(f"timestampdiff(MICROSECOND, {_EPOCH}, {text})", Kind.TIME)
    return None


def _described(type_: DataType) -> str:
    """A type IDS does not read, in the words of the in-process reader where it has them."""
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        return article(str(to_arrow_type(type_)))
    except PySparkException:
        return article(type_.simpleString())
