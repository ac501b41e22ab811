"""A column of a Spark table as IDS reads it: SQL text, and what the text gives."""

from __future__ import annotations

from dataclasses import dataclass

from ids.model.table import Kind

__all__ = ["Typed"]


@dataclass(frozen=True, slots=True)
class Typed:
    """SQL text and what it gives; ``kind`` is None for NULL, ``whole`` says BIGINT for a number."""

    text: str
    kind: Kind | None
    whole: bool = False

    @property
    def type(self) -> str:
        """The Spark type of the text."""
        if self.kind is Kind.NUMBER:
            return "bigint" if self.whole else "double"
        names = {Kind.TEXT: "string", Kind.BOOLEAN: "boolean", Kind.TIME: "bigint"}
        return "boolean" if self.kind is None else names[self.kind]
