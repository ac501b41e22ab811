"""standing: what already lies where a workload is to be made."""

from __future__ import annotations

import os
from pathlib import Path

from ids.errors import SourceError
from ids.workloads.catalogue import Recipe
from ids.workloads.manifest import Manifest, differences

__all__ = ["standing"]


def standing(recipe: Recipe, out: str | Path) -> Manifest | None:
    """The workload that stands in ``out`` by this recipe, every hash checked; None if it is free.

    Anything else there is refused: a workload is written once.
    """
    directory = Path(out).expanduser().absolute()
    if not directory.parent.is_dir():
        raise SourceError(f"no such directory: {directory.parent}; make it first")
    if not os.access(directory.parent, os.W_OK):
        raise SourceError(f"cannot write into {directory.parent}; check its permissions")
    if not directory.exists() or (directory.is_dir() and not any(directory.iterdir())):
        return None
    if not directory.is_dir():
        raise SourceError(f"{directory} is a file; name a directory that is new")
    manifest = Manifest.read(directory)
    found = differences(directory)
    if found:
        raise SourceError(
            f"{directory} differs from its manifest ({found[0]}); remove it and prepare it again"
        )
    if dict(manifest.recipe) != recipe.facts():
        raise SourceError(
            f"{directory} holds another workload ({_said(manifest)}); give a new directory"
        )
    return manifest


def _said(manifest: Manifest) -> str:
    recipe = manifest.recipe
    return f"{recipe['name']}, seed {recipe['seed']}, {manifest.rows:,} rows"
