"""All errors of IDS. They share one root, and each is also a built-in error.

A message is one line, the fact and then the remedy:
``unknown column 'regoin' at line 3, column 9; did you mean 'region'?``
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import NamedTuple
from unicodedata import east_asian_width

_WIDTH = 100  # characters of the script line in an excerpt


class Position(NamedTuple):
    """A position in the script; line and column are counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class IdsError(Exception):
    """The base class of every error that IDS raises on purpose."""

    @property
    def excerpt(self) -> str | None:
        """The wrong line of the script and a caret below the position, or None if unknown."""
        return None


class ScriptError(IdsError, ValueError):
    """The script is not valid.

    ``at`` is the position of the mistake and ``hint`` is the remedy; both are part of the message.
    ``script`` is the text that ``at`` refers to, if known.

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
        """The wrong line of the script and a caret below the position, or None if unknown."""
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
    """A name is not a known table, column, predicate or the like; ``kind`` says which.

    The hint suggests the most similar known name. If none is similar, it is ``otherwise``, or the
    list of known names.
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
    """An expression has the wrong type; ``texts`` are the text columns that it contains."""

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
    """A row or column has a value that cannot be aggregated (NaN, text, a NULL event time)."""


class SourceError(IdsError, OSError):
    """A table cannot be read."""


class SinkError(IdsError, OSError):
    """An output cannot be written."""


class SetupError(IdsError, RuntimeError):
    """Spark cannot run here: no suitable Java, no session, or no connector."""


class MissingExtraError(IdsError, ImportError):
    """A package of an optional dependency group, such as ``ids-engine[spark]``, is missing."""


class StateError(IdsError, RuntimeError):
    """The engine cannot do this in its current state; nothing was changed."""


class CheckpointError(IdsError, OSError):
    """A checkpoint is truncated, altered, or from another version."""


def missing_extra(module: str, extra: str, otherwise: str = "") -> MissingExtraError:
    """Return the error for a module that is not installed; ``otherwise`` is another remedy.

    >>> print(missing_extra("pyspark", "spark"))
    pyspark is not installed; run pip install 'ids-engine[spark]'
    """
    remedy = f"run pip install 'ids-engine[{extra}]'{otherwise}"
    return MissingExtraError(f"{module} is not installed; {remedy}", name=module)


@contextmanager
def in_script(script: str) -> Iterator[None]:
    """Attach the script to every ScriptError raised in the block, for its excerpt."""
    try:
        yield
    except ScriptError as error:
        if error.script is None:
            error.script = script
        raise


def closest(name: str, known: Iterable[str], otherwise: str | None = None) -> str | None:
    """Return the hint for a misspelt ``name``: the most similar known name, or a short list.

    ``otherwise`` replaces the list.

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
    """Return the known name most similar to ``name``, ignoring case, or None."""
    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.6)
    return by_lower[near[0]] if near else None
