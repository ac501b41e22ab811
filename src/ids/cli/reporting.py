"""What a person sees when something is wrong: one line, and an exit code that says which kind."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import indent

import typer

from ids.errors import IdsError

__all__ = ["note", "reporting"]

# How a remedy is spelled in Python, and on the command line.
_OPTIONS = (
    (r"; pass it as (\S+)=…$", r"; give it with --table \1=PATH"),
    (r"; pass it as \*\*\{(.*): …\}$", r"; give it with --table \1=PATH"),
    (r"\bbad_rows='DIR'", "--bad-rows DIR"),
    (r"\bnull='(.*?)'", r"--null '\1'"),
    (r"\bretain=True", "--retain"),
    (r"\bformat='(\w+)' or '(\w+)'", r"--format \1 or \2"),
    (r"\bids\.spark\.sources\.read\(.*schema=(.*)\)", r"--schema NAME=\1"),
    (r"\bschema=(?='.*?')", "--schema "),
    (r"\bin process with ids\.sql", "with --engine local"),
    (r"\bids\.spark, or a local path$", "it without --engine local, or a local path"),
)


def note(text: str) -> None:
    """A notice beside the result: on stderr, so that stdout stays the result alone."""
    typer.echo(f"note: {text}", err=True)


@contextmanager
def reporting(debug: bool) -> Iterator[None]:
    """Every failure inside becomes one line on stderr; ``debug`` shows the traceback before it."""
    try:
        yield
        sys.stdout.flush()  # here, where a reader that has gone away is no fault
    except BrokenPipeError:
        # the interpreter flushes stdout once more when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (typer.Exit, typer.BadParameter):
        raise
    except BaseException as error:
        if _interrupted(error):
            raise _end("interrupted", 130, debug=False) from error
        if isinstance(error, IdsError):
            raise _end(f"error: {_spelled(str(error))}", 1, debug, error.excerpt) from error
        fact = f"{type(error).__name__}: {error}"
        way_out = "" if debug else "; run again with --debug"
        raise _end(f"internal error: {fact}{way_out}", 70, debug) from error


def _end(line: str, code: int, debug: bool, excerpt: str | None = None) -> typer.Exit:
    if debug:
        traceback.print_exc()
    typer.echo(" ".join(line.split("\n")), err=True)
    if excerpt is not None:
        typer.echo(indent(excerpt, "  "), err=True)
    return typer.Exit(code)


def _interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is the reason, even where a library has made another error of it."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _spelled(message: str) -> str:
    """A message with the arguments of Python functions as the options of the command line.

    >>> _spelled("unknown table 'trips'; pass it as trips=…")
    "unknown table 'trips'; give it with --table trips=PATH"
    """
    for argument, option in _OPTIONS:
        message = re.sub(argument, option, message)
    return message
