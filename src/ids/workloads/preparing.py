"""prepare: a recipe becomes a directory that is either whole or not there."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from ids.errors import SourceError
from ids.workloads import auction, nyc, stress, synthetic
from ids.workloads.catalogue import Recipe
from ids.workloads.made import Made
from ids.workloads.manifest import EVENTS, MANIFEST, TRUTH, Manifest, take_stock
from ids.workloads.standing import standing
from ids.workloads.writing import quiet_session, write_events

__all__ = ["prepare"]

_GENERATORS: dict[str, Callable[[SparkSession, Recipe], Made]] = {
    "synthetic": synthetic.build,
    "stress": stress.build,
    "auction": auction.build,
}


def prepare(
    spark: SparkSession, recipe: Recipe, out: str | Path, files: Sequence[Path] = ()
) -> Manifest:
    """Make a workload in ``out``; what already stands there by the same recipe is left alone.

    The files are made in a hidden directory beside, which gets its name when all of it is on the
    disk; so ``out`` is whole or not there, whenever the run is ended.
    """
    directory = Path(out).expanduser().absolute()
    found = standing(recipe, directory)
    if found is not None:
        return found
    hidden = directory.with_name(f".{directory.name}.{os.getpid()}.tmp")
    shutil.rmtree(hidden, ignore_errors=True)
    try:
        hidden.mkdir()
        manifest = _fill(quiet_session(spark), recipe, files, hidden)
        _sync(hidden)
        hidden.rename(directory)
        _sync_one(directory.parent)
    except OSError as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(f"cannot write {directory}: {error.strerror}") from error
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    return manifest


def _fill(
    session: SparkSession, recipe: Recipe, files: Sequence[Path], directory: Path
) -> Manifest:
    made = nyc.build(session, files) if recipe.sources else _generate(session, recipe)
    write_events(made.events, directory / EVENTS)
    if made.truth is not None:
        text = json.dumps(made.truth, indent=2, ensure_ascii=False) + "\n"
        (directory / TRUTH).write_text(text, encoding="utf-8")
    made_by = {"ids": version("ids-engine"), "spark": pyspark.__version__}
    manifest = take_stock(directory, recipe.facts(), made_by)
    (directory / MANIFEST).write_text(manifest.text(), encoding="utf-8")
    return manifest


def _generate(session: SparkSession, recipe: Recipe) -> Made:
    return _GENERATORS[recipe.name](session, recipe)


def _sync(directory: Path) -> None:
    """Everything below on the disk, the names last."""
    for path in sorted(directory.rglob("*"), reverse=True):
        _sync_one(path)
    _sync_one(directory)


def _sync_one(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
