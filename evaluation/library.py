"""The workloads of a run: made by the Spark jobs once, found again by their manifests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path

from evaluation.records import make_directory
from evaluation.sessions import session
from evaluation.size import Size
from evaluation.subject import SUBJECTS
from evaluation.workloads import Recipe, recipe
from evaluation.workloads.manifest import Manifest, standing
from ids.errors import SourceError

__all__ = ["Library"]


class Library:
    """A directory with a prepared workload for each recipe.

    directory  where they are kept; runs may share one
    trips      the TLC's trip files and, last, the zone table; without them there is no nyc
    """

    def __init__(self, directory: Path, size: Size, trips: tuple[Path, ...] = ()) -> None:
        self.directory = directory
        self.size = size
        self.trips = trips

    def missing(self, workload: str) -> str | None:
        """Why a workload cannot be had; None if it can."""
        if workload == "nyc" and not self.trips:
            return "no taxi trips were given; name the TLC's files with --taxi"
        return None

    def named(self, workload: str) -> str:
        """The workload itself; for ``real`` nyc, or where no trips were given, auction."""
        if workload != "real":
            return workload
        return "nyc" if self.missing("nyc") is None else "auction"

    def place(self, workload: str) -> Path:
        """Where a workload lies, or will."""
        return self.directory / f"{workload}-{self._spelled(workload)}"

    def seal(self, workload: str) -> str:
        """The hash of what lies there: another workload, another record."""
        return Manifest.read(self.place(workload)).sha256

    def prepare(
        self, workloads: Iterable[str], begun: Callable[[str], None] = lambda _: None
    ) -> None:
        """Make those that are not there yet, in one Spark session; the others are checked."""
        wanted = [name for name in workloads if self.missing(name) is None]
        if wanted:
            make_directory(self.directory)
        absent = [w for w in wanted if standing(self._recipes[w], self.place(w)) is None]
        if not absent:
            return
        from evaluation.workloads.manifest import prepare

        with session() as spark:
            for name in absent:
                begun(name)
                files = self._trips if name == "nyc" else ()
                prepare(spark, self._recipes[name], self.place(name), files)

    @property
    def months(self) -> list[str]:
        """The trip files that nyc is made from, by their names."""
        return [path.name for path in self._trips[:-1]] if self.trips else []

    @cached_property
    def _trips(self) -> tuple[Path, ...]:
        """Those that this size reads: a quick run takes the first month."""
        *months, zones = self.trips
        return (*self.size.of(quick=months[:1], full=months), zones)

    @cached_property
    def _recipes(self) -> dict[str, Recipe]:
        return {name: self._recipe(name) for name in SUBJECTS if self.missing(name) is None}

    def _recipe(self, workload: str) -> Recipe:
        if workload == "nyc":
            return recipe("nyc", files=self._trips)
        rows = self.size.of(quick=SUBJECTS[workload].quick_rows, full=None)
        return recipe(workload, rows=rows)

    def _spelled(self, workload: str) -> str:
        """What tells one recipe of a workload from another."""
        if (why := self.missing(workload)) is not None:
            raise SourceError(f"{workload} cannot be had: {why}")
        made = self._recipes[workload]
        if made.sources:
            every = "".join(made.sources)
            return hashlib.sha256(every.encode()).hexdigest()[:16]
        return f"{made.rows}-{made.seed}-{made.edition}"
