"""``ids explain``: the plan of each SELECT in a script, without its rows."""

from __future__ import annotations

from rich.console import Console

from ids.cli.arguments import (
    DebugOption,
    ScriptArgument,
    TableOption,
    read_script,
    read_tables,
)
from ids.cli.reporting import reporting
from ids.cli.run import show
from ids.model.query import Explain, Select

__all__ = ["explain", "explained"]


def explain(query: ScriptArgument, table: TableOption = None, debug: DebugOption = False) -> None:
    """Print the plan of each SELECT in a script."""
    with reporting(debug):
        from ids.engine import run_script  # here, so that --help need not wait for the compiler

        script = explained(read_script(query))
        for result in run_script(script, read_tables(table)):
            if isinstance(result.statement, Explain):
                show(result, Console())


def explained(script: str) -> str:
    """The script with EXPLAIN before each SELECT that has none.

    >>> explained("SELECT SUM(x) FROM t WINDOW w AS (ORDER BY at ROWS 2 PRECEDING) EMIT FINAL")
    'EXPLAIN SELECT SUM(x) FROM t WINDOW w AS (ORDER BY at ROWS 2 PRECEDING) EMIT FINAL'
    """
    from ids.language import parse

    lines = script.split("\n")
    for statement in reversed(parse(script)):
        if isinstance(statement, Select) and statement.at is not None:
            line, column = statement.at
            text = lines[line - 1]
            lines[line - 1] = f"{text[: column - 1]}EXPLAIN {text[column - 1 :]}"
    return "\n".join(lines)
