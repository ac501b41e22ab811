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
from ids.errors import SourceError
from ids.model.place import is_remote
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
        from ids.spark.location import may_be_table
        from ids.spark.preflight import steps_of
        from ids.spark.topic import is_kafka

        script = read_script(query)
        for place in tables.values():
            if (is_remote(place) and not is_kafka(place)) or may_be_table(place):
                raise SourceError(
                    f"{place} is reached through Spark; put EXPLAIN before the SELECT, and run it "
                    "with ids run"
                )
        for step in steps_of(script, tables, Declared.of(schemas, null or (), tables)):
            if step.plan is not None:
                print_lines(lines_of(step.plan), Console())
