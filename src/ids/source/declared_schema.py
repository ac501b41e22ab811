"""Schemas that a person declares: ``ts EPOCH_MILLIS, region STRING, latency DOUBLE``.

Columns are converted to their declared types, and the values that do not fit are found. A text fits
if it is spelled as ``SPELLINGS`` says, blanks around it aside; the same patterns decide on Spark.
One of blanks alone is NULL. An instant without a zone is in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ids.errors import SourceError, closest
from ids.games import let, numbers
from ids.model import FIRST_INSTANT, LAST_INSTANT, TYPES, ColumnData, Kind, nulls

# Times as numbers since 1970, and how many of them a second has.
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
    # what Spark knows, and IDS does not read
    **dict.fromkeys(("ARRAY", "MAP", "STRUCT", "BINARY", "VARIANT", "INTERVAL", "TIME"), None),
    **dict.fromkeys(("VOID", "OBJECT", "GEOMETRY", "GEOGRAPHY"), None),
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
    return _PLAIN.get(found.group().upper()) if found else None


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
    return "'", f"' of {name!r} is not {_TYPES[type_].noun}"


BLANKS = " \t"
TRUE, FALSE = ("true", "1"), ("false", "0")

_DATE = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_SECONDS = r":[0-9]{1,2}(:[0-9]{1,2}(\.[0-9]{1,9})?)?"
_TIME = r"[T ][0-9]{1,2}"
_DIGITS = r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_WORDS = r"[nN][aA][nN]|[iI][nN][fF]([iI][nN][iI][tT][yY])?"
SPELLINGS = {
    "BIGINT": r"^[+-]?[0-9]{1,38}$",
    "DOUBLE": rf"^[+-]?({_DIGITS}|{_WORDS})$",
    "LOCAL": rf"^{_DATE}({_TIME}({_SECONDS})?)?$",
    "ZONED": rf"^{_DATE}{_TIME}{_SECONDS} ?(Z|UTC|[+-][0-9]{{2}}(:?[0-9]{{2}})?)$",
}
_INSTANT = (
    r"^(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
    r"(?:[T ](?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{1,2})"
    r"(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]{1,9}))?)?"
    r"(?: ?(?:Z|UTC|(?P<sign>[+-])(?P<east>[0-9]{2})(?::?(?P<minutes>[0-9]{2}))?))?)?)?$"
)
_LARGEST = 2**63 - 1
_SPLITTER = 134217729.0  # 2**27 + 1

Values = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


class Converted(NamedTuple):
    """A column in its declared type; the values of rows ``unfit`` were ``texts``, and are NULL."""

    column: ColumnData
    unfit: npt.NDArray[np.int64]
    texts: list[str]


def kind_of_type(type_: str) -> Kind:
    """What a column of a declared type holds."""
    return _TYPES[type_].kind


def fitting_types(
    columns: Mapping[str, str], held: Mapping[str, Kind | None], place: str
) -> dict[str, str]:
    """The types of the columns that are declared for ``place``, which has columns ``held``.

    Refuses a column that is not there, and one of a kind that is never of its declared type.
    """
    types = plain_types(columns)
    for name, type_ in types.items():
        if name not in held:
            near = closest(name, held)
            fact = f"{place} has no column {name!r}, which is declared"
            raise SourceError(fact + (f"; {near}" if near else ""))
        kind = held[name]
        wanted = Kind.NUMBER if type_ in EPOCHS else kind_of_type(type_)
        if kind not in (wanted, Kind.TEXT, None):
            hint = "declare what it holds, or leave it out of the schema"
            if kind is Kind.NUMBER and type_ == "TIMESTAMP":
                hint = f"declare it {', '.join(EPOCHS)}"
            fact = f"column {name!r} of {place} holds {kind.plural}, but is declared {type_}"
            raise SourceError(f"{fact}; {hint}")
    return types


def epoch_bounds(type_: str) -> tuple[int, int]:
    """The least and the largest whole number of a type that is a TIMESTAMP: years 1 to 9999."""
    units = EPOCHS[type_]
    return FIRST_INSTANT * units // 1_000_000, LAST_INSTANT * units // 1_000_000


def micros_of(x: Any, units: int) -> Any:
    """Doubles that count ``units`` a second, as whole microseconds; a tie goes to the even one.

    They must be of the years 1 to 9999. A double's fraction times 10**6 need not be a
    double: it is taken as two parts that are (Veltkamp), and rounded once. One formula for NumPy
    and for SQL, as the closed forms have it: on arrays it computes, on symbols it writes text.
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
    """A column of a fitting kind, in type ``type_``."""
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
    """Numbers in a type, and which fit; the others read 0."""
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
    """Texts in a type, and which fit; the others read 0."""
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
    broken, is_number = _doubles(trimmed)
    micros, inside = _of_numbers(whole, type_)
    rounded, near = _of_numbers(np.where(is_number, broken, np.nan), type_)
    return np.where(is_whole, micros, rounded), np.where(is_whole, inside, near)


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
    """Spelled-out instants as microseconds, by the calendar that has always had leap years."""
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
    """Digits as a number; none are 0."""
    filled = pc.if_else(pc.equal(pc.coalesce(digits, ""), ""), "0", digits)
    found: npt.NDArray[np.int64] = filled.cast(pa.int64()).to_numpy()
    return found


def _mask(array: pa.Array) -> Mask:
    mask: Mask = pc.coalesce(array, False).to_numpy(zero_copy_only=False)
    return mask
