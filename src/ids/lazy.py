"""Names of a package that are imported on first use, so that importing it costs next to nothing.

A package says ``__getattr__, __dir__ = lazy(__name__)`` and has its imports under ``if
TYPE_CHECKING``: type checkers take the names from there, and so does ``lazy``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def lazy(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package."""

    @cache
    def modules() -> dict[str, str]:
        """The module of each name; read from the package's source when a name is first missed."""
        import ast
        import linecache  # which also reads a package in a zip file

        module = sys.modules[package]
        source = "".join(linecache.getlines(module.__file__ or "", vars(module)))
        return {
            name.name: statement.module
            for block in ast.parse(source).body
            if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
            for statement in block.body
            if isinstance(statement, ast.ImportFrom) and statement.module
            for name in statement.names
        }

    def __getattr__(name: str) -> Any:
        if name not in modules():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(modules()[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules()})

    return __getattr__, __dir__
