"""What the verbs have in common on their command line: the script and its tables."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated

import typer

from ids.errors import SetupError, SourceError, closest

__all__ = [
    "BadRowsOption",
    "ConfOption",
    "DebugOption",
    "MasterOption",
    "NullOption",
    "OptionError",
    "SchemaOption",
    "ScriptArgument",
    "TableOption",
    "check_master",
    "read_pairs",
    "read_schemas",
    "read_script",
    "read_tables",
]

ScriptArgument = Annotated[
    str, typer.Argument(metavar="QUERY.sql", help="The script, or - to read it from stdin.")
]
TableOption = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="NAME=PATH",
        help="A table of the script: a .parquet, .csv or .jsonl file or a directory of them, here "
        "or on any file system of Spark's (s3a://BUCKET/IN), a table of its catalog (DB.NAME), or "
        "kafka://HOST:PORT/TOPIC. May be given several times.",
    ),
]
SchemaOption = Annotated[
    list[str] | None,
    typer.Option(
        "--schema",
        metavar="[NAME=]COLUMNS",
        help="Types of columns: 'event_time EPOCH_MILLIS, latency DOUBLE', or "
        "events='event_time TIMESTAMP' where there are several tables. Those of a Kafka topic of "
        "JSON objects must all be given.",
    ),
]
NullOption = Annotated[
    list[str] | None,
    typer.Option(
        "--null",
        metavar="TEXT",
        help="A text that means NULL in CSV and JSON Lines files, such as NA. May be repeated.",
    ),
]
BadRowsOption = Annotated[
    str | None,
    typer.Option(
        "--bad-rows",
        metavar="DIR",
        help="Set rows aside here that no aggregate can take, and go on without them.",
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="Any Spark master; local[*] by default."),
]
ConfOption = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A Spark setting. May be repeated."),
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


class OptionError(typer.BadParameter):
    """An option that is wrong, by its name on the command line."""

    def __init__(self, flag: str, fact: str) -> None:
        super().__init__(fact, param_hint=flag)

    def format_message(self) -> str:
        return f"{self.param_hint}: {self.message}"


def check_master(master: str | None) -> None:
    """Refuse a master that Spark could not read."""
    from ids.spark.master import check_master

    try:
        check_master(master or "local[*]")
    except SetupError as error:
        raise OptionError("--master", str(error)) from error


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


def read_pairs(options: Iterable[str] | None, flag: str, form: str = "NAME=PATH") -> dict[str, str]:
    """What an option that may be repeated gives, by name."""
    pairs: dict[str, str] = {}
    for option in options or ():
        name, equals, value = option.partition("=")
        if not (name.strip() and equals and value):
            raise OptionError(flag, f"{option!r} is not {form}")
        if name.strip() in pairs:
            raise OptionError(flag, f"{name.strip()!r} is given twice")
        pairs[name.strip()] = value
    return pairs


def read_tables(options: Iterable[str] | None) -> dict[str, str]:
    """The places of the tables, by name."""
    return read_pairs(options, "--table")


def read_schemas(options: Iterable[str] | None, tables: Collection[str]) -> dict[str, str]:
    """The declared columns, by table; the only table need not be named."""
    only = next(iter(tables)) if len(tables) == 1 else None
    named = [f"{only}={each}" if only and "=" not in each else each for each in options or ()]
    schemas = read_pairs(named, "--schema", "NAME=COLUMNS")
    for name in schemas:
        if name not in tables:
            raise OptionError("--schema", f"no --table is called {name!r}")
    return schemas
