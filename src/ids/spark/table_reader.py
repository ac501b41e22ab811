"""Read files, directories, topics and tables of the catalog into DataFrames.

In CSV and JSON Lines files, types and NULLs are determined as by the in-process reader. The schema
of Parquet files comes from their footers, so a column that Spark cannot read does not affect the
other columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from time import sleep
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ids.errors import SourceError
from ids.exact import Program
from ids.model import FIRST_INSTANT, LAST_INSTANT, Kind, local_path
from ids.source import (
    BLANKS,
    EPOCHS,
    FALSE,
    SPELLINGS,
    TRUE,
    FilePath,
    FileSource,
    ParquetPart,
    declared,
    epoch_bounds,
    fitting_types,
    has_files,
    kind_of,
    kind_of_type,
    micros_of,
    missing,
    plain_types,
    sample,
    unfit_reason,
)
from ids.spark.expression_sql import (
    UNFIT,
    Typed,
    floored,
    instant,
    quoted,
    spell,
    typed,
    typed_value,
    with_zone,
    zoned_instant,
)
from ids.spark.failures import translated
from ids.spark.file_system import check_seen, literal, path_at, uri_of
from ids.spark.frame import LATER, ORIGIN, added_column, applied, by_number, mark_of, name_origin
from ids.spark.kafka_topic import is_kafka, read_kafka
from ids.spark.preflight import Location, locate, may_be_table
from ids.spark.session import NANOSECONDS

_TICK = 0.2  # seconds between two checks of an empty directory
_NOUNS = {
    "BIGINT": "a whole number",
    "DOUBLE": "a number",
    "BOOLEAN": "a boolean",
    "TIMESTAMP": "a timestamp",
}
_FRACTIONS = ("DOUBLE", "EPOCH_SECONDS", "EPOCH_MILLIS")  # types whose numbers may have fractions
_CSV_OPTIONS = {
    "header": "true",
    "enforceSchema": "false",  # the header must match the schema
    "mode": "FAILFAST",
    "escape": '"',
    "nullValue": "\x00",  # an empty field is always NULL; a quoted one is the empty text
    "emptyValue": "",
    "maxColumns": "1000000",
}
_SIMPLE = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.date64(): "date",
}
_WIDE = {"tinyint": "bigint", "smallint": "bigint", "int": "bigint", "float": "double"}
_INSTANTS = {
    "timestamp_ntz": ("timestamp_ntz", "date"),
    "timestamp": ("timestamp", "timestamp_ntz"),
}
_WIDEST_DECIMAL = 38
_NO_TYPE = "has a type that Spark cannot read; write it again as DOUBLE or DECIMAL(38)"
_NO_NANOSECONDS = f"has nanoseconds, which Spark reads only with {NANOSECONDS}=true; set it"
_INT64_MAX = np.iinfo(np.int64).max


def read(
    session: SparkSession,
    place: str | Path | Location,
    *,
    schema: str | Mapping[str, str] | None = None,
    null: str | Sequence[str] = (),
    stream: bool = False,
    wait: bool = False,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Read a table into a DataFrame with the columns, types and NULLs of the in-process reader.

    The DataFrame has one more column, ``ids_origin``, which orders the rows as in the input.

    session  the Spark session
    place    a file, a directory of files, or ``kafka://host:9092/topic``; files may be on any file
             system that Spark supports (``s3a://bucket/in``)
    schema   the columns of a topic, or types for some columns of files, as in
             ``"ts EPOCH_SECONDS, latency DOUBLE"`` or ``{"latency": "DOUBLE"}``
    null     a text, or several texts, that mean NULL in CSV and JSON Lines files
    stream   read as a streaming DataFrame
    wait     wait for the first file of a stream's directory; otherwise the stream of an empty
             directory, whose columns must be declared, has no rows
    options  options for Spark's reader (``{"maxFilesPerTrigger": "1"}``)
    """
    options = options or {}
    columns = declared(schema) if isinstance(schema, str) else schema or {}
    with translated():
        if is_kafka(place):
            data = read_kafka(session, str(place), columns, stream=stream, options=options)
            epochs = {n: type_ for n, type_ in columns.items() if type_.upper() in EPOCHS}
            return retyped(data, epochs, str(place))
        if not isinstance(place, Location):
            path = path_at(place, session)
            if stream and not _has_files(path, columns, wait=wait):
                return _nothing(session, path, columns)
            place = locate(path)
        check_seen(session, place.files)
        if place.format == "parquet":
            data = _read_parquet(session, place, stream=stream, options=options)
        else:
            nulls = (null,) if isinstance(null, str) else null
            data = _read_text(session, place, columns, nulls, stream=stream, options=options)
        return retyped(data, columns, str(place.place))


