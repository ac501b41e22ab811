"""LIKE patterns: ``%`` any text, ``_`` any one character, ``\\`` takes the next one literally."""

from __future__ import annotations

import re

__all__ = ["compile_pattern"]


def compile_pattern(pattern: str) -> re.Pattern[str] | None:
    """A regular expression to ``fullmatch`` with; None when an escape escapes nothing special.

    The first occurrence of a piece between two ``%`` is always as good as a later one, so each
    piece is matched atomically: matching stays O(text * pattern), whatever the pattern.
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
