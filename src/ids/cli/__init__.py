"""The command line: one file a verb."""

from ids.cli.app import app, main

__all__ = ["app", "main"]