def catalog_table(
    session: SparkSession, place: object, *, stream: bool = False
) -> DataFrame | None:
    """Return the catalog table named ``place``; None if ``place`` is a file or a topic."""
    if not isinstance(place, str) or not may_be_table(place):
        return None
    try:
        known = session.catalog.tableExists(place)
    except AnalysisException:  # no such catalog
        known = False
    if not known:
        raise SourceError(missing(local_path(place), "file, directory or table"))
    return session.readStream.table(place) if stream else session.table(place)


def _has_files(path: FilePath, columns: Mapping[str, str], *, wait: bool) -> bool:
    """Return whether a directory has files of a known format; if ``wait`` is set, wait for one."""
    found = has_files(path, declared=bool(columns))
    while wait and not found:
        sleep(_TICK)
        found = has_files(path, declared=True)
    return found


def _nothing(session: SparkSession, path: FilePath, columns: Mapping[str, str]) -> DataFrame:
    """Return a streaming DataFrame over an empty directory."""
    types = {n: "TIMESTAMP" if t in EPOCHS else t for n, t in plain_types(columns).items()}
    reader = session.readStream.schema(_ddl(types)).option("pathGlobFilter", "*.parquet")
    data = reader.parquet(literal(uri_of(path)))
    return data.select("*", added_column(columns, name_origin(encoded=True, row=LATER), ORIGIN))


def _ddl(types: Mapping[str, str]) -> str:
    """Return a schema as text for Spark's readers.

    The meaning of TIMESTAMP depends on a setting, so it is replaced by ``timestamp_ltz``.
    """
    spelled = {n: "timestamp_ltz" if t.lower() == "timestamp" else t for n, t in types.items()}
    return ", ".join(f"{quoted(name)} {type_}" for name, type_ in spelled.items())


def _read_text(
    session: SparkSession,
    location: Location,
    columns: Mapping[str, str],
    nulls: Sequence[str],
    *,
    stream: bool,
    options: Mapping[str, str],
) -> DataFrame:
    """Read CSV or JSON Lines files; the texts in ``nulls`` mean NULL.

    The declared ``columns`` are not converted yet.
    """
    sampled = sample(location.files, location.format, columns, nulls)
    # Spark reads CSV columns by position, so only files with the same header are read together
    groups: dict[tuple[str, ...], list[FilePath]] = {}
    for file, header in sampled.headers.items():
        groups.setdefault(header if location.format == "csv" else (), []).append(file)
    if stream and len(groups) > 1:
        first, second = (members[0].name for members in list(groups.values())[:2])
        raise SourceError(
            f"{first} and {second} have their columns in different orders; "
            "a stream of CSV files needs one order"
        )
    odd = stream or location.has_odd_names()
    origin = name_origin(encoded=odd, row=LATER if stream else None)
    frames = []
    for header, members in groups.items():
        if location.format == "csv":
            held = dict.fromkeys(header, "STRING")
            fixed = {**_CSV_OPTIONS, "multiLine": str(sampled.multiline).lower()}
        else:
            held, fixed = _json_types(sampled.types, columns), {"mode": "FAILFAST"}
        raw = location.load(session, members, _ddl(held), {**fixed, **options}, stream=stream)
        values = [
            F.expr(_value(n, type_, nulls) if held[n] == "STRING" else quoted(n)).alias(n)
            for n, type_ in sampled.types.items()
        ]
        frames.append(raw.select(*values, added_column(sampled.types, origin, ORIGIN)))
    return reduce(DataFrame.unionByName, frames)


