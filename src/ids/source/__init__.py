"""Where tables come in: files and what lies in memory, as columns."""

from ids.source.declared import Declared
from ids.source.opening import open_table
from ids.source.retyped import misread_of, unfit_rows
from ids.source.table import Source

__all__ = ["Declared", "Source", "misread_of", "open_table", "unfit_rows"]
