"""open_table: anything tabular becomes a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ids.model.place import local_path
from ids.model.table import Table
from ids.source.files import open_files
from ids.source.memory import from_memory
from ids.source.retyped import retyped
from ids.source.table import Source, TableSource

__all__ = ["open_table"]


def open_table(
    data: object, name: str, columns: Mapping[str, str] = {}, nulls: Sequence[str] = ()
) -> Source:
    """The table ``name`` of a script, from a path or from what lies in memory.

    Paths: Parquet, CSV, JSON Lines, or a directory of files of one of these formats (in name
    order). In memory: a pyarrow Table, RecordBatch or RecordBatchReader, a pandas or Polars
    DataFrame, anything that speaks the Arrow C stream, a dict of arrays or lists, a model Table.
    A timestamp without a zone is UTC. NaN is a value, not NULL, except in a pandas DataFrame.
    ``columns`` declares types of some columns, and ``nulls`` texts of text files that mean NULL.

    >>> open_table({"latency": [1.5, None]}, "events").read(["latency"]).columns["latency"].valid
    array([ True, False])
    """
    if isinstance(data, str | Path):
        return retyped(open_files(local_path(data), columns, nulls), columns, str(data))
    source = TableSource(data) if isinstance(data, Table) else from_memory(data, name)
    return retyped(source, columns, f"table {name!r}")
