"""The rooms wired together: the incremental engine, and whole scripts over tables."""

from ids.engine.engine import Engine
from ids.engine.script import Result, run_script, sql, sql_all

__all__ = ["Engine", "Result", "run_script", "sql", "sql_all"]
