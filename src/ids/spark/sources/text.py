"""CSV and JSON Lines files on Spark, with the types and the NULLs of the in-process reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ids.errors import SourceError
from ids.source.declared import plain_types
from ids.source.folder import FilePath
from ids.source.sampling import Sampled, sample
from ids.spark.location import Location
from ids.spark.sources.canonical import quoted, spell, zoned_instant
from ids.spark.sources.origin import LATER, ORIGIN, beside, name_origin

__all__ = ["read_text"]

_KINDS = {
    "BIGINT": "a whole number",
    "DOUBLE": "a number",
    "BOOLEAN": "a boolean",
    "TIMESTAMP": "a timestamp",
}
# JSON has numbers and booleans of its own; a timestamp is a text there.
_JSON_TYPES: dict[str, T.DataType] = {
    "BIGINT": T.LongType(),
    "DOUBLE": T.DoubleType(),
    "BOOLEAN": T.BooleanType(),
}
_BROKEN = ("DOUBLE", "EPOCH_SECONDS", "EPOCH_MILLIS")
_CSV_OPTIONS = {
    "header": "true",
    "enforceSchema": "false",  # the header must say what we were told it says
    "mode": "FAILFAST",
    "escape": '"',
    "nullValue": "\x00",  # an empty field is NULL either way; a quoted one is the empty text
    "emptyValue": "",
    "maxColumns": "1000000",
}


def read_text(
    session: SparkSession,
    location: Location,
    columns: Mapping[str, str],
    nulls: Sequence[str],
    *,
    stream: bool,
    options: Mapping[str, str],
) -> DataFrame:
    """The rows of CSV or JSON Lines files, in which ``nulls`` are NULL.

    The declared ``columns`` come as they stand in the files, to be converted.
    """
    sampled = sample(location.files, location.format, columns, nulls)
    groups = _alike(sampled, location.format)
    if stream and len(groups) > 1:
        first, second = (members[0].name for members in list(groups.values())[:2])
        raise SourceError(
            f"{first} and {second} have their columns in different orders; "
            "a stream of CSV files needs one order"
        )
    frames = []
    for header, members in groups.items():
        if location.format == "csv":
            multiline = str(sampled.multiline).lower()
            fixed, layout = {**_CSV_OPTIONS, "multiLine": multiline}, _texts(header)
        else:
            fixed, layout = {"mode": "FAILFAST"}, _json(sampled.types, columns)
        raw = location.load(session, members, layout, {**fixed, **options}, stream=stream)
        frames.append(_converted(raw, sampled.types, nulls, location, stream))
    return reduce(DataFrame.unionByName, frames)


def _alike(sampled: Sampled, format_: str) -> dict[tuple[str, ...], list[FilePath]]:
    """Files whose columns stand in one order: a CSV reader goes by place, not by name."""
    if format_ == "jsonl":
        return {(): list(sampled.headers)}
    groups: dict[tuple[str, ...], list[FilePath]] = {}
    for file, header in sampled.headers.items():
        groups.setdefault(header, []).append(file)
    return groups


def _texts(header: Sequence[str]) -> T.StructType:
    return T.StructType([T.StructField(name, T.StringType()) for name in header])


def _json(types: Mapping[str, str], declared: Mapping[str, str]) -> T.StructType:
    """JSON has types of its own; a column declared to hold fractions may come to hold some."""
    broken = {n for n, type_ in plain_types(declared).items() if type_ in _BROKEN}
    fields = []
    for name, sql in types.items():
        wide = "DOUBLE" if sql == "BIGINT" and name in broken else sql
        fields.append(T.StructField(name, _JSON_TYPES.get(wide, T.StringType())))
    return T.StructType(fields)


def _converted(
    raw: DataFrame,
    columns: Mapping[str, str],
    nulls: Sequence[str],
    location: Location,
    stream: bool,
) -> DataFrame:
    held = dict(raw.dtypes)
    values = [
        F.expr(_value(name, sql, nulls) if held[name] == "string" else quoted(name)).alias(name)
        for name, sql in columns.items()
    ]
    odd = stream or location.has_odd_names()
    origin = name_origin(encoded=odd, place=LATER if stream else None)
    return raw.select(*values, beside(columns, F.expr(origin), ORIGIN))


def _value(name: str, sql: str, nulls: Sequence[str]) -> str:
    """A text as a value of its column; one that does not fit ends the query, with its file."""
    text = quoted(name)
    if nulls:
        text = f"if({text} IN ({', '.join(map(spell, nulls))}), NULL, {text})"
    if sql == "STRING":
        return text
    value = zoned_instant(text) if sql == "TIMESTAMP" else f"try_cast({text} AS {sql})"
    before = spell(f"column {name!r} of ")
    after = spell(f", which is not {_KINDS[sql]}; mend it, or declare the column STRING")
    fault = f"concat({before}, _metadata.file_name, ' holds ', {text}, {after})"
    return f"IF({text} IS NULL, NULL, coalesce({value}, CAST(raise_error({fault}) AS {sql})))"
