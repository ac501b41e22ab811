"""The ``ids`` application: its commands and its exit codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command

from ids.cli.checkpoint_commands import ask, status
from ids.cli.demo_command import demo
from ids.cli.run_command import explain, run

# Options by their former names, which are still accepted.
_FORMER = {"--once": "--available-now", "--approximate": "--sample", "--out": "--output"}


class _Command(TyperCommand):
    """A command that also accepts the former names of its options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {name for parameter in self.params for name in parameter.opts}
        for number, word in enumerate(args):
            name, equals, value = word.partition("=")
            if name not in known and _FORMER.get(name) in known:
                args[number] = _FORMER[name] + equals + value
        return super().parse_args(ctx, args)

    def get_help_option(self, ctx: Any) -> Any:
        return _without_type(super().get_help_option(ctx))


class _Group(TyperGroup):
    def get_help_option(self, ctx: Any) -> Any:
        return _without_type(super().get_help_option(ctx))


def _without_type(option: Any) -> Any:
    """Hide the type of the flag ``--help``, as ``metavar=""`` does for our own flags."""
    option.metavar = ""
    return option


app = typer.Typer(
    name="ids",
    cls=_Group,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS: tuple[Callable[..., None], ...] = (run, explain, ask, status, demo)
for _command in _COMMANDS:
    app.command(cls=_Command)(_command)


def _show_version(asked: bool) -> None:
    if asked:
        from ids import __version__

        typer.echo(f"ids {__version__}")
        raise typer.Exit


@app.callback()
def ids(
    _: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar="",
            help="Show the version and exit.",
            is_eager=True,
            callback=_show_version,
        ),
    ] = False,
) -> None:
    """Attribute aggregates over sliding windows to predicates, by exact Shapley values."""


def invoke(arguments: Sequence[str], app: typer.Typer = app, name: str = "ids") -> int:
    """Run one command line and return its exit code.

    0    success
    1    an error in the input, as one line on stderr
    2    an invalid command line, as one line on stderr
    70   an internal error
    130  interrupted
    """
    commands, path = _called(arguments, get_command(app), name)
    # show the help if only ``ids``, or a command with subcommands, was typed
    alone = commands and path.removeprefix(name).split() == [*arguments]
    asked = [*arguments, "--help"] if alone else arguments
    try:
        code = app(list(asked), prog_name=name, standalone_mode=False)
    except TyperException as error:
        typer.echo(f"error: {error.format_message().rstrip('.')}; see {path} --help", err=True)
        return error.exit_code
    return code if isinstance(code, int) else 0


def _called(arguments: Sequence[str], command: Any, name: str) -> tuple[dict[str, Any], str]:
    """Return the subcommands of the command that was typed, and its full name (``ids run``)."""
    commands, path = getattr(command, "commands", {}), name
    for word in arguments:
        if word not in commands:
            break
        commands, path = getattr(commands[word], "commands", {}), f"{path} {word}"
    return commands, path
