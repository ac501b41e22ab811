"""``ids explain``: the plan of each SELECT in a script, without its rows."""

from __future__ import annotations

from rich.console import Console

from ids.cli.arguments import (
    DebugOption,
    NullOption,
    SchemaOption,
    ScriptArgument,
    TableOption,
    read_schemas,
    read_script,
    read_tables,
)
from ids.cli.reporting import reporting
from ids.cli.terminal import print_lines
from ids.source import Declared

__all__ = ["explain"]


def explain(
    query: ScriptArgument,
    table: TableOption = None,
    schema: SchemaOption = None,
    null: NullOption = None,
    debug: DebugOption = False,
) -> None:
    """Print the plan of each SELECT in a script."""
    tables = read_tables(table)
    schemas = read_schemas(schema, tables)
    with reporting(debug):
        from ids.plan import explain as lines_of
        from ids.spark.preflight import steps_of

        script = read_script(query)
        for step in steps_of(script, tables, Declared.of(schemas, null or (), tables)):
            if step.plan is not None:
                print_lines(lines_of(step.plan), Console())
