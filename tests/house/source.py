"""The source as the house tests read it: files and syntax trees, nothing imported."""

from __future__ import annotations

import ast
from pathlib import Path

__all__ = ["MODULES", "ROOT", "SRC", "documents", "parse", "rooms"]

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
MODULES = sorted(path.relative_to(SRC).as_posix() for path in SRC.rglob("*.py"))


def parse(module: str) -> ast.Module:
    """The syntax tree of one module, named by its path under src."""
    return ast.parse((SRC / module).read_text(encoding="utf-8"), filename=module)


def rooms() -> set[str]:
    """The packages and modules directly under ``ids``."""
    found = {path.parent.name for path in (SRC / "ids").glob("*/__init__.py")}
    return found | {path.stem for path in (SRC / "ids").glob("*.py") if path.stem != "__init__"}


def documents(*names: str) -> str:
    """The text of those Markdown files that exist (all of README and docs when none is named)."""
    paths = [ROOT / name for name in names] or [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return "\n".join(path.read_text(encoding="utf-8") for path in paths if path.is_file())
