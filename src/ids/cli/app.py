"""The application behind ``ids``, and what its exit codes mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from ids.cli.ask_command import ask
from ids.cli.demo_command import demo
from ids.cli.run_command import explain, run
from ids.cli.status_command import status

app = typer.Typer(
    name="ids",
    help="Exact, live predicate-level Shapley attribution over sliding windows.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(run)
app.command()(ask)
app.command()(status)
app.command()(explain)
app.command()(demo)


def _show_version(asked: bool) -> None:
    if asked:
        from ids import __version__

        typer.echo(f"ids {__version__}")
        raise typer.Exit


@app.callback()
def ids(
    _: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    """Exact, live predicate-level Shapley attribution over sliding windows."""


def invoke(arguments: Sequence[str], app: typer.Typer = app, name: str = "ids") -> int:
    """Run one command line and return its exit code.

    0 done · 1 refused, with one line on stderr · 2 a wrong command line, with one line on stderr ·
    70 a fault of our own · 130 interrupted.
    """
    below, path = _called(arguments, get_command(app), name)
    # ids, or a command with others below it, alone: say what there is
    alone = below and path.removeprefix(name).split() == [*arguments]
    asked = [*arguments, "--help"] if alone else arguments
    try:
        code = app(list(asked), prog_name=name, standalone_mode=False)
    except TyperException as error:
        typer.echo(f"error: {error.format_message().rstrip('.')}; see {path} --help", err=True)
        return error.exit_code
    return code if isinstance(code, int) else 0


def _called(arguments: Sequence[str], command: Any, name: str) -> tuple[dict[str, Any], str]:
    """The commands there are below the one that was called, and its name: ``ids run``."""
    below, path = _commands(command), name
    for word in arguments:
        if word not in below:
            break
        below, path = _commands(below[word]), f"{path} {word}"
    return below, path


def _commands(command: Any) -> dict[str, Any]:
    return getattr(command, "commands", {})
