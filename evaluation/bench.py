"""What a step works with: workloads, a place to write, Spark, engines and their conditions."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

import ids
from evaluation.step import SUBJECTS, Size, Subject
from evaluation.workloads import Recipe, recipe
from evaluation.workloads.manifest import Manifest, prepare, standing
from ids.errors import SourceError
from ids.model import Literal, render

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CORES = 2  # of a step that does not ask how Spark scales
_recipe_of = cache(lambda trips: recipe("nyc", files=trips))  # hashes them


@dataclass(frozen=True)
class Bench:
    """A step's surroundings: the workloads, made once and found again by their manifests, and more.

    ``trips`` are the TLC's files and, last, the zone table; without them there is no nyc.
    """

    size: Size
    directory: Path  # of the workloads
    trips: tuple[Path, ...] = ()
    scratch: Path = Path()  # a directory of the step's own, removed when it is done
    said: Callable[[float], None] = lambda _: None  # told how much is done, from 0 to 1

    @property
    def real(self) -> Subject:
        """The real stream, or where no trips were given, the one that is skewed most like it."""
        return SUBJECTS["nyc" if self.trips else "auction"]

    def missing(self, workload: str) -> str | None:
        """Why a workload cannot be had; None if it can."""
        if workload == "nyc" and not self.trips:
            return "no taxi trips were given; name the TLC's files with --taxi"
        return None

    def recipe(self, workload: str) -> Recipe:
        if why := self.missing(workload):
            raise SourceError(f"{workload} cannot be had: {why}")
        if workload == "nyc":
            return _recipe_of(self.trips)
        return recipe(workload, rows=self.size.of(quick=SUBJECTS[workload].quick_rows, full=None))

    def place(self, workload: str) -> Path:
        """Where a workload lies, or will: another recipe, another place."""
        told = hashlib.sha256(repr(self.recipe(workload)).encode()).hexdigest()
        return self.directory / f"{workload}-{told[:16]}"

    def prepare(self, workloads: Iterable[str], begun: Callable[[str], None]) -> None:
        """Make those that are not there yet, in one Spark session; the others are checked."""
        wanted = [name for name in workloads if self.missing(name) is None]
        absent = [name for name in wanted if standing(self.recipe(name), self.place(name)) is None]
        if absent:
            with session() as spark:
                for name in absent:
                    begun(name)
                    prepare(spark, self.recipe(name), self.place(name), self.trips)

    def events(self, subject: Subject, rows: int | None = None) -> pa.Table:
        """The rows of a workload, text as dictionaries; a short one is repeated, later in time."""
        directory = self.place(subject.workload)
        manifest = Manifest.read(directory)
        texts = [name for name, kind in manifest.schema.items() if kind == "string"]
        pieces = [
            pa.parquet.read_table(directory / path, columns=subject.columns, read_dictionary=texts)
            for path in manifest.files
        ]
        whole = pa.concat_tables(pieces).unify_dictionaries().combine_chunks()
        if rows is None:
            return whole
        times, kind = whole["event_time"].to_numpy(), whole["event_time"].type
        copies = [
            whole.set_column(0, "event_time", pa.array(times + k * (times[-1] - times[0]), kind))
            for k in range(-(-rows // whole.num_rows))
        ]
        return pa.concat_tables(copies).slice(0, rows).combine_chunks()

    def rng(self, name: str) -> np.random.Generator:
        """Random numbers that depend on the name alone."""
        return np.random.default_rng(zlib.crc32(name.encode()))


@contextmanager
def session(cores: int | None = None) -> Iterator[SparkSession]:
    """A Spark session on this machine; Java outlives it, so that the next one starts warm."""
    from ids.spark import local_session, translated

    with translated(), local_session(f"local[{cores or '*'}]") as spark:
        yield spark


def to_nowhere(frame: DataFrame) -> None:
    """Compute every row, and write none."""
    frame.write.format("noop").mode("overwrite").save()


def registered(engine: ids.Engine, conditions: Mapping[str, str]) -> ids.Engine:
    """The same engine, with these predicates by name."""
    for name, condition in conditions.items():
        engine.register(name, condition)
    return engine


def registering(conditions: Mapping[str, str], stream: str) -> str:
    """The lines of a script that register the same predicates on a stream."""
    return "\n".join(
        f"REGISTER PREDICATE {name} AS ({condition}) ON {stream};"
        for name, condition in conditions.items()
    )


def filled(engine: ids.Engine, events: pa.Table, batch: int) -> ids.Engine:
    """The same engine, after it was given the rows, so many at a time."""
    for first in range(0, events.num_rows, batch):
        engine.ingest(events.slice(first, batch))
    return engine


def as_text(events: pa.Table) -> pa.Table:
    """The same rows; a slide of them brings its own text, not that of every row of the stream."""
    return pa.table({name: plain(events[name]) for name in events.column_names})


def plain(column: pa.ChunkedArray) -> pa.Array:
    """The same values in one piece, without a dictionary."""
    joined = column.combine_chunks()
    return joined.dictionary_decode() if pa.types.is_dictionary(joined.type) else joined


def literal(value: str | int | float) -> str:
    """A value as it is written in a condition."""
    return render(Literal(value))


def equality(name: str, value: str | int | float) -> str:
    """The condition that a column has this value."""
    return f"{name} = {literal(value)}"


def frequent(events: pa.Table, name: str) -> list[tuple[Any, int]]:
    """The values of a column and their rows, the most frequent first; NULL is none."""
    counted = pc.value_counts(plain(events[name]).drop_null()).to_pylist()
    pairs = [(entry["values"], entry["counts"]) for entry in counted]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


def where(column: pa.Array, value: object) -> npt.NDArray[np.bool_]:
    """On which rows a plain column has this value; NULL never does."""
    return np.asarray(pc.fill_null(pc.equal(column, pa.scalar(value, column.type)), False))