def _json_types(types: Mapping[str, str], declared: Mapping[str, str]) -> dict[str, str]:
    """Return the types with which JSON is parsed; timestamps are parsed as text.

    If the declared type of a column allows fractions, it is parsed as DOUBLE, even if the sample
    contains only integers.
    """
    broken = {n for n, type_ in plain_types(declared).items() if type_ in _FRACTIONS}
    held = {n: "DOUBLE" if t == "BIGINT" and n in broken else t for n, t in types.items()}
    return {n: "STRING" if type_ == "TIMESTAMP" else type_ for n, type_ in held.items()}


def _value(name: str, sql: str, nulls: Sequence[str]) -> str:
    """Return the SQL that converts a text to its column's type, or raises an error."""
    text = quoted(name)
    if nulls:
        text = f"if({text} IN ({', '.join(map(spell, nulls))}), NULL, {text})"
    if sql == "STRING":
        return text
    value = zoned_instant(text) if sql == "TIMESTAMP" else f"try_cast({text} AS {sql})"
    before = spell(f"column {name!r} of ")
    after = spell(f", which is not {_NOUNS[sql]}; correct it, or declare the column STRING")
    fault = f"concat({before}, _metadata.file_name, ' contains ', {text}, {after})"
    return f"IF({text} IS NULL, NULL, coalesce({value}, CAST(raise_error({fault}) AS {sql})))"


class _Stored(NamedTuple):
    """How a column of a file is read.

    read_as  the type with which Spark reads it; None if Spark cannot read it
    value    the SQL of its value
    """

    read_as: str | None
    value: str


def _read_parquet(
    session: SparkSession, location: Location, *, stream: bool, options: Mapping[str, str]
) -> DataFrame:
    """Read Parquet files, in which the same column may have types of different widths."""
    columns = list(FileSource(location.parts).schema)
    nanos = str(session.conf.get(NANOSECONDS, "false")).lower() == "true"
    stored: dict[FilePath, dict[str, _Stored]] = {}
    for part in location.parts:
        leaves = {part.footer.schema.column(i).path: i for i in range(part.footer.num_columns)}
        held = [name for name in columns if name in leaves]
        stored[part.path] = {name: _stored(part, name, leaves[name], nanos) for name in held}
    if stream:
        stored = {location.files[0]: _widest(stored)}
    groups: dict[str, list[FilePath]] = {}
    for file, layout in stored.items():
        groups.setdefault(repr(layout), []).append(file)
    odd = stream or location.has_odd_names()
    row = "_metadata.row_index" if stream else None
    origin = added_column(columns, name_origin(encoded=odd, row=row), ORIGIN)
    frames = []
    for members in groups.values():
        layout = stored[members[0]]
        schema = _ddl({n: s.read_as for n, s in layout.items() if s.read_as is not None})
        raw = location.load(session, members, schema, options, stream=stream)
        values = [F.expr(column.value).alias(name) for name, column in layout.items()]
        frames.append(raw.select(*values, origin))
    return reduce(DataFrame.unionByName, frames)


def _stored(part: ParquetPart, name: str, leaf: int, nanos: bool) -> _Stored:
    type_, footer = part.schema.field(name).type, part.footer
    type_ = type_.value_type if types.is_dictionary(type_) else type_
    sql = quoted(name)
    if kind_of(type_) is Kind.TEXT:
        return _Stored("string", sql)
    if types.is_timestamp(type_):
        return _timestamp(name, footer.schema.column(leaf), nanos)
    if types.is_uint64(type_):
        target = "BIGINT" if _largest(footer, leaf) <= _INT64_MAX else "DOUBLE"
        return _Stored("decimal(20, 0)", f"CAST({sql} AS {target})")
    if types.is_decimal(type_) and type_.precision <= _WIDEST_DECIMAL:
        stored = f"decimal({type_.precision}, {type_.scale})"
        return _Stored(stored, f"CAST({sql} AS DOUBLE)")
    if type_ == pa.null():
        return _Stored(None, "CAST(NULL AS DOUBLE)")
    if type_ in _SIMPLE:
        return _Stored(_SIMPLE[type_], typed(sql, _SIMPLE[type_]))
    return _Stored(None, _refused(name, _NO_TYPE, "DOUBLE"))


