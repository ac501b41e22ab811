"""The live engine: rows come in batch by batch, questions are answered in between."""

from ids.engine.engine import Engine

__all__ = ["Engine"]
