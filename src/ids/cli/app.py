"""The application behind ``ids``, and what its exit codes mean."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from ids.cli.ask import ask
from ids.cli.demo import demo
from ids.cli.explain import explain
from ids.cli.reproduce import reproduce
from ids.cli.run import run
from ids.cli.workload import workload

__all__ = ["app", "invoke", "main"]

app = typer.Typer(
    name="ids",
    help="Exact, live predicate-level Shapley attribution over sliding windows.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(run)
app.command()(ask)
app.command()(explain)
app.command()(demo)
app.command()(reproduce)
app.add_typer(workload)


def main() -> None:
    """The entry point of ``ids``."""
    sys.exit(invoke(sys.argv[1:]))


def invoke(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code.

    0 done · 1 refused, with one line on stderr · 2 a wrong command line, with one line on stderr ·
    70 a fault of our own · 130 interrupted.
    """
    try:
        code = app(list(arguments) or ["--help"], prog_name="ids", standalone_mode=False)
    except TyperException as error:
        line = f"error: {error.format_message().rstrip('.')}; see {_command(arguments)} --help"
        typer.echo(line, err=True)
        return error.exit_code
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        return 130
    return code if isinstance(code, int) else 0


def _command(arguments: Sequence[str]) -> str:
    """The command that was called, as in ``ids workload prepare``."""
    command, path = get_command(app), "ids"
    for word in arguments:
        found = getattr(command, "commands", {}).get(word)
        if found is None:
            break
        command, path = found, f"{path} {word}"
    return path
