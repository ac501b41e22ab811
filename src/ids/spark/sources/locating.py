"""Which files a place means, and how Spark is told of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from ids.source.folder import FORMATS, find_files

__all__ = ["Location", "locate"]


class Location(NamedTuple):
    """The files of a table, in the order in which their rows count."""

    place: Path
    format: str
    files: list[Path]

    def load(
        self,
        session: SparkSession,
        members: Sequence[Path],
        schema: T.StructType,
        options: Mapping[str, str],
        *,
        stream: bool,
    ) -> DataFrame:
        """``members`` as a batch; as a stream the whole place, where files will arrive."""
        format_ = "json" if self.format == "jsonl" else self.format
        if not stream:
            reader = session.read.format(format_).schema(schema).options(**options)
            return reader.load([_literal(file) for file in members])
        suffixes = ",".join(suffix for suffix, known in FORMATS.items() if known == self.format)
        # a file that is still being copied under another name is not there yet
        options = {"pathGlobFilter": f"*{{{suffixes}}}", **options}
        stream_reader = session.readStream.format(format_).schema(schema).options(**options)
        return stream_reader.load(_literal(self.place))

    def has_odd_names(self) -> bool:
        """Whether Spark spells a file's name otherwise than its folder does (``a%20b.csv``)."""
        return any(re.search(r"[^\w.=-]", file.name, re.ASCII) for file in self.files)


def locate(place: str | Path) -> Location:
    """A file, or a directory of files of one format: what the in-process reader would take."""
    path = Path(place).expanduser().absolute()
    return Location(path, *find_files(path))


def _literal(path: Path) -> str:
    """Spark takes a path for a pattern."""
    return re.sub(r"([{}\[\]*?\\])", r"\\\1", str(path))
