"""The index over the retained window: rows by the values of chosen columns, block by block."""

from ids.state.index.asking import Access, Prepared
from ids.state.index.following import Index

__all__ = ["Access", "Index", "Prepared"]
