"""One file of a table: its schema is known, its columns are read when asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from ids.errors import SourceError
from ids.model.table import Kind
from ids.source.arrow import kind_of
from ids.source.folder import FilePath
from ids.source.memory import one_line

__all__ = ["ParquetPart", "Part", "TextPart"]


class Part(Protocol):
    """A file; ``absent_is_null`` where a column may be left out (a key in JSON)."""

    path: FilePath
    schema: pa.Schema
    rows: int
    absent_is_null: bool

    def read(self, columns: list[str]) -> pa.Table: ...


class TextPart:
    """A CSV or JSON Lines file, which is in memory already (its types are known only then)."""

    def __init__(self, path: FilePath, table: pa.Table, *, absent_is_null: bool) -> None:
        self.path = path
        self.schema: pa.Schema = table.schema
        self.rows: int = table.num_rows
        self.absent_is_null = absent_is_null
        self._table = table
        _refuse_repeats(path, self.schema)

    def read(self, columns: list[str]) -> pa.Table:
        return self._table.select(columns)


class ParquetPart:
    """A Parquet file: opening it reads the footer, reading it only the columns asked for."""

    absent_is_null = False

    def __init__(self, path: FilePath) -> None:
        self.path = path
        try:
            with self._open() as file:
                self.schema: pa.Schema = file.schema_arrow
                self.footer: pq.FileMetaData = file.metadata
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, error) from error
        self.rows: int = self.footer.num_rows
        _refuse_repeats(path, self.schema)

    def read(self, columns: list[str]) -> pa.Table:
        texts = [name for name in columns if kind_of(self.schema.field(name).type) is Kind.TEXT]
        try:
            try:
                return self._columns(columns, texts)
            except OSError as error:
                # Arrow makes no dictionary of text in the delta encodings of newer writers
                if "Not yet implemented" not in str(error):
                    raise
                return self._columns(columns, ())
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(self.path, error) from error

    def _columns(self, columns: list[str], dictionaries: Iterable[str]) -> pa.Table:
        with self._open(dictionaries) as file:
            # Arrow takes a name for a path too: 'a' would also bring 'a.b'
            return file.read(columns).select(columns)

    @contextmanager
    def _open(self, dictionaries: Iterable[str] = ()) -> Iterator[pq.ParquetFile]:
        """Text comes with its dictionary, as it lies in the file: nothing is hashed again."""
        # Arrow reads a file of this machine without Python
        place = nullcontext(self.path) if isinstance(self.path, Path) else self.path.open("rb")
        with (
            place as file,
            pq.ParquetFile(
                file, read_dictionary=list(dictionaries), coerce_int96_timestamp_unit="us"
            ) as opened,
        ):
            yield opened


def _refuse_repeats(path: FilePath, schema: pa.Schema) -> None:
    repeated = [name for name, times in Counter(schema.names).items() if times > 1]
    if repeated:
        raise SourceError(f"{path} has two columns {repeated[0]!r}; rename one")


def _unreadable(path: FilePath, error: BaseException) -> SourceError:
    if "footer" in str(error) or "Parquet file size is" in str(error):
        return SourceError(f"{path} is not a whole Parquet file; write it again")
    return SourceError(f"cannot read {path}: {one_line(error)}")
