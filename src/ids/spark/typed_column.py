"""Columns of Spark in the types IDS computes with (``ids.model.TYPES``), as SQL text.

A table is read in these five types; a query computes with instants as BIGINT, µs since 1970 UTC. No
expression here asks for the session's time zone: what has no zone is UTC, in every session.
Needs no pyspark: what is asked of a stream's rows is checked before Java starts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ids.model import TYPES, Kind
from ids.source import plain_type

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

# The column of ours that says why a value of column NAME is not of its declared type: UNFIT + NAME.
UNFIT = "ids_unfit:"

_PLAIN = re.compile(r"[A-Za-z0-9 _./:@+=,-]*")
_MINUTES = r"^([^:]*:[0-9]{1,2})( ?(?:Z|UTC|[+-][0-9:]+))$"
_EPOCH = "TIMESTAMP'1970-01-01 00:00:00Z'"
_EPOCH_NTZ = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
_MICROS = {
    "timestamp": "unix_micros({})",
    "date": "(unix_date({}) * 86400000000L)",
    # a difference of two times without a zone knows no zone either
    "timestamp_ntz": f"timestampdiff(MICROSECOND, {_EPOCH_NTZ}, {{}})",
}


def quoted(name: str) -> str:
    """A column's name as Spark SQL spells it.

    >>> quoted("a.b`c")
    '`a.b``c`'
    """
    return "`" + name.replace("`", "``") + "`"


def spell(text: str) -> str:
    """A text constant; anything out of the ordinary goes as bytes, which nothing can misread.

    >>> spell("EU-West"), spell("it's")
    ("'EU-West'", "decode(unhex('69742773'), 'UTF-8')")
    """
    if _PLAIN.fullmatch(text):
        return f"'{text}'"
    return f"decode(unhex('{text.encode().hex()}'), 'UTF-8')"


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
    """A value of a Spark type as a query computes with it; None if IDS does not read it."""
    spelled = type_.simpleString()
    if spelled == "void":
        return Typed(text, None)
    name = plain_type(spelled)
    if name is None:
        return None
    if name == "TIMESTAMP":
        return Typed(_MICROS[spelled].format(text), Kind.TIME)
    converted = text if spelled == name.lower() else f"cast({text} as {name.lower()})"
    return Typed(converted, TYPES[name].kind, whole=name == "BIGINT")


def typed(sql: str, type_: DataType) -> str:
    """A value of a Spark type in the one of the five it is read as; others stay what they are."""
    spelled = type_.simpleString()
    if spelled == "timestamp_ntz":
        return instant(sql)
    if spelled == "date":
        return instant(f"CAST({sql} AS TIMESTAMP_NTZ)")
    name = "DOUBLE" if spelled == "void" else plain_type(spelled)
    return sql if name is None or spelled == name.lower() else f"CAST({sql} AS {name})"


def instant(sql: str) -> str:
    """A TIMESTAMP_NTZ as the instant it is in UTC."""
    return f"({_EPOCH} + ({sql} - {_EPOCH_NTZ}))"


def floored(sql: str) -> str:
    """Nanoseconds since 1970 as an instant, rounded down: DIV rounds towards 1970."""
    return f"timestamp_micros({sql} DIV 1000L - IF({sql} % 1000L < 0L, 1L, 0L))"


def zoned_instant(sql: str) -> str:
    """A text as an instant, NULL where it is none; with an offset or a Z, or else in UTC."""
    offset = ", ".join(f"substr({sql}, -{place}, 1)" for place in (3, 5, 6))
    zoned = (
        f"length({sql}) > 15 AND (endswith({sql}, 'Z') "
        f"OR array_contains(array({offset}), '+') OR array_contains(array({offset}), '-'))"
    )
    in_utc = instant(f"try_cast({sql} AS TIMESTAMP_NTZ)")
    return f"CASE WHEN {zoned} THEN {with_zone(sql)} ELSE {in_utc} END"


def with_zone(sql: str) -> str:
    """A text with a zone as an instant, NULL where it is none.

    Spark reads no zone after a time without seconds.
    """
    to_seconds = f"regexp_replace({sql}, {spell(_MINUTES)}, {spell('$1:00$2')})"
    return f"coalesce(try_cast({sql} AS TIMESTAMP), try_cast({to_seconds} AS TIMESTAMP))"
