"""What the verbs have in common on their command line: the script and its tables."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from ids.errors import SourceError, closest

__all__ = ["DebugOption", "ScriptArgument", "TableOption", "read_script", "read_tables"]

ScriptArgument = Annotated[
    str, typer.Argument(metavar="QUERY.sql", help="The script, or - to read it from stdin.")
]
TableOption = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="NAME=PATH",
        help="A table of the script: a .parquet, .csv or .jsonl file, or a directory of them. "
        "May be given several times.",
    ),
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def read_script(query: str) -> str:
    """The text of the script."""
    try:
        if query == "-":
            return sys.stdin.read()
        return Path(query).expanduser().read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"cannot read {query}: it is not UTF-8 text") from error
    except FileNotFoundError as error:
        raise SourceError(_missing(Path(query))) from error
    except OSError as error:
        raise SourceError(f"cannot read {query}: {error.strerror}") from error


def _missing(path: Path) -> str:
    near = None
    if path.parent.is_dir():
        near = closest(path.name, [entry.name for entry in path.parent.glob("*.sql")])
    return f"no such script: {path}" + (f"; {near}" if near else "")


def read_tables(options: Iterable[str] | None) -> dict[str, str]:
    """The paths of the tables, by name."""
    tables: dict[str, str] = {}
    for option in options or ():
        name, equals, path = option.partition("=")
        if not (name.strip() and equals and path):
            raise typer.BadParameter(f"{option!r} is not NAME=PATH", param_hint="--table")
        if name.strip() in tables:
            raise typer.BadParameter(f"{name.strip()!r} is given twice", param_hint="--table")
        tables[name.strip()] = path
    return tables
