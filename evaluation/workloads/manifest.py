"""Workloads on disk: made whole or not at all, and checked against their manifests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet

from evaluation.workloads import Recipe, sha256_of
from ids.errors import SourceError
from ids.sink import check_directory, stream_csv, whole_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANIFEST = "manifest.json"
EVENTS = "events"
_BLOCK = 100_000  # rows of a generated file


@dataclass(frozen=True)
class Manifest:
    """A prepared workload: what it was made by, and what it holds."""

    recipe: Mapping[str, Any]
    rows: int
    schema: Mapping[str, str]  # columns and Arrow types
    contents: str  # the SHA-256 of the events as CSV: the same on every machine
    files: Mapping[str, str]  # the SHA-256 of each file by its path, in the order of their rows

    @property
    def sha256(self) -> str:
        """The hash of the recipe, the schema and the events: another workload, another hash."""
        facts = [self.recipe, self.rows, self.schema, self.contents]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    @classmethod
    def read(cls, directory: Path) -> Manifest:
        path = directory / MANIFEST
        if not path.exists():
            make = "python -m evaluation workload prepare"
            raise SourceError(f"{directory} holds no workload (no {MANIFEST}); make one: {make}")
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            facts = json.loads(path.read_text(encoding="utf-8"))
            said = facts.pop("sha256")
            if cls(**facts).sha256 == said:
                return cls(**facts)
        raise SourceError(f"{path} is altered or of another version; prepare the workload anew")


def prepare(
    spark: SparkSession, recipe: Recipe, directory: Path, files: Sequence[Path] = ()
) -> Manifest:
    """Make a workload with a Spark job, whole or not at all; the directory is free."""
    from evaluation.workloads.generated import GENERATORS
    from evaluation.workloads.nyc import trips
    from ids.demo.events import fixed_session, write_parts

    session = fixed_session(spark)
    with whole_directory(directory.absolute()) as hidden:
        make = GENERATORS.get(recipe.name)
        events = make(session, recipe.rows, recipe.seed, _BLOCK) if make else trips(session, files)
        write_parts(events, hidden / EVENTS)
        return take_stock(hidden, recipe)


def take_stock(directory: Path, recipe: Recipe) -> Manifest:
    """Write the manifest of the files that lie in ``directory`` now."""
    contents = hashlib.sha256()
    files, rows = _files(directory), 0
    for path in files:
        with pa.parquet.ParquetFile(directory / path) as file:
            schema = {field.name: str(field.type) for field in file.schema_arrow}
            rows += file.metadata.num_rows
            for batch in file.iter_batches():
                text = pa.BufferOutputStream()
                stream_csv(pa.Table.from_batches([batch]), text, header=False)
                contents.update(text.getvalue())
    hashes = {path: sha256_of(directory / path) for path in files}
    manifest = Manifest(asdict(recipe), rows, schema, contents.hexdigest(), hashes)
    facts = json.dumps({"sha256": manifest.sha256, **asdict(manifest)}, indent=2)
    (directory / MANIFEST).write_text(facts + "\n", encoding="utf-8")
    return manifest


def differences(directory: Path) -> list[str]:
    """What is not as the manifest says, a line each; empty if all is."""
    said = Manifest.read(directory).files
    here = {path: sha256_of(directory / path) for path in _files(directory)}
    found = [f"{path}: missing" for path in said.keys() - here.keys()]
    found += [f"{path}: extra" for path in here.keys() - said.keys()]
    found += [f"{path}: altered" for path in said if here.get(path, said[path]) != said[path]]
    return sorted(found)


def standing(recipe: Recipe, directory: Path) -> Manifest | None:
    """The workload that stands there by this recipe, every hash checked; None if it is free."""
    check_directory(directory)
    if not directory.exists() or not any(directory.iterdir()):
        return None
    manifest = Manifest.read(directory)
    if found := differences(directory):
        differs = f"{directory} differs from its manifest ({found[0]})"
        raise SourceError(f"{differs}; remove it and prepare it again")
    if manifest.recipe != asdict(recipe):
        said = f"{manifest.recipe['name']}, seed {manifest.recipe['seed']}, {manifest.rows:,} rows"
        raise SourceError(f"{directory} holds another workload ({said}); give a new directory")
    return manifest


def _files(directory: Path) -> list[str]:
    """Everything but the manifest, by its path in the directory."""
    files = (path for path in directory.rglob("*") if path.is_file() or path.is_symlink())
    return sorted({path.relative_to(directory).as_posix() for path in files} - {MANIFEST})
