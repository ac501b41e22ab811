"""LIKE patterns: ``%`` any text, ``_`` any one character, ``\\`` takes the next one literally."""

from __future__ import annotations

import re

import numpy as np

from ids.model.table import Kind
from ids.predicates.vector import Kleene, Mask, Vector, take_text, to_kleene

__all__ = ["compile_pattern", "like"]


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


def like(operand: Vector, pattern: str) -> Kleene:
    """``operand LIKE pattern``; each word is matched once."""
    if operand.kind is not Kind.TEXT or operand.dictionary is None:
        return np.zeros(1, np.int8)
    matcher = compile_pattern(pattern)
    assert matcher is not None, "binding has refused such a pattern"
    matches = [matcher.fullmatch(word) is not None for word in operand.dictionary]
    holds: Mask = take_text(operand, np.array(matches, np.bool_))
    return to_kleene(holds, operand.valid)
