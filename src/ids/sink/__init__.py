"""Where results go out: Parquet, CSV, JSON Lines, a directory, a stream."""

from ids.sink.target import check
from ids.sink.writing import stream_csv, write

__all__ = ["check", "stream_csv", "write"]
