"""Numbers and flags as people pass them: Python's and NumPy's, and no text that looks like one."""

from __future__ import annotations

from numbers import Real
from operator import index
from typing import Any

from ids.errors import ScriptError

__all__ = ["as_whole", "checked_count", "checked_flag", "is_number"]


def as_whole(given: Any) -> int | None:
    """``given`` as an int; None where it is no whole number.

    >>> as_whole(5), as_whole(True), as_whole(5.0), as_whole("5")
    (5, None, None, None)
    """
    if isinstance(given, bool):
        return None
    try:
        return index(given)
    except TypeError:
        return None


def is_number(given: Any) -> bool:
    """Whether it is a real number; True is none."""
    return isinstance(given, Real) and not isinstance(given, bool)


def checked_count(name: str, given: Any, least: int = 0) -> int:
    """The argument ``name`` as an int, no less than ``least``."""
    whole = as_whole(given)
    if whole is None or whole < least:
        raise ScriptError(f"{name}={given!r}", hint=f"give a whole number, {least} or more")
    return whole


def checked_flag(name: str, given: Any) -> bool:
    """The argument ``name``, which is True or False."""
    if type(given).__name__ not in ("bool", "bool_"):  # bool_: NumPy's, not imported here
        raise ScriptError(f"{name}={given!r}", hint="give True or False")
    return bool(given)