def _timestamp(name: str, column: pq.ColumnSchema, nanos: bool) -> _Stored:
    """Return how a timestamp is read, based on the footer's logical type.

    The schema that Arrow has stored may have a different unit.
    """
    sql = quoted(name)
    if column.physical_type == "INT96":
        return _Stored("timestamp", sql)
    logical = json.loads(column.logical_type.to_json())
    if logical["timeUnit"] == "nanoseconds" and nanos:
        return _Stored("bigint", floored(sql))
    if logical["timeUnit"] == "nanoseconds":
        return _Stored(None, _refused(name, _NO_NANOSECONDS, "TIMESTAMP"))
    held = "timestamp" if logical["isAdjustedToUTC"] else "timestamp_ntz"
    return _Stored(held, typed(sql, held))


def _refused(name: str, why: str, sql_type: str) -> str:
    """Return the SQL of a column that raises an error in queries that use it."""
    return f"CAST(raise_error({spell(f'column {name!r} {why}')}) AS {sql_type})"


def _largest(footer: pq.FileMetaData, leaf: int) -> int:
    """Return the largest value of an unsigned column, from the statistics in the footer.

    Returns 2**64 - 1 if there are no statistics.
    """
    largest = 0
    for group in range(footer.num_row_groups):
        chunk = footer.row_group(group).column(leaf)
        known = chunk.statistics if chunk.is_stats_set else None
        if known is None or not (known.has_min_max or known.null_count == chunk.num_values):
            return int(np.iinfo(np.uint64).max)
        largest = max(largest, int(known.max) if known.has_min_max else 0)
    return largest


def _widest(stored: Mapping[FilePath, Mapping[str, _Stored]]) -> dict[str, _Stored]:
    """Return the widest type of each column among all files.

    A stream reads all its files, including future ones, with one schema.
    """
    first, *others = stored
    found = {name: _wide(name, column) for name, column in stored[first].items()}
    for file in others:
        for name, column in stored[file].items():
            wide = _wide(name, column)
            both = wide if wide == found[name] else _common(name, wide, found[name])
            if both is None:
                raise SourceError(
                    f"column {name!r} is stored differently in {first.name} and {file.name}; "
                    "a stream needs files of one schema"
                )
            found[name] = both
    return found


def _wide(name: str, column: _Stored) -> _Stored:
    """Widen integers to BIGINT and floats to DOUBLE; Spark can read narrower types as these."""
    wide = _WIDE.get(column.read_as or "")
    if wide is None or column.value != typed(quoted(name), column.read_as or ""):
        return column
    return _Stored(wide, typed(quoted(name), wide))


def _common(name: str, one: _Stored, other: _Stored) -> _Stored | None:
    """Return how Spark can read two timestamp types as one; None if it cannot."""
    for wanted, members in _INSTANTS.items():
        if one.read_as in members and other.read_as in members:
            return _Stored(wanted, typed(quoted(name), wanted))
    return None


def retyped(data: DataFrame, columns: Mapping[str, str], place: str) -> DataFrame:
    """Convert ``columns`` to their declared types, like ``ids.source.declared_schema`` in process.

    A value that does not fit becomes NULL, and an added column (UNFIT) contains the reason. The row
    is then a bad row only in queries that use the column. ``place`` is used in error messages.
    """
    if not columns:
        return data
    fields = data.schema.fields
    own = {f.name: number for number, f in enumerate(fields) if mark_of(f) is None}
    types = {name: fields[number].dataType.simpleString() for name, number in own.items()}
    given = {name: typed_value(f"c{number}", types[name]) for name, number in own.items()}
    known = {name: typed for name, typed in given.items() if typed is not None}
    held = {name: typed.kind for name, typed in known.items()}
    placed = by_number(data)
    chosen = [F.col(f"c{number}").alias(f.name) for number, f in enumerate(fields)]
    for name, type_ in fitting_types(columns, held, place).items():
        if held[name] is Kind.NUMBER or held[name] is not kind_of_type(type_):
            number = own[name]
            placed, value, reason = _converted(placed, number, name, known[name], type_)
            chosen[number] = F.expr(value).alias(name)
            chosen.append(added_column(own, reason, UNFIT + name))
    return placed.select(*chosen)


