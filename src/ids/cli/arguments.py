"""Options that several commands have, and what a command is given by all of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Annotated

import typer

from ids.errors import ScriptError, SetupError

MasterOption = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="Any Spark master; local[*] by default."),
]
ConfOption = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A Spark setting. May be repeated."),
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="table, csv, jsonl or parquet, where the name of OUT does not say it: for -, pipes "
        "and directories. By default a table on a terminal, CSV in a pipe, Parquet in a directory.",
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        "--seed",
        metavar="NUMBER",
        help="Which rows APPROXIMATE samples: the same number, the same rows. 0 by default.",
    ),
]


class OptionError(typer.BadParameter):
    """An option that is wrong, by its name on the command line."""

    def __init__(self, flag: str, fact: str) -> None:
        super().__init__(fact, param_hint=flag)

    def format_message(self) -> str:
        return f"{self.param_hint}: {self.message}"


def check_master(master: str | None) -> None:
    """Refuse a master that Spark could not read."""
    from ids.spark import check_master

    try:
        check_master(master or "local[*]")
    except SetupError as error:
        raise OptionError("--master", str(error)) from error


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


@dataclass(frozen=True, slots=True)
class Job:
    """What a command is given beside its script."""

    tables: dict[str, str]
    schemas: dict[str, str] = field(default_factory=dict)
    nulls: tuple[str, ...] = ()
    conf: dict[str, str] = field(default_factory=dict)
    master: str | None = None
    output: str | None = None
    bad_rows: str | None = None
    seed: int = 0
    debug: bool = False


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What only a stream is given."""

    checkpoint: str | None
    lateness: str | None
    max_ahead: str | None
    trigger: str | None
    available_now: bool
    retain: bool

    def flags(self) -> dict[str, object]:
        """The options by their names on the command line."""
        return {f"--{name.replace('_', '-')}": value for name, value in asdict(self).items()}

    @property
    def cap(self) -> str | None:
        """By how much a row may be ahead of the others; None: by any."""
        return None if str(self.max_ahead).lower() == "none" else self.max_ahead

    def checked(self) -> str:
        """The checkpoint, once every option is known to be right."""
        from ids.model import microseconds
        from ids.spark import ahead_cap

        if self.checkpoint is None:
            raise OptionError("--checkpoint", "a stream needs one, to remember how far it came")
        for flag, read, text in (
            ("--lateness", microseconds, self.lateness),
            ("--trigger", microseconds, self.trigger),
            ("--max-ahead", ahead_cap, self.cap),
        ):
            try:
                if text is not None:
                    read(text)
            except ScriptError as error:
                raise OptionError(flag, str(error)) from error
        return self.checkpoint
