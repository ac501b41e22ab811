"""The whole error family: one root, each member also kin of a builtin.

An error is the fact, then the way out, in one line:
``unknown column 'regoin' at line 3, column 9; did you mean 'region'?``
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import NamedTuple

__all__ = [
    "CheckpointError",
    "DataError",
    "IdsError",
    "Position",
    "ScriptError",
    "SetupError",
    "SourceError",
    "StateError",
    "UnknownNameError",
    "closest",
    "nearest",
]


class Position(NamedTuple):
    """Where in the script something stands, both counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class IdsError(Exception):
    """The root: whatever IDS refuses, it refuses with one of these."""


class ScriptError(IdsError, ValueError):
    """The script says something the language does not know.

    ``at`` is where, ``hint`` what would be right; both are part of the message.
    """

    def __init__(self, fact: str, at: Position | None = None, hint: str | None = None) -> None:
        self.fact = fact
        self.at = at
        self.hint = hint
        place = f" at {at}" if at else ""
        super().__init__(f"{fact}{place}" + (f"; {hint}" if hint else ""))


class UnknownNameError(ScriptError, LookupError):
    """A name that is neither a table, a column nor a registered predicate."""

    def __init__(
        self, kind: str, name: str, known: Iterable[str] = (), at: Position | None = None
    ) -> None:
        self.kind = kind
        self.name = name
        super().__init__(f"unknown {kind} {name!r}", at, closest(name, known))


class DataError(IdsError, ValueError):
    """A row or a column holds what no aggregate can take (NaN, text, a NULL event time)."""


class SourceError(IdsError, OSError):
    """A table cannot be read, or an output cannot be written."""


class SetupError(IdsError, RuntimeError):
    """Spark cannot start here: no fit Java, no session, no connector."""


class StateError(IdsError, RuntimeError):
    """The engine cannot do this in the state it is in; nothing was changed."""


class CheckpointError(IdsError, OSError):
    """A checkpoint that is truncated, altered, or of another version."""


def closest(name: str, known: Iterable[str]) -> str | None:
    """The hint for a misspelt ``name``: the nearest known one, or a short list of them.

    >>> closest("regoin", ["region", "tier"])
    "did you mean 'region'?"
    >>> closest("zzz", ["region", "tier"])
    'known: region, tier'
    """
    names = sorted({str(k) for k in known})
    if not names:
        return None
    near = nearest(name, names)
    if near is not None:
        return f"did you mean {near!r}?"
    shown = names[:8]
    return "known: " + ", ".join(shown) + (", …" if len(names) > len(shown) else "")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a misspelt one most likely means, whatever the case of its letters."""
    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.6)
    return by_lower[near[0]] if near else None
