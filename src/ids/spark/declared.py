"""A declared schema, read without Spark: ``a STRING, b DOUBLE, t TIMESTAMP``."""

from __future__ import annotations

import re

from ids.errors import SourceError, closest
from ids.model.table import Kind
from ids.plan import Schema
from ids.source.memory import article

__all__ = ["declared_schema"]

_COLUMN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|(\w+))\s*(?::\s*|\s)(([A-Za-z_]+).*?)\s*", re.DOTALL)
_NUMBERS = (
    *("byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint"),
    *("float", "real", "double", "decimal", "dec", "numeric"),
)
_KINDS: dict[str, Kind | None] = {
    **dict.fromkeys(_NUMBERS, Kind.NUMBER),
    **dict.fromkeys(("string", "char", "character", "varchar"), Kind.TEXT),
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz", "timestamp_ltz"), Kind.TIME),
    "boolean": Kind.BOOLEAN,
    # what Spark knows, and IDS does not read
    **dict.fromkeys(("array", "map", "struct", "binary", "variant", "interval", "time"), None),
    **dict.fromkeys(("void", "object", "geometry", "geography"), None),
}


def declared_schema(schema: str) -> Schema:
    """The declared columns.

    >>> declared_schema("`a b` STRING, x DECIMAL(10, 2), tags ARRAY<INT>").unsupported
    {'tags': 'an array<int>'}
    """
    kinds: dict[str, Kind | None] = {}
    unsupported: dict[str, str] = {}
    for column in _divided(schema):
        found = _COLUMN.fullmatch(column)
        if found is None:
            raise SourceError(
                f"cannot read the schema {schema!r}; write it as 'a STRING, b DOUBLE, t TIMESTAMP'"
            )
        quoted, plain, type_, word = found.groups()
        name = plain or quoted.replace("``", "`")
        if word.lower() not in _KINDS:
            near = closest(word, (known.upper() for known in _KINDS))
            raise SourceError(f"unknown type {word} of {name!r} in the schema; {near}")
        kind = _KINDS[word.lower()]
        if kind is None:
            unsupported[name] = article(type_.lower())
        else:
            kinds[name] = kind
    return Schema(kinds, unsupported)


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
