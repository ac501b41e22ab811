"""Columns in the type they are declared, and which of their values do not fit it.

A text fits if it is spelled as ``SPELLINGS`` says, blanks around it aside; the same patterns decide
on Spark. One of blanks alone is NULL. An instant without a zone is in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ids.errors import SourceError, closest
from ids.model.table import FIRST_INSTANT, LAST_INSTANT, ColumnData, Kind
from ids.predicates.epochs import micros_of
from ids.source.declared import EPOCHS, plain_types

__all__ = [
    "BLANKS",
    "FALSE",
    "SPELLINGS",
    "TRUE",
    "Converted",
    "converted",
    "epoch_bounds",
    "fitting_types",
    "kind_of_type",
]

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
_PLURALS = {
    Kind.NUMBER: "numbers",
    Kind.TEXT: "text",
    Kind.BOOLEAN: "Booleans",
    Kind.TIME: "timestamps",
}

Values = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


class Converted(NamedTuple):
    """A column in its declared type; the values of rows ``unfit`` were ``texts``, and are NULL."""

    column: ColumnData
    unfit: npt.NDArray[np.int64]
    texts: list[str]


def kind_of_type(type_: str) -> Kind:
    """What a column of a declared type holds."""
    kinds = {"STRING": Kind.TEXT, "BOOLEAN": Kind.BOOLEAN, "TIMESTAMP": Kind.TIME}
    return Kind.TIME if type_ in EPOCHS else kinds.get(type_, Kind.NUMBER)


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
            fact = f"column {name!r} of {place} holds {_PLURALS[kind]}, but is declared {type_}"
            raise SourceError(f"{fact}; {hint}")
    return types


def epoch_bounds(type_: str) -> tuple[int, int]:
    """The least and the largest whole number of a type that is a TIMESTAMP: years 1 to 9999."""
    units = EPOCHS[type_]
    return FIRST_INSTANT * units // 1_000_000, LAST_INSTANT * units // 1_000_000


def converted(column: ColumnData, type_: str) -> Converted:
    """A column of a fitting kind, in type ``type_``."""
    kind, valid = kind_of_type(type_), column.valid
    if column.kind is not kind and valid is not None and not valid.any():
        return Converted(_nothing(kind, len(column)), np.zeros(0, np.int64), [])
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


def _nothing(kind: Kind, rows: int) -> ColumnData:
    """A column of NULLs."""
    dtypes: dict[Kind, Any] = {Kind.TEXT: np.int32, Kind.BOOLEAN: np.bool_}
    dictionary = np.array([""], dtype=object) if kind is Kind.TEXT else None
    values: Values = np.zeros(rows, dtypes.get(kind, np.int64))
    return ColumnData(kind, values, np.zeros(rows, np.bool_), dictionary)


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
