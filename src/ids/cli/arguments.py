"""Options that several commands share, their checks, and the Spark session they describe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from ids.cli.terminal import Bar
from ids.errors import SetupError, missing_extra


def option(flag: str, metavar: str, text: str, panel: str | None = None) -> Any:
    """Declare an option: its metavar (empty for a flag), its help, and the panel of the help."""
    return typer.Option(flag, metavar=metavar, help=text, rich_help_panel=panel)


SPARK = "Spark"  # a panel of --help
MasterOption = Annotated[
    str | None,
    option("--master", "URL", "Spark master, such as spark://HOST:7077. Default: local[*].", SPARK),
]
ConfOption = Annotated[
    list[str] | None, option("--conf", "KEY=VALUE", "A Spark setting. Can be repeated.", SPARK)
]
DebugOption = Annotated[bool, option("--debug", "", "Show the traceback of an error.")]
SeedOption = Annotated[
    int | None,
    option(
        "--seed",
        "NUMBER",
        "Seed for samples; the same seed samples the same rows. Default: 0.",
    ),
]


class OptionError(typer.BadParameter):
    """An option has an invalid value; the message begins with the option's name."""

    def __init__(self, flag: str, fact: str) -> None:
        super().__init__(fact, param_hint=flag)

    def format_message(self) -> str:
        return f"{self.param_hint}: {self.message}"


def check_master(master: str | None) -> None:
    """Reject a master URL that Spark cannot parse."""
    from ids.spark import check_master

    try:
        check_master(master or "local[*]")
    except SetupError as error:
        raise OptionError("--master", str(error)) from error


def read_pairs(options: Iterable[str] | None, flag: str, form: str = "NAME=PATH") -> dict[str, str]:
    """Parse the values of an option that can be repeated, each of the form ``NAME=VALUE``."""
    pairs: dict[str, str] = {}
    for option in options or ():
        name, equals, value = option.partition("=")
        name = name.strip()
        if not (name and equals and value):
            raise OptionError(flag, f"expected {form}, got {option!r}")
        if name in pairs:
            raise OptionError(flag, f"{name!r} is given twice")
        pairs[name] = value
    return pairs


def read_conf(options: Iterable[str] | None) -> dict[str, str]:
    """Parse the values of ``--conf``."""
    return read_pairs(options, "--conf", "KEY=VALUE")


def require_spark(otherwise: str = "") -> None:
    """Raise MissingExtraError if Spark is not installed, without importing it."""
    for module in ("pyspark", "pandas"):
        if find_spec(module) is None:
            raise missing_extra(module, "spark", otherwise)


def session_for(
    master: str | None, conf: Mapping[str, str], debug: bool, places: Iterable[str] = ()
) -> Any:
    """Start a Spark session with the packages that reading and writing ``places`` requires."""
    from ids import spark

    level = {"log_level": "WARN"} if debug else {}
    with Bar():
        return spark.local_session(master, packages=spark.packages_for([*places]), **level, **conf)
