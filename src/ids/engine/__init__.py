"""The rooms wired together: the incremental engine, and whole scripts over tables."""

from ids.engine.script import Result, run_script, sql

__all__ = ["Result", "run_script", "sql"]
