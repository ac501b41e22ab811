"""docs/api.md is the reference of the Python API, made from docstrings and signatures.

``python -m tests.architecture.test_api_reference`` writes the page anew.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import ids
from tests.architecture.source import ROOT

PAGE = ROOT / "docs" / "api.md"
HEAD = """# Python API

Made from the docstrings: `help(ids.sql)` shows the same text. Every error is an `ids.IdsError`.
"""
ON_SPARK = (
    "sql",
    "sql_all",
    "start",
    "Stream",
    "StreamProgress",
    "ask",
    "Reply",
    "status",
    "Status",
)


def entries() -> Iterator[tuple[str, Any]]:
    """Every public name and what it stands for: ``ids`` first, then ``ids.spark``."""
    for name in ids.__all__:
        if name != "spark":
            yield f"ids.{name}", getattr(ids, name)
    for name in ON_SPARK:
        yield f"ids.spark.{name}", getattr(ids.spark, name)


def section(name: str, found: Any) -> Iterator[str]:
    """A heading, the signature and the docstring; for a class, each public member, too."""
    yield f"\n## {name}\n"
    yield from block(name, found)
    if not inspect.isclass(found):
        return
    for member, own in vars(found).items():
        plain = inspect.unwrap(getattr(own, "fget", None) or getattr(own, "__func__", own))
        if not member.startswith("_") and inspect.isfunction(plain):
            yield f"\n### {name}.{member}\n"
            yield from block(member, plain, isinstance(own, property))


def block(name: str, found: Any, is_property: bool = False) -> Iterator[str]:
    """The signature and the docstring as ``help`` shows them."""
    text = inspect.getdoc(found)
    assert text, f"{name} has no docstring"
    try:
        called = "" if is_property else str(inspect.signature(found))
    except ValueError:  # a built-in constructor has none
        called = ""
    yield from ("```text", f"{name.rpartition('.')[2]}{called}", "", text, "```")


def written() -> str:
    """The page."""
    return HEAD + "".join(f"{line}\n" for entry in entries() for line in section(*entry))


def test_the_page_says_what_the_docstrings_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == written(), (
        "run python -m tests.architecture.test_api_reference"
    )


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
