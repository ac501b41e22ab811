"""The whole error family: one root, each member is also a builtin error.

An error is the fact, then the way out, in one line:
``unknown column 'regoin' at line 3, column 9; did you mean 'region'?``
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import NamedTuple
from unicodedata import east_asian_width

_WIDTH = 100  # of a line of the script as an error shows it


class Position(NamedTuple):
    """Where in the script something stands, both counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class IdsError(Exception):
    """The root: whatever IDS refuses, it refuses with one of these."""

    @property
    def excerpt(self) -> str | None:
        """The line of the script that is wrong, and below it a caret at the place; if known."""
        return None


class ScriptError(IdsError, ValueError):
    """The script says something the language does not know.

    ``at`` is where, ``hint`` what would be right; both are part of the message. ``script`` is the
    text that ``at`` is a place of, where it is known.

    >>> try:
    ...     with in_script("SELECT SUM(x)\\n  FORM trips"):
    ...         raise ScriptError("unexpected 'FORM'", Position(2, 3), "expected FROM")
    ... except ScriptError as error:
    ...     print(error, error.excerpt, sep="\\n")
    unexpected 'FORM' at line 2, column 3; expected FROM
      FORM trips
      ^
    """

    script: str | None = None

    def __init__(self, fact: str, at: Position | None = None, hint: str | None = None) -> None:
        self.fact = fact
        self.at = at
        self.hint = hint
        place = f" at {at}" if at else ""
        super().__init__(f"{fact}{place}" + (f"; {hint}" if hint else ""))

    @property
    def excerpt(self) -> str | None:
        """The line of the script that is wrong, and below it a caret at the place; if known."""
        if self.script is None or self.at is None:
            return None
        line, column = self.script.split("\n")[self.at.line - 1], self.at.column - 1
        start = max(0, column - _WIDTH * 3 // 4)
        shown = "".join(c if c.isprintable() else " " for c in line[start : start + _WIDTH])
        if start:
            shown = "…" + shown[1:]
        before = shown[: column - start]
        wide = sum(east_asian_width(character) in "WF" for character in before)
        more = "…" if len(line) > start + _WIDTH else ""
        return f"{shown.rstrip()}{more}\n{' ' * (len(before) + wide)}^"


class UnknownNameError(ScriptError, LookupError):
    """A name that is neither a table, a column nor a registered predicate.

    The hint is the known name nearest to it; if none is near, ``otherwise`` or what is known.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        known: Iterable[str] = (),
        at: Position | None = None,
        otherwise: str | None = None,
    ) -> None:
        self.kind = kind
        self.name = name
        super().__init__(f"unknown {kind} {name!r}", at, closest(name, known, otherwise))


class KindError(ScriptError):
    """An expression of the wrong kind; ``texts`` are the columns of text in it."""

    def __init__(
        self, fact: str, at: Position | None, hint: str | None, texts: Iterable[str]
    ) -> None:
        self.texts = tuple(texts)
        super().__init__(fact, at, hint)


class ArgumentError(IdsError, ValueError):
    """An argument of a Python call is wrong, such as ``ids.CountWindow(0)``."""

    def __init__(self, fact: str, hint: str | None = None) -> None:
        self.fact = fact
        self.hint = hint
        super().__init__(fact + (f"; {hint}" if hint else ""))


class DataError(IdsError, ValueError):
    """A row or a column holds what no aggregate can take (NaN, text, a NULL event time)."""


class SourceError(IdsError, OSError):
    """A table cannot be read."""


class SinkError(IdsError, OSError):
    """An output cannot be written."""


class SetupError(IdsError, RuntimeError):
    """Spark cannot start here: no fit Java, no session, no connector."""


class StateError(IdsError, RuntimeError):
    """The engine cannot do this in the state it is in; nothing was changed."""


class CheckpointError(IdsError, OSError):
    """A checkpoint that is truncated, altered, or of another version."""


@contextmanager
def in_script(script: str) -> Iterator[None]:
    """Errors raised inside learn the script that their position is in."""
    try:
        yield
    except ScriptError as error:
        if error.script is None:
            error.script = script
        raise


def closest(name: str, known: Iterable[str], otherwise: str | None = None) -> str | None:
    """The hint for a misspelt ``name``: the nearest known one, or a short list of them.

    ``otherwise`` is said in place of the list.

    >>> closest("regoin", ["region", "tier"])
    "did you mean 'region'?"
    >>> closest("zzz", ["region", "tier"])
    'known: region, tier'
    """
    names = sorted({str(k) for k in known})
    near = nearest(name, names)
    if near is not None:
        return f"did you mean {near!r}?"
    if otherwise is not None or not names:
        return otherwise
    shown = names[:8]
    return "known: " + ", ".join(shown) + (", …" if len(names) > len(shown) else "")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a misspelt one most likely means, whatever the case of its letters."""
    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.6)
    return by_lower[near[0]] if near else None
