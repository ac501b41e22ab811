"""Lazy imports: a package's names are imported on first use, so importing the package is cheap.

A package writes ``__getattr__, __dir__ = lazy(__name__)`` and lists its imports under ``if
TYPE_CHECKING``. Type checkers read the names from there, and so does ``lazy``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from ids.errors import missing_extra


def lazy(
    package: str, extra: str | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package.

    ``extra`` names the optional dependencies that the package requires, as in
    ``pip install 'ids-engine[extra]'``. If one of them is missing, the first use of a name that
    needs it raises ``MissingExtraError``.
    """

    @cache
    def modules() -> dict[str, str]:
        """Map each name to its module; parsed from the package's source on first use."""
        import ast
        import linecache  # also reads a package in a zip file

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
        try:
            found = getattr(import_module(modules()[name]), name)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if extra is None or missing in ("", "ids"):
                raise
            missing = "pyspark" if missing == "py4j" else missing  # py4j is installed with pyspark
            raise missing_extra(missing, extra) from error
        setattr(sys.modules[package], name, found)
        return found

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules()})

    return __getattr__, __dir__
