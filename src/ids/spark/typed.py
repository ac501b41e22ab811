"""A column of a Spark table as IDS reads it: SQL text, and what the text gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ids.model.table import Kind

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

__all__ = ["UNFIT", "Typed", "quoted", "typed_value", "unfit_of"]

# The column of ours that says why a value of column NAME is not of its declared type: UNFIT + NAME.
UNFIT = "ids_unfit:"

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


def quoted(name: str) -> str:
    """A column's name as Spark SQL spells it.

    >>> quoted("a.b`c")
    '`a.b``c`'
    """
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class Typed:
    """SQL text and what it gives; ``kind`` is None for NULL, ``whole`` says BIGINT for a number."""

    text: str
    kind: Kind | None
    whole: bool = False

    @property
    def type(self) -> str:
        """The Spark type of the text."""
        if self.kind is Kind.NUMBER:
            return "bigint" if self.whole else "double"
        names = {Kind.TEXT: "string", Kind.BOOLEAN: "boolean", Kind.TIME: "bigint"}
        return "boolean" if self.kind is None else names[self.kind]


def unfit_of(typed: Typed) -> str:
    """The column beside a numbered column that says why its value is not of its declared type."""
    return f"ids_unfit_{typed.text}"


def typed_value(text: str, type_: DataType) -> Typed | None:
    """A value of a Spark type as one of the four; None if IDS does not read it."""
    spelled = type_.simpleString()
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
