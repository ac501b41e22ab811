"""The paper's workloads by name, and the recipe that fixes every event of one."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from ids.demo import SEED
from ids.errors import SourceError, UnknownNameError
from ids.source import find_files

WORKLOADS = {  # the rows that each has unless said, None where they come from files
    "synthetic": (2_000_000, "requests of a service, with a 4x incident in the middle 4 %"),
    "stress": (400_000, "the same requests with latency of mean 1e9, deviation 1e-3"),
    "auction": (1_500_000, "NEXMark-style bids: hot auctions, hot channels, Zipf"),
    "nyc": (None, "TLC taxi trips, yellow or green, from files given with --from"),
}
_ZONES = "taxi_zone_lookup.csv"


@dataclass(frozen=True)
class Recipe:
    """What fixes every event: a seed and the rows, or source files, as sha256sum lists them."""

    name: str
    seed: int = SEED
    rows: int = 0
    sources: list[str] = field(default_factory=list)
    edition: int = 1  # to be raised when the same recipe would give other events


def recipe(
    name: str, seed: int | None = None, rows: int | None = None, files: tuple[Path, ...] = ()
) -> Recipe:
    """The recipe of a workload; refuses what it cannot take."""
    own = name.lower()
    if own not in WORKLOADS:
        raise UnknownNameError("workload", name, WORKLOADS)
    usual, _ = WORKLOADS[own]
    if usual is None:
        if rows is not None or seed is not None:
            raise SourceError(f"{own} takes its rows from files; drop --rows and --seed")
        if not files:
            raise SourceError(f"{own} is made from files; name them with --from")
        return Recipe(own, 0, 0, [f"{sha256_of(file)}  {file.name}" for file in files])
    if files:
        raise SourceError(f"{own} is generated, not read; drop --from")
    return Recipe(own, SEED if seed is None else seed, usual if rows is None else rows)


def ingredients(paths: list[Path], zones: Path | None) -> tuple[Path, ...]:
    """The trip files that ``paths`` mean, by name, and last the zone table, if need be found."""
    if zones and not paths:
        raise SourceError("--zones are those of trips; name the trips with --from or --taxi")
    files: list[Path] = []
    for path in paths:
        format_, found = find_files(path)
        if format_ != "parquet":
            raise SourceError(f"{path} is no Parquet; give trips as the TLC publishes them")
        files += [file.absolute() for file in found]
    files.sort(key=lambda file: file.name)
    beside = (folder / _ZONES for file in files for folder in file.parents[:2])
    table = zones or next(filter(Path.is_file, beside), None)
    if files and table is None:
        raise SourceError(f"no {_ZONES} lies beside the trips; name the zone table with --zones")
    return (*files, table.expanduser()) if table else ()


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file's bytes."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise SourceError(f"cannot read {file}: {error.strerror}") from error
