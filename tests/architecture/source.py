"""The package as these tests read it: files and syntax trees, nothing imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

__all__ = ["MODULES", "ROOT", "SRC", "documents", "imports", "parse", "subpackages"]

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
MODULES = sorted(path.relative_to(SRC).as_posix() for path in SRC.rglob("*.py"))


def parse(module: str) -> ast.Module:
    """The syntax tree of one module, named by its path under src."""
    return ast.parse((SRC / module).read_text(encoding="utf-8"), filename=module)


def imports(module: str) -> Iterator[tuple[int, str]]:
    """The line and the dotted name of whatever a module imports, wherever in it that stands.

    ``from a.b import c`` imports a.b.c where c is a module, and a.b where it is a name of it.
    """
    for node in ast.walk(parse(module)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, each.name) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{module}: imports are absolute"
            for each in node.names:
                below = (SRC / node.module.replace(".", "/") / each.name).with_suffix(".py")
                module_below = below.is_file() or below.with_suffix("").is_dir()
                yield node.lineno, f"{node.module}.{each.name}" if module_below else node.module


def subpackages() -> set[str]:
    """The packages and modules directly under ``ids``."""
    found = {path.parent.name for path in (SRC / "ids").glob("*/__init__.py")}
    return found | {path.stem for path in (SRC / "ids").glob("*.py") if path.stem != "__init__"}


def documents(*names: str) -> str:
    """The text of those Markdown files that exist (all of README and docs when none is named)."""
    paths = [ROOT / name for name in names] or [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return "\n".join(path.read_text(encoding="utf-8") for path in paths if path.is_file())
