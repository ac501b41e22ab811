"""Schemas that a person declares: ``ts EPOCH_MILLIS, region STRING, latency DOUBLE``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ids.errors import SourceError, closest

__all__ = [
    "EPOCHS",
    "NOTHING",
    "Declared",
    "declared",
    "plain_type",
    "plain_types",
    "unfit_reason",
]

# Times as numbers since 1970, and how many of them a second has.
EPOCHS = {"EPOCH_SECONDS": 1, "EPOCH_MILLIS": 1_000, "EPOCH_MICROS": 1_000_000}

_COLUMN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|(\w+))\s*(?::\s*|\s)(([A-Za-z_]+).*?)\s*", re.DOTALL)
_WHOLE = ("BYTE", "TINYINT", "SHORT", "SMALLINT", "INT", "INTEGER", "LONG", "BIGINT")
_PLAIN: dict[str, str | None] = {
    **dict.fromkeys(_WHOLE, "BIGINT"),
    **dict.fromkeys(("FLOAT", "REAL", "DOUBLE", "DECIMAL", "DEC", "NUMERIC"), "DOUBLE"),
    **dict.fromkeys(("STRING", "CHAR", "CHARACTER", "VARCHAR"), "STRING"),
    **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"), "TIMESTAMP"),
    "BOOLEAN": "BOOLEAN",
    **{epoch: epoch for epoch in EPOCHS},
    # what Spark knows, and IDS does not read
    **dict.fromkeys(("ARRAY", "MAP", "STRUCT", "BINARY", "VARIANT", "INTERVAL", "TIME"), None),
    **dict.fromkeys(("VOID", "OBJECT", "GEOMETRY", "GEOGRAPHY"), None),
}
_NOUNS = {
    "STRING": "text",
    "BIGINT": "a whole number",
    "DOUBLE": "a number",
    "BOOLEAN": "true or false",
    "TIMESTAMP": "a timestamp, such as 2024-01-31 12:00:00",
    **{epoch: f"{epoch} of the years 1 to 9999" for epoch in EPOCHS},
}


def declared(schema: str) -> dict[str, str]:
    """Each column and its type, as they are written.

    >>> declared("ts EPOCH_MILLIS, `a b` decimal(10, 2)")
    {'ts': 'EPOCH_MILLIS', 'a b': 'decimal(10, 2)'}
    """
    columns: dict[str, str] = {}
    for column in _divided(schema):
        found = _COLUMN.fullmatch(column)
        if found is None:
            raise SourceError(
                f"cannot read the schema {schema!r}; write it as 'a STRING, b DOUBLE, t TIMESTAMP'"
            )
        quoted, plain, type_, word = found.groups()
        name = plain or quoted.replace("``", "`")
        if word.upper() not in _PLAIN:
            near = closest(word.upper(), _PLAIN)
            raise SourceError(f"unknown type {word} of {name!r} in the schema; {near}")
        if name in columns:
            raise SourceError(f"the schema {schema!r} declares {name!r} twice; leave one out")
        columns[name] = type_
    return columns


def _divided(schema: str) -> list[str]:
    """The columns, divided at the commas that stand in no brackets and no quotes."""
    columns, depth, at = [], 0, 0
    for found in re.finditer(r"`(?:[^`]|``)*`|'[^']*'|[(<\[,)>\]]", schema):
        sign = found.group()
        if sign == "," and depth == 0:
            columns.append(schema[at : found.start()])
            at = found.end()
        depth += (sign in "(<[") - (sign in ")>]")
    return [*columns, schema[at:]]


def plain_type(type_: str) -> str | None:
    """BIGINT, DOUBLE, STRING, BOOLEAN, TIMESTAMP or one of EPOCHS; None: IDS does not read it.

    >>> plain_type("decimal(10, 2)"), plain_type("array<int>")
    ('DOUBLE', None)
    """
    found = re.match(r"\w+", type_)
    return _PLAIN[found.group().upper()] if found else None


def plain_types(columns: Mapping[str, str]) -> dict[str, str]:
    """The types of declared columns, all of which IDS must be able to read."""
    types = {}
    for name, type_ in columns.items():
        plain = plain_type(type_)
        if plain is None:
            raise SourceError(
                f"column {name!r} is declared {type_.upper()}; IDS reads BIGINT, DOUBLE, STRING, "
                f"BOOLEAN, TIMESTAMP, {', '.join(EPOCHS)}"
            )
        types[name] = plain
    return types


@dataclass(frozen=True, slots=True)
class Declared:
    """What is declared of the tables of a script.

    schemas  the types of columns, by table
    nulls    texts that mean NULL in text files
    """

    schemas: Mapping[str, Mapping[str, str]]
    nulls: tuple[str, ...]

    @classmethod
    def of(
        cls,
        schema: str | Mapping[str, str] | None,
        null: str | Iterable[str],
        tables: Iterable[str],
    ) -> Declared:
        """As a person writes it: a schema by table, or that of the only table; a text, or some."""
        nulls = (null,) if isinstance(null, str) else tuple(null)
        names = list(tables)
        if isinstance(schema, str):
            if len(names) != 1:
                given = f"schema={{'{names[0] if names else 'events'}': …}}"
                fact = f"the schema {schema!r} does not say of which table"
                raise SourceError(f"{fact}; give {given}")
            schema = {names[0]: schema}
        for name in schema or ():
            if name not in names:
                near = closest(name, names) or "give the table, too"
                raise SourceError(f"a schema is declared for {name!r}, which is no table; {near}")
        return cls({name: declared(columns) for name, columns in (schema or {}).items()}, nulls)

    def columns(self, table: str) -> Mapping[str, str]:
        """The declared columns of a table."""
        return self.schemas.get(table, {})


NOTHING = Declared({}, ())


def unfit_reason(name: str, type_: str) -> tuple[str, str]:
    """What is said of a value that does not fit its column: the words before it, and after.

    >>> "NA".join(unfit_reason("latency", "DOUBLE"))
    "'NA' of 'latency' is not a number"
    """
    return "'", f"' of {name!r} is not {_NOUNS[type_]}"
