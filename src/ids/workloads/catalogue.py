"""The workloads by name, and the recipe that fixes every byte of one."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ids.errors import SourceError, UnknownNameError
from ids.source.folder import find_files

__all__ = ["SEED", "WORKLOADS", "Ingredient", "Recipe", "Workload", "ingredients", "recipe"]

SEED = 20_260_302
_EDITION = 1  # to be raised when the same recipe would give other events
_ZONES = "taxi_zone_lookup.csv"


class Workload(NamedTuple):
    """One of the paper's four; ``rows`` is None where they come from files."""

    name: str
    rows: int | None
    summary: str


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload(
            "synthetic",
            2_000_000,
            "Poisson arrivals, lognormal latency, a planted 4x incident over the middle 4 %",
        ),
        Workload("stress", 400_000, "the same requests with latency of mean 1e9, deviation 1e-3"),
        Workload("auction", 1_500_000, "NEXMark-style bids: hot auctions, hot channels, Zipf"),
        Workload("nyc", None, "TLC taxi trips, yellow or green, from files given with --from"),
    )
}


@dataclass(frozen=True)
class Ingredient:
    """A file that a workload is made from: its name and the SHA-256 of its bytes."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Recipe:
    """What fixes every byte of a workload: the same recipe, the same events."""

    name: str
    seed: int = SEED
    rows: int | None = None
    sources: tuple[Ingredient, ...] = ()
    edition: int = _EDITION

    @property
    def known_rows(self) -> int:
        """The rows to be generated."""
        if self.rows is None:
            raise SourceError(f"{self.name} does not say how many rows it is to have; give rows")
        return self.rows

    def facts(self) -> dict[str, Any]:
        """As a manifest keeps it."""
        return {**asdict(self), "sources": [asdict(source) for source in self.sources]}


def recipe(
    name: str, seed: int | None = None, rows: int | None = None, files: tuple[Path, ...] = ()
) -> Recipe:
    """The recipe of a workload; refuses what it cannot take."""
    known = {n.lower(): n for n in WORKLOADS}
    if name.lower() not in known:
        raise UnknownNameError("workload", name, WORKLOADS)
    workload = WORKLOADS[known[name.lower()]]
    if workload.rows is None:
        if rows is not None or seed is not None:
            raise SourceError(f"{workload.name} takes its rows from files; drop --rows and --seed")
        if not files:
            raise SourceError(f"{workload.name} is made from files; name them with --from")
        return Recipe(workload.name, 0, None, tuple(_ingredient(file) for file in files))
    if files:
        raise SourceError(f"{workload.name} is generated, not read; drop --from")
    return Recipe(
        workload.name, SEED if seed is None else seed, workload.rows if rows is None else rows
    )


def ingredients(paths: list[Path], zones: Path | None) -> tuple[Path, ...]:
    """The trip files that ``paths`` mean, in order of their names, and last the zone table.

    Without ``zones`` the table is looked for beside the files and one directory up.
    """
    if not paths:
        if zones is not None:
            named = "--from (python -m evaluation: --taxi)"
            raise SourceError(f"--zones are those of trips; name the trips with {named}")
        return ()
    files = [file for path in paths for file in _trip_files(path)]
    files.sort(key=lambda file: file.name)
    if zones is None:
        places = [folder for file in files for folder in (file.parent, file.parent.parent)]
        found = (place / _ZONES for place in places)
        zones = next((table for table in found if table.is_file()), None)
    if zones is None:
        raise SourceError(
            f"there is no {_ZONES} beside the trips; name the zone table with --zones"
        )
    return (*files, zones.expanduser())


def _trip_files(path: Path) -> list[Path]:
    format_, files = find_files(path)
    if format_ != "parquet":
        raise SourceError(f"{path} is no Parquet; give trips as the TLC publishes them")
    return [file.absolute() for file in files]


def _ingredient(file: Path) -> Ingredient:
    try:
        with file.open("rb") as stream:
            return Ingredient(file.name, hashlib.file_digest(stream, "sha256").hexdigest())
    except OSError as error:
        raise SourceError(f"cannot read {file}: {error.strerror}") from error
