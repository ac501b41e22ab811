"""Open tables, with the column types that a user declares: ``ts EPOCH_MILLIS, latency DOUBLE``.

Declared columns are converted to their types, and values that do not fit are reported. A text fits
if it matches the pattern in ``SPELLINGS`` for its type, ignoring blanks around it; Spark uses the
same patterns. A text of blanks only is NULL. A timestamp without a zone is in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ids.errors import SourceError, closest
from ids.games import let, numbers
from ids.model import (
    FIRST_INSTANT,
    LAST_INSTANT,
    TYPES,
    ColumnData,
    Kind,
    Table,
    local_path,
    nulls,
)
from ids.source.files import open_files
from ids.source.memory import Source, TableSource, from_memory, refusal

# Types for times as numbers since 1970, and their units per second.
EPOCHS = {"EPOCH_SECONDS": 1, "EPOCH_MILLIS": 1_000, "EPOCH_MICROS": 1_000_000}

_COLUMN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|(\w+))\s*(?::\s*|\s)(([A-Za-z_]+).*?)\s*", re.DOTALL)
_TYPES = {
    **TYPES,
    **{
        epoch: TYPES["TIMESTAMP"]._replace(
            name=epoch, noun=f"{epoch} of the years 1 to 9999", aliases=()
        )
        for epoch in EPOCHS
    },
}
_PLAIN: dict[str, str | None] = {
    **{alias: type_.name for type_ in _TYPES.values() for alias in (type_.name, *type_.aliases)},
    # Spark types that IDS cannot read
    **dict.fromkeys(("ARRAY", "MAP", "STRUCT", "BINARY", "VARIANT", "INTERVAL", "TIME"), None),
    **dict.fromkeys(("VOID", "OBJECT", "GEOMETRY", "GEOGRAPHY"), None),
}


def declared(schema: str) -> dict[str, str]:
    """Parse a schema; returns each column with its type as written.

    >>> declared("ts EPOCH_MILLIS, `a b` decimal(10, 2)")
    {'ts': 'EPOCH_MILLIS', 'a b': 'decimal(10, 2)'}
    """
    columns: dict[str, str] = {}
    for column in _split_columns(schema):
        found = _COLUMN.fullmatch(column)
        if found is None:
            raise SourceError(
                f"cannot parse the schema {schema!r}; write it as 'a STRING, b DOUBLE, t TIMESTAMP'"
            )
        quoted, plain, type_, word = found.groups()
        name = plain or quoted.replace("``", "`")
        if word.upper() not in _PLAIN:
            near = closest(word.upper(), _PLAIN)
            raise SourceError(f"unknown type {word} for column {name!r} in the schema; {near}")
        if name in columns:
            raise SourceError(f"the schema {schema!r} declares {name!r} twice; remove one")
        columns[name] = type_
    return columns


def _split_columns(schema: str) -> list[str]:
    """Split a schema at the commas outside brackets and quotes."""
    columns, depth, at = [], 0, 0
    for found in re.finditer(r"`(?:[^`]|``)*`|'[^']*'|[(<\[,)>\]]", schema):
        sign = found.group()
        if sign == "," and depth == 0:
            columns.append(schema[at : found.start()])
            at = found.end()
        depth += (sign in "(<[") - (sign in ")>]")
    return [*columns, schema[at:]]


def plain_type(type_: str) -> str | None:
    """Return BIGINT, DOUBLE, STRING, BOOLEAN, TIMESTAMP or one of EPOCHS; None if unsupported.

    >>> plain_type("decimal(10, 2)"), plain_type("array<int>")
    ('DOUBLE', None)
    """
    found = re.match(r"\w+", type_)
    return _PLAIN.get(found.group().upper()) if found else None


@dataclass(frozen=True, slots=True)
class Declared:
    """The declarations for the tables of a script.

    schemas  the declared column types, by table
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
        """Parse the arguments ``schema`` and ``null`` of ``ids.sql``."""
        nulls = (null,) if isinstance(null, str) else tuple(null)
        names = list(tables)
        if isinstance(schema, str):
            if len(names) != 1:
                given = f"schema={{'{names[0] if names else 'events'}': …}}"
                fact = f"the schema {schema!r} does not name its table"
                raise SourceError(f"{fact}; give {given}")
            schema = {names[0]: schema}
        for name in schema or ():
            if name not in names:
                near = closest(name, names) or "give the table, too"
                raise SourceError(f"the schema is for {name!r}, which is not a table; {near}")
        return cls({name: declared(columns) for name, columns in (schema or {}).items()}, nulls)

    def columns(self, table: str) -> Mapping[str, str]:
        """Return the declared columns of a table."""
        return self.schemas.get(table, {})