def _converted(
    data: DataFrame, number: int, name: str, typed: Typed, type_: str
) -> tuple[DataFrame, str, str]:
    """Return ``data`` with helper columns, and the SQL of the converted value and the reason.

    The reason explains why a value could not be converted; it is NULL for all other values.
    """
    held, text = f"ids_held{number}", f"ids_text{number}"
    is_text = typed.kind is Kind.TEXT
    trimmed = f"nullif(trim(BOTH {spell(BLANKS)} FROM {typed.text}), '')" if is_text else "''"
    data = data.selectExpr("*", f"{typed.text} AS {held}", f"{trimmed} AS {text}")
    if typed.kind is None:
        value = f"CAST(NULL AS {'TIMESTAMP' if type_ in EPOCHS else type_})"
    elif type_ in EPOCHS:
        data, value = _instants(data, number, typed, type_)
    else:
        value = _of_text(text, type_) if is_text else _of_number(held, typed.whole, type_)
    before, after = map(spell, unfit_reason(name, type_))
    reason = f"concat({before}, cast({held} as string), {after})"
    present = f"{held} IS NOT NULL AND {text} IS NOT NULL"
    return data, value, f"if({present} AND ({value}) IS NULL, {reason}, NULL)"


def _of_text(text: str, type_: str) -> str:
    """Return the SQL that converts a trimmed text to a type, or to NULL if it does not fit."""
    if type_ == "BOOLEAN":
        true, false = (", ".join(map(spell, texts)) for texts in (TRUE, FALSE))
        lower = f"lower({text})"
        return f"CASE WHEN {lower} IN ({true}) THEN true WHEN {lower} IN ({false}) THEN false END"
    if type_ == "TIMESTAMP":
        local = instant(f"try_cast({text} AS TIMESTAMP_NTZ)")
        zoned, plain = (f"{text} RLIKE {spell(SPELLINGS[form])}" for form in ("ZONED", "LOCAL"))
        return f"CASE WHEN {zoned} THEN {with_zone(text)} WHEN {plain} THEN {local} END"
    return f"CASE WHEN {text} RLIKE {spell(SPELLINGS[type_])} THEN try_cast({text} AS {type_}) END"


def _of_number(held: str, whole: bool, type_: str) -> str:
    if type_ == "DOUBLE" or whole:
        return f"cast({held} as {type_})"
    inside = f"abs({held}) < 9223372036854775808D AND {held} = rint({held})"
    return f"CASE WHEN {inside} THEN cast({held} as bigint) END"


def _instants(data: DataFrame, number: int, typed: Typed, type_: str) -> tuple[DataFrame, str]:
    """Convert seconds, milliseconds or microseconds since 1970 to timestamps.

    Fractions are rounded to the nearest microsecond.
    """
    least, largest = epoch_bounds(type_)
    factor = 1_000_000 // EPOCHS[type_]
    whole, double = f"ids_held{number}", f"ids_held{number}"
    if typed.kind is Kind.TEXT:
        text = f"ids_text{number}"
        whole, double = _of_text(text, "BIGINT"), _of_text(text, "DOUBLE")
    elif typed.whole:
        double = "CAST(NULL AS DOUBLE)"
    else:
        whole = "CAST(NULL AS BIGINT)"
    exact, broken, near = (f"ids_{each}{number}" for each in ("whole", "double", "near"))
    data = data.selectExpr("*", f"{whole} AS {exact}", f"{double} AS {broken}")
    inside = f"{broken} BETWEEN {least}D AND {largest + 1}D"
    data = data.selectExpr("*", f"CASE WHEN {inside} THEN {broken} ELSE 0D END AS {near}")
    program = Program(f"ids_stage{number}_")
    micros = micros_of(program.column(near), EPOCHS[type_]).text
    data = applied(data, program)
    times = f"CASE WHEN {exact} BETWEEN {least}L AND {largest}L THEN {exact} * {factor}L END"
    within = f"{inside} AND {micros} BETWEEN {FIRST_INSTANT}L AND {LAST_INSTANT}L"
    rounded = f"CASE WHEN {within} THEN {micros} END"
    return data, f"timestamp_micros(if({exact} IS NOT NULL, {times}, {rounded}))"
