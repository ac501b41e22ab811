"""Where tables come in: files and what lies in memory, as columns."""

from ids.source.opening import open_table
from ids.source.table import Source

__all__ = ["Source", "open_table"]
