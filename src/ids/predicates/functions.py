"""Arithmetic, scalar functions, letter case and LIKE patterns, as Spark computes them.

Everything here works on NumPy arrays and single words; ``three_valued`` adds NULL to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ids.model import Kind

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

# Kinds of the argument and of the result; COALESCE is not here, as it takes every kind.
FUNCTIONS: Mapping[str, tuple[Kind, Kind]] = {
    "ABS": (Kind.NUMBER, Kind.NUMBER),
    "FLOOR": (Kind.NUMBER, Kind.NUMBER),
    "CEIL": (Kind.NUMBER, Kind.NUMBER),
    "SQRT": (Kind.NUMBER, Kind.NUMBER),
    "LOWER": (Kind.TEXT, Kind.TEXT),
    "UPPER": (Kind.TEXT, Kind.TEXT),
    "TRIM": (Kind.TEXT, Kind.TEXT),
    "LENGTH": (Kind.TEXT, Kind.NUMBER),
    "HOUR": (Kind.TIME, Kind.NUMBER),
    "MINUTE": (Kind.TIME, Kind.NUMBER),
    "DAYOFWEEK": (Kind.TIME, Kind.NUMBER),
    "DAY": (Kind.TIME, Kind.NUMBER),
    "MONTH": (Kind.TIME, Kind.NUMBER),
    "YEAR": (Kind.TIME, Kind.NUMBER),
}


# Letter case. Spark maps case with its own ICU library, which has Unicode 17 in Spark 4.2. Python
# has the tables of its own release (Unicode 14 in 3.11, Unicode 16 in 3.14). These tables add later
# characters: pairs of letters (first upper, first lower, how many in a row), and the characters
# that decide whether a Σ is at the end of a word, where it becomes ς instead of σ.
_PAIRS = [
    (0x1C89, 0x1C8A, 1),
    (0xA7CB, 0x0264, 1),
    (0xA7CC, 0xA7CD, 1),
    (0xA7CE, 0xA7CF, 1),
    (0xA7D2, 0xA7D3, 1),
    (0xA7D4, 0xA7D5, 1),
    (0xA7DA, 0xA7DB, 1),
    (0xA7DC, 0x019B, 1),
    (0x10D50, 0x10D70, 22),
    (0x16EA0, 0x16EBB, 25),
]
_LOWER = {big + n: small + n for big, small, many in _PAIRS for n in range(many)}
_UPPER = {small: big for big, small in _LOWER.items()}
# letters without another case, and characters that do not end a word: accents, vowel signs, format
# controls
_OTHER_LETTERS = "1DF25-1DF2A"
_IGNORED = """
897 ECE 1ACF-1ADD 1AE0-1AEB A7F1 10D4E 10D69-10D6D 10D6F 10EC5 10EFA-10EFF 11241 113BB-113C0 113CE
113D0 113D2 113E1-113E2 11B60 11B62-11B64 11B66 11DD9 11F00-11F01 11F36-11F3A 11F40 11F42
11F5A 13439-13440 13447-13455 1611E-16129 1612D-1612F 16D40-16D42 16D6B-16D6C 16FF2-16FF3
1E030-1E06D 1E08F 1E4EB-1E4EF 1E5EE-1E5EF 1E6E3 1E6E6 1E6EE-1E6EF 1E6F5 1E6FF
"""


def _codes(ranges: str) -> list[int]:
    ends = [each.split("-") for each in ranges.split()]
    return [code for end in ends for code in range(int(end[0], 16), int(end[-1], 16) + 1)]


# Each character replaced by an old one that has the same effect on Σ. U+0295 is not a cased letter
# any more, and U+1171E now ends a word; İ is still a letter, but has two characters in lower case.
_SEEN = {
    **dict.fromkeys([*_LOWER, *_UPPER, *_codes(_OTHER_LETTERS), ord("İ")], "a"),
    **dict.fromkeys(_codes(_IGNORED), "."),
    **dict.fromkeys([0x0295, 0x1171E], "0"),
}


def lower(text: str) -> str:
    """Convert text to lower case."""
    if text.isascii():
        return text.lower()
    if "Σ" in text:
        seen = text.translate(_SEEN).lower()
        text = "".join(s if c == "Σ" else c for c, s in zip(text, seen, strict=True))
    return text.translate(_LOWER).lower()


def upper(text: str) -> str:
    """Convert text to upper case."""
    return text.upper() if text.isascii() else text.translate(_UPPER).upper()


# Functions from text to text.
WORDS: Mapping[str, Callable[[str], str]] = {
    "LOWER": lower,
    "UPPER": upper,
    "TRIM": lambda word: word.strip(" "),
}
_HOUR = 3_600_000_000
_MINUTE = 60_000_000
_DAY = 24 * _HOUR


def combine(op: str, a: Array, b: Array) -> Array:
    """Compute ``a op b``; integers wrap around."""
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return a / b
    # The smallest integer % -1 traps on some processors; modulo 1 it is 0 as well.
    return np.fmod(a, np.where(b == -1, -b, b)) if a.dtype == np.int64 else np.fmod(a, b)


def wrapped_around(op: str, a: Array, b: Array, result: Array) -> Mask:
    """Return where a 64-bit result wrapped around."""
    if op == "+":
        return ((a ^ result) & (b ^ result)) < 0
    if op == "-":
        return ((a ^ b) & (a ^ result)) < 0
    if _magnitude(a) * _magnitude(b) < 2**63:
        return np.zeros(1, np.bool_)
    divisor = np.where((a == 0) | (a == -1), 1, a)
    dividend = np.where((a == 0) | (a == -1), 0, result)
    lost = (dividend // divisor != b) | (dividend % divisor != 0)
    negated = (a == -1) & (b == -(2**63))
    wrapped: Mask = np.where((a == 0) | (a == -1), negated, lost)
    return wrapped


def _magnitude(integers: Array) -> int:
    return max(-int(integers.min()), int(integers.max())) if len(integers) else 0


def to_integers(doubles: Array) -> Array:
    """Cast doubles to integers like Java: NaN is 0, too large a double is the nearest integer."""
    low, high = doubles < -(2.0**63), doubles >= 2.0**63
    inside = np.where(low | high | np.isnan(doubles), 0.0, doubles).astype(np.int64)
    return np.where(high, 2**63 - 1, np.where(low, -(2**63), inside))


def time_part(function: str, instants: Array) -> Array:
    """Compute HOUR, MINUTE, DAYOFWEEK, DAY, MONTH or YEAR of microseconds since 1970 UTC."""
    match function:
        case "HOUR":
            return (instants // _HOUR) % 24
        case "MINUTE":
            return (instants // _MINUTE) % 60
        case "DAYOFWEEK":  # 1970-01-01 was a Thursday, and 1 is Sunday
            return (instants // _DAY + 4) % 7 + 1
    days: Any = instants.astype("datetime64[us]").astype("datetime64[D]")
    months: Any = days.astype("datetime64[M]")
    part: Array
    if function == "DAY":
        part = (days - months).astype(np.int64) + 1
    elif function == "MONTH":
        part = months.astype(np.int64) % 12 + 1
    else:
        part = months.astype("datetime64[Y]").astype(np.int64) + 1970
    return part


def compile_pattern(pattern: str) -> re.Pattern[str] | None:
    """Convert a LIKE pattern to a regular expression for ``fullmatch``; None if it is invalid.

    ``%`` matches any text, ``_`` any one character; a backslash escapes these and itself. Each
    piece between two ``%`` is matched atomically at its first occurrence, because a later one
    cannot match more: so every match takes at most O(text * pattern).
    """
    pieces = [""]
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
            if pattern[position : position + 1] not in ("%", "_", "\\"):
                return None
            pieces[-1] += re.escape(pattern[position])
        elif character == "%":
            pieces.append("")
        else:
            pieces[-1] += "." if character == "_" else re.escape(character)
        position += 1
    if len(pieces) == 1:
        return re.compile(pieces[0], re.DOTALL)
    middle = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1] if piece)
    return re.compile(f"{pieces[0]}{middle}.*{pieces[-1]}", re.DOTALL)
