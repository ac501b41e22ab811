"""The bugs of ``bugs.toml``: a slip in one file each, and the tests expected to see it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Bug", "load"]

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Bug:
    """A slip: ``new`` in the place of ``old``, which stands once in ``file`` (below src/ids).

    first  the test file or directory expected to fail
    """

    name: str
    file: str
    old: str
    new: str
    first: str

    @property
    def path(self) -> Path:
        """The file, from the root of a tree."""
        return Path("src/ids", self.file)

    @property
    def package(self) -> str:
        """The package it is planted in: ``kernels``, ``spark/streaming``, ``errors``."""
        return self.path.parent.relative_to("src/ids").as_posix().strip(".") or self.path.stem

    def planted(self, text: str) -> str:
        """The text of the file with the bug in it; refused where that is not one place."""
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"{self.name!r}: its old text stands {found} times in {self.path}")
        return text.replace(self.old, self.new)


def load() -> list[Bug]:
    """Every bug, in the order of the file."""
    content = Path(__file__).with_name("bugs.toml").read_text(encoding="utf-8")
    return [Bug(**entry) for entry in tomllib.loads(content)["bug"]]