NOTHING = Declared({}, ())


def unfit_reason(name: str, type_: str) -> tuple[str, str]:
    """Return the words before and after a value in the message that it does not fit its column.

    >>> "NA".join(unfit_reason("latency", "DOUBLE"))
    "'NA' of 'latency' is not a number"
    """
    return "'", f"' of {name!r} is not {_TYPES[type_].noun}"


BLANKS = " \t"
TRUE, FALSE = ("true", "1"), ("false", "0")

_DIGITS = r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_WORDS = r"[nN][aA][nN]|[iI][nN][fF]([iI][nN][iI][tT][yY])?"
_DATE = r"(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
_HOUR = r"[T ](?P<hour>[0-9]{1,2})"
_MINUTE = r":(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]{1,9}))?)?"
_ZONE = r" ?(?:Z|UTC|(?P<sign>[+-])(?P<east>[0-9]{2})(?::?(?P<minutes>[0-9]{2}))?)"
_INSTANT = rf"^{_DATE}(?:{_HOUR}(?:{_MINUTE}(?:{_ZONE})?)?)?$"


def _unnamed(pattern: str) -> str:
    """Remove the names of groups, which Java writes differently."""
    return re.sub(r"\?P<\w+>", "?:", pattern)


# A timestamp is LOCAL (without a zone) or ZONED.
SPELLINGS = {
    "BIGINT": r"^[+-]?[0-9]{1,38}$",
    "DOUBLE": rf"^[+-]?({_DIGITS}|{_WORDS})$",
    "LOCAL": _unnamed(rf"^{_DATE}(?:{_HOUR}(?:{_MINUTE})?)?$"),
    "ZONED": _unnamed(rf"^{_DATE}{_HOUR}{_MINUTE}{_ZONE}$"),
}
_LARGEST = 2**63 - 1
_SPLITTER = 134217729.0  # 2**27 + 1

Values = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]


class Converted(NamedTuple):
    """A column in its declared type.

    Rows ``unfit`` are NULL, because their original values, ``texts``, did not fit.
    """

    column: ColumnData
    unfit: Rows
    texts: list[str]


def kind_of_type(type_: str) -> Kind:
    """Return the kind of a column of a declared type."""
    return _TYPES[type_].kind


def fitting_types(
    columns: Mapping[str, str], held: Mapping[str, Kind | None], place: str
) -> dict[str, str]:
    """Check the columns declared for ``place`` against its columns ``held``; return their types.

    Raises an error for an unsupported type, for a column that does not exist, and for a column
    whose kind cannot be converted to its declared type.
    """
    types = plain_types(columns)
    for name, type_ in types.items():
        if name not in held:
            near = closest(name, held)
            fact = f"{place} has no column {name!r}, which the schema declares"
            raise SourceError(fact + (f"; {near}" if near else ""))
        kind = held[name]
        wanted = Kind.NUMBER if type_ in EPOCHS else kind_of_type(type_)
        if kind not in (wanted, Kind.TEXT, None):
            hint = "correct its type, or remove it from the schema"
            if kind is Kind.NUMBER and type_ == "TIMESTAMP":
                hint = f"declare it {', '.join(EPOCHS)}"
            fact = f"column {name!r} of {place} contains {kind.plural}, but is declared {type_}"
            raise SourceError(f"{fact}; {hint}")
    return types


def plain_types(columns: Mapping[str, str]) -> dict[str, str]:
    """Return the plain types of declared columns; raises an error for an unsupported type."""
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


def epoch_bounds(type_: str) -> tuple[int, int]:
    """Return the smallest and largest number of an epoch type: years 1 to 9999."""
    units = EPOCHS[type_]
    return FIRST_INSTANT * units // 1_000_000, LAST_INSTANT * units // 1_000_000


def micros_of(x: Any, units: int) -> Any:
    """Convert doubles that count ``units`` per second to microseconds; ties round to even.

    They must be in the years 1 to 9999. The fraction times 10**6 is not always a double, so it is
    split into two parts that are (Veltkamp) and rounded once. The formula serves NumPy and SQL:
    with arrays it computes, with symbols it writes SQL text.
    """
    factor = 1_000_000 // units
    if factor == 1:
        return numbers(np.rint(x), np.int64)
    whole = let(np.rint(x))
    part = let(x - whole)
    wide = let(part * _SPLITTER)
    high = let(wide - (wide - part))
    product, more = let(high * float(factor)), let((part - high) * float(factor))
    near = let(np.rint(product))
    rest = let(product - near)
    step = np.where(more > 0.5 - rest, 1, np.where(more < -0.5 - rest, -1, 0))
    return numbers(whole, np.int64) * factor + numbers(near, np.int64) + step


