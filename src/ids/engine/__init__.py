"""The live engine, which takes rows batch by batch and can be queried between batches."""

from ids.engine.engine import Engine

__all__ = ["Engine"]
