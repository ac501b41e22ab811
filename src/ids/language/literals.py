"""Literals: numbers, strings and instants as Spark writes them."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime

from ids.errors import Position, ScriptError
from ids.model.expression import Literal

__all__ = ["as_integer", "instant", "number", "unescape"]

_MAX_INTEGER = 2**63 - 1
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?(L|S|Y|D|F|BD)?", re.ASCII | re.IGNORECASE)
_ESCAPE = re.compile(
    r"\\(?:u(?P<u>[0-9A-Fa-f]{4})|U(?P<U>[0-9A-Fa-f]{8})|(?P<octal>[0-3][0-7]{2})|(?P<one>.))",
    re.DOTALL,
)
_ONE = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def unescape(body: str, at: Position) -> str:
    r"""The characters a string literal stands for; ``\%`` and ``\_`` stay, for LIKE to read.

    >>> unescape(r"it\'s 5\% \u00e9", Position(1, 1))
    "it's 5\\% é"
    """
    if "\\" not in body:
        return body

    def character(match: re.Match[str]) -> str:
        if one := match["one"]:
            return _ONE.get(one, one)
        octal = match["octal"]
        code = int(octal, 8) if octal else int(match["u"] or match["U"], 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise ScriptError(f"no such character: {match.group()!r}", at)
        return chr(code)

    return _ESCAPE.sub(character, body)


def number(text: str, at: Position, *, negative: bool = False) -> Literal:
    """A number: whole ones are 64-bit integers, with a point or an exponent they are doubles."""
    parts = _NUMBER.fullmatch(text)
    if not parts:
        raise ScriptError(f"not a number: {text[:40]!r}", at)
    digits, exponent, suffix = parts.groups()
    sign = -1 if negative else 1
    whole = digits.isdigit() and not exponent and (suffix or "L").upper() in ("L", "S", "Y")
    if not whole:
        value = sign * float(digits + (exponent or ""))
        if math.isinf(value):
            raise ScriptError(f"number out of range: {text[:40]}", at)
        return Literal(value, at)
    if len(digits.lstrip("0")) > 19:
        raise _too_large(text, at)
    return as_integer(sign * int(digits[-20:]), at)


def as_integer(value: int, at: Position | None) -> Literal:
    """A whole number, if 64 bits hold it."""
    if not -_MAX_INTEGER - 1 <= value <= _MAX_INTEGER:
        raise _too_large(str(value), at)
    return Literal(value, at)


def _too_large(text: str, at: Position | None) -> ScriptError:
    return ScriptError(
        f"whole number out of range: {text[:40]}", at, "64 bits at most; 1e20 is a double"
    )


def instant(type_name: str, text: str, at: Position) -> Literal:
    """TIMESTAMP '…' or DATE '…' in UTC; without a zone it is UTC already."""
    stripped = text.strip()
    try:
        if type_name == "DATE":
            day = date.fromisoformat(stripped)
            moment = datetime(day.year, day.month, day.day, tzinfo=UTC)
        else:
            moment = datetime.fromisoformat(stripped.removesuffix("UTC").rstrip())
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
            moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        sample = "2026-01-31" if type_name == "DATE" else "2026-01-31 12:00:00"
        raise ScriptError(
            f"not a {type_name.lower()}: {text[:40]!r}", at, f"write it as '{sample}'"
        ) from None
    return Literal(moment, at)