def converted(column: ColumnData, type_: str) -> Converted:
    """Convert a column of a suitable kind to type ``type_``."""
    kind, valid = kind_of_type(type_), column.valid
    if column.kind is not kind and valid is not None and not valid.any():
        return Converted(nulls(kind, len(column)), np.zeros(0, np.int64), [])
    if column.kind is Kind.TEXT and kind is not Kind.TEXT:
        assert column.dictionary is not None
        texts = pa.array(column.dictionary, pa.string())
        trimmed = pc.ascii_trim(texts, BLANKS)
        distinct, spelled = _of_texts(trimmed, type_)
        values: Values = distinct[column.values]
        fits: Mask = spelled[column.values]
        blank = _mask(pc.equal(trimmed, ""))[column.values]
        valid = ~blank if valid is None else valid & ~blank
    elif column.kind is Kind.NUMBER:
        values, fits = _of_numbers(column.values, type_)
    else:
        return Converted(column, np.zeros(0, np.int64), [])
    present = fits if valid is None else fits & valid
    unfit = np.flatnonzero(~fits if valid is None else ~fits & valid)
    held = column.values[unfit]
    texts = held if column.dictionary is None else column.dictionary[held]
    read = ColumnData(kind, values, None if present.all() else present)
    return Converted(read, unfit, [str(text) for text in texts.tolist()])


def _of_numbers(values: Values, type_: str) -> tuple[Values, Mask]:
    """Convert numbers to a type; returns the values (0 if unfit), and which of them fit."""
    if type_ == "DOUBLE":
        return values.astype(np.float64), np.ones(len(values), np.bool_)
    if type_ == "BIGINT":
        if values.dtype == np.int64:
            return values, np.ones(len(values), np.bool_)
        fits = (np.abs(values) < 2.0**63) & (values == np.rint(values))
        return np.where(fits, values, 0.0).astype(np.int64), fits
    least, largest = epoch_bounds(type_)
    if values.dtype == np.int64:
        fits = (values >= least) & (values <= largest)
        return np.where(fits, values, 0) * (1_000_000 // EPOCHS[type_]), fits
    fits = (values >= least) & (values <= largest + 1)
    micros = micros_of(np.where(fits, values, 0.0), EPOCHS[type_])
    return micros, fits & (micros >= FIRST_INSTANT) & (micros <= LAST_INSTANT)


def _of_texts(trimmed: pa.Array, type_: str) -> tuple[Values, Mask]:
    """Convert texts to a type; returns the values (0 if unfit), and which of them fit."""
    if type_ == "BOOLEAN":
        lower = pc.ascii_lower(trimmed)
        true = _mask(pc.is_in(lower, pa.array(TRUE)))
        return true, true | _mask(pc.is_in(lower, pa.array(FALSE)))
    if type_ == "TIMESTAMP":
        return _instants(trimmed)
    if type_ == "DOUBLE":
        return _doubles(trimmed)
    whole, is_whole = _integers(trimmed)
    if type_ == "BIGINT":
        return whole, is_whole
    doubles, is_number = _doubles(trimmed)
    micros, fits = _of_numbers(whole, type_)
    rounded, rounded_fits = _of_numbers(np.where(is_number, doubles, np.nan), type_)
    return np.where(is_whole, micros, rounded), np.where(is_whole, fits, rounded_fits)


def _integers(texts: pa.Array) -> tuple[Values, Mask]:
    spelled = pc.match_substring_regex(texts, SPELLINGS["BIGINT"])
    plain = pc.replace_substring_regex(pc.if_else(spelled, texts, "0"), r"^\+", "")
    wide = plain.cast(pa.decimal128(38, 0))
    fits = pc.and_(pc.less_equal(wide, _LARGEST), pc.greater_equal(wide, -_LARGEST - 1))
    inside = pc.if_else(fits, wide, pa.scalar(0, wide.type)).cast(pa.int64())
    return inside.to_numpy(), _mask(pc.and_(spelled, fits))


def _doubles(texts: pa.Array) -> tuple[Values, Mask]:
    spelled = pc.match_substring_regex(texts, SPELLINGS["DOUBLE"])
    return pc.if_else(spelled, texts, "0").cast(pa.float64()).to_numpy(), _mask(spelled)


def _instants(texts: pa.Array) -> tuple[Values, Mask]:
    """Convert timestamps to microseconds, by the proleptic Gregorian calendar."""
    fields = pc.extract_regex(texts, _INSTANT)
    part = dict(zip((f.name for f in fields.type), fields.flatten(), strict=True))
    fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(part.pop("fraction"), 6, "0"), 0, 6)
    west = _mask(pc.equal(part.pop("sign"), "-"))
    year, month, day, hour, minute, second, east, minutes = (
        _number(part[name])
        for name in ("year", "month", "day", "hour", "minute", "second", "east", "minutes")
    )
    first = (year - 1970).astype("datetime64[Y]").astype("datetime64[M]") + (month - 1)
    days = (first.astype("datetime64[D]") + (day - 1)).astype(np.int64)
    length = ((first + 1).astype("datetime64[D]") - first.astype("datetime64[D]")).astype(np.int64)
    zone = np.where(west, -1, 1) * (60 * east + minutes)
    fits = _mask(fields.is_valid()) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= length)
    fits &= (hour < 24) & (minute < 60) & (second < 60) & (minutes < 60) & (abs(zone) <= 18 * 60)
    seconds = ((days * 24 + hour) * 60 + minute - zone) * 60 + second
    return np.where(fits, seconds * 1_000_000 + _number(fraction), 0), fits


