"""LOWER and UPPER of a text as Spark gives them, whatever Python's Unicode version.

Spark does not ask Java: it maps case by the ICU library it comes with, and Spark 4.2 has that of
Unicode 17. Python has the tables of its own release (3.11: Unicode 14, 3.14: Unicode 16), to which
a letter of a later version is no letter. What came later stands here: the new pairs of letters,
and the characters by which Σ at the end of a word becomes ς and not σ.
"""

from __future__ import annotations

__all__ = ["lower", "upper"]

# first upper, first lower, how many in a row
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
# letters that have no other case, and what stands in or around a word without ending it: accents,
# vowel signs, format controls
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


# Old characters that Σ sees in the same way. U+0295 is no cased letter any more, and U+1171E ends a
# word now; İ is a letter as before, but its lower case is of two characters.
_SEEN = {
    **dict.fromkeys([*_LOWER, *_UPPER, *_codes(_OTHER_LETTERS), ord("İ")], "a"),
    **dict.fromkeys(_codes(_IGNORED), "."),
    **dict.fromkeys([0x0295, 0x1171E], "0"),
}


def lower(text: str) -> str:
    """The text in lower case."""
    if text.isascii():
        return text.lower()
    if "Σ" in text:
        seen = text.translate(_SEEN).lower()
        text = "".join(s if c == "Σ" else c for c, s in zip(text, seen, strict=True))
    return text.translate(_LOWER).lower()


def upper(text: str) -> str:
    """The text in upper case."""
    return text.upper() if text.isascii() else text.translate(_UPPER).upper()
