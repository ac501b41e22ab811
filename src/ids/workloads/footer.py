"""The footer of a Parquet file, put into the one order that does not change.

Parquet's Java writer lists a column's encodings in the order of a hash set of enums, which differs
from one JVM to the next. The list means a set: sorting it makes the bytes the same everywhere. The
footer is a struct of Thrift's compact protocol; each entry of the list is one byte of it.
"""

from __future__ import annotations

import os
from pathlib import Path

from ids.errors import SourceError

__all__ = ["sort_encodings"]

_MAGIC = b"PAR1"
# FileMetaData.row_groups[].columns[].meta_data.encodings, by their field numbers
_ENCODINGS = (4, 1, 3, 2)
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12


def sort_encodings(file: Path) -> None:
    """Sort the encodings of each column chunk where they stand; no byte moves but those."""
    with file.open("r+b") as stream:
        stream.seek(-8, os.SEEK_END)
        tail = stream.read(8)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != _MAGIC or length + 12 > file.stat().st_size:
            raise SourceError(f"{file} is not whole: it has no Parquet footer; prepare it again")
        stream.seek(-8 - length, os.SEEK_END)
        footer = bytearray(stream.read(length))
        _Walk(footer).struct(())
        stream.seek(-8 - length, os.SEEK_END)
        stream.write(footer)


class _Walk:
    """One pass over a struct of Thrift's compact protocol, knowing at each value its path."""

    def __init__(self, data: bytearray) -> None:
        self.data = data
        self.at = 0

    def struct(self, path: tuple[int, ...]) -> None:
        field = 0
        while header := self._byte():
            step, kind = header >> 4, header & 15
            field = field + step if step else self._zigzag()
            if kind not in (_TRUE, _FALSE):  # a Boolean field is its own kind, and has no bytes
                self._value(kind, (*path, field))

    def _value(self, kind: int, path: tuple[int, ...]) -> None:
        if kind == _STRUCT:
            self.struct(path)
        elif kind in (_LIST, _SET):
            self._list(path)
        elif kind == _MAP:
            self._map(path)
        elif kind == _BINARY:
            length = self._varint()  # first: it moves self.at itself
            self.at += length
        elif kind == _DOUBLE:
            self.at += 8
        elif kind in (_TRUE, _FALSE, _BYTE):
            self.at += 1
        else:
            self._varint()

    def _list(self, path: tuple[int, ...]) -> None:
        header = self._byte()
        size, kind = header >> 4, header & 15
        if size == 15:
            size = self._varint()
        begin = self.at
        for _ in range(size):
            self._value(kind, path)
        if path == _ENCODINGS:
            self.data[begin : self.at] = sorted(self.data[begin : self.at])

    def _map(self, path: tuple[int, ...]) -> None:
        size = self._varint()
        kinds = self._byte() if size else 0
        for _ in range(size):
            self._value(kinds >> 4, path)
            self._value(kinds & 15, path)

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def _zigzag(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)
