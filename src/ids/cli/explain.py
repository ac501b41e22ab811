"""``ids explain``: the plan of each SELECT in a script, without its rows."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from ids.cli.arguments import (
    DebugOption,
    ScriptArgument,
    TableOption,
    read_script,
    read_tables,
)
from ids.cli.reporting import reporting
from ids.cli.run import results, show
from ids.errors import Position, ScriptError, in_script
from ids.model.query import Explain, Select

__all__ = ["explain", "explained", "selects"]

_EXPLAIN = "EXPLAIN "


def explain(query: ScriptArgument, table: TableOption = None, debug: DebugOption = False) -> None:
    """Print the plan of each SELECT in a script."""
    with reporting(debug):
        tables = read_tables(table)
        script = read_script(query)
        starts = selects(script)
        try:
            for result in results(explained(script, starts), tables, None):
                if isinstance(result.statement, Explain):
                    show(result, Console())
        except ScriptError as error:
            at = None if error.at is None else _as_written(error.at, starts)
            with in_script(script):
                raise ScriptError(error.fact, at, error.hint) from error


def selects(script: str) -> list[Position]:
    """Where the SELECTs begin that have no EXPLAIN yet."""
    from ids.games import GAMES
    from ids.language import parse

    statements = parse(script, games=tuple(GAMES))
    return [s.at for s in statements if isinstance(s, Select) and s.at is not None]


def explained(script: str, starts: Sequence[Position]) -> str:
    """The script with EXPLAIN before each of its SELECTs.

    >>> explained("SELECT 1;\\nSELECT 2", [Position(1, 1), Position(2, 1)])
    'EXPLAIN SELECT 1;\\nEXPLAIN SELECT 2'
    """
    lines = script.split("\n")
    for line, column in reversed(starts):
        text = lines[line - 1]
        lines[line - 1] = text[: column - 1] + _EXPLAIN + text[column - 1 :]
    return "\n".join(lines)


def _as_written(at: Position, starts: Sequence[Position]) -> Position:
    """A position in the explained script, as the person who wrote it counts."""
    column = at.column
    for start in starts:
        if start.line == at.line and column >= start.column + len(_EXPLAIN):
            column -= len(_EXPLAIN)
    return Position(at.line, column)