def _number(digits: pa.Array) -> npt.NDArray[np.int64]:
    """Convert digits to numbers; no digits are 0."""
    filled = pc.if_else(pc.equal(pc.coalesce(digits, ""), ""), "0", digits)
    found: npt.NDArray[np.int64] = filled.cast(pa.int64()).to_numpy()
    return found


def _mask(array: pa.Array) -> Mask:
    mask: Mask = pc.coalesce(array, False).to_numpy(zero_copy_only=False)
    return mask


def open_table(
    data: object, name: str, columns: Mapping[str, str] = {}, nulls: Sequence[str] = ()
) -> Source:
    """Open the table ``name`` of a script, from a path or from an object in memory.

    Paths: a Parquet, CSV or JSON Lines file, or a directory of files of one of these formats, read
    in the order of their names. In memory: a pyarrow Table, RecordBatch or RecordBatchReader, a
    pandas or Polars DataFrame, any object with an Arrow C stream, a dict of arrays or lists, a
    model Table. A timestamp without a zone is UTC. NaN is a value, not NULL, except in a pandas
    DataFrame. ``columns`` are declared types, ``nulls`` are texts that mean NULL in text files.

    >>> open_table({"latency": [1.5, None]}, "events").read(["latency"]).columns["latency"].valid
    array([ True, False])
    """
    if isinstance(data, str | Path):
        types = {column: plain_type(type_) for column, type_ in columns.items()}
        return with_declared_types(open_files(local_path(data), types, nulls), columns, str(data))
    source = TableSource(data) if isinstance(data, Table) else from_memory(data, name)
    return with_declared_types(source, columns, f"table {name!r}")


def with_declared_types(source: Source, columns: Mapping[str, str], place: str) -> Source:
    """Return ``source``, the table at ``place``, with ``columns`` in their declared types."""
    if not columns:
        return source
    for name in columns.keys() & source.unsupported.keys():
        raise refusal(name, source)
    held = {**source.schema, **dict.fromkeys(source.untyped)}
    return Retyped(source, fitting_types(columns, held, place))


def unfit_rows(source: Source, columns: Iterable[str]) -> tuple[Rows, list[str]]:
    """Return the rows with a value in ``columns`` that does not fit its declared type, and why."""
    found = source.unfit(columns) if isinstance(source, Retyped) else {}
    rows = sorted(found)
    return np.array(rows, np.int64), [found[row] for row in rows]


class Retyped(Source):
    """A source with declared columns in their types; a value that does not fit is NULL."""

    def __init__(self, source: Source, types: Mapping[str, str]) -> None:
        declared = {name: kind_of_type(type_) for name, type_ in types.items()}
        untyped = source.untyped - types.keys()
        super().__init__(source.rows, {**source.schema, **declared}, source.unsupported, untyped)
        self.types, self._source = types, source
        self._unfit: dict[str, dict[int, str]] = {}

    def _columns(self, names: list[str]) -> dict[str, ColumnData]:
        columns = self._source.read(names).columns
        for name in columns.keys() & self.types.keys():
            found = converted(columns[name], self.types[name])
            before, after = unfit_reason(name, self.types[name])
            reasons = [f"{before}{text}{after}" for text in found.texts]
            self._unfit[name] = dict(zip(found.unfit.tolist(), reasons, strict=True))
            columns[name] = found.column
        return columns

    def where(self, row: int) -> str:
        return self._source.where(row)

    def unfit(self, columns: Iterable[str]) -> dict[int, str]:
        """Return the rows with a value that does not fit in ``columns``, each with the reason."""
        named = [name for name in dict.fromkeys(columns) if name in self.types]
        self.read(name for name in named if name not in self._unfit)
        found: dict[int, str] = {}
        for name in reversed(named):
            found |= self._unfit[name]
        return found
