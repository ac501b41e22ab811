"""An engine's core written to a checkpoint and read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ids.engine.batches import Schema
from ids.engine.core import Core, Registrations, bind_conditions
from ids.engine.settings import Settings
from ids.model import Expression, Kind, Scale
from ids.predicates import bind_measure
from ids.state import Array, Enumerated, Refined, Summaries, save


def write_engine(path: str | Path, facts: Mapping[str, Any], core: Core | None) -> None:
    """Facts of the engine, and everything its core holds."""
    if core is None:
        save(path, {**facts, "core": None}, {})
        return
    arrays: dict[str, Array] = {}
    for number, summaries in enumerate(core.measures):
        arrays[f"window {number}"] = summaries.window
        arrays[f"marginals {number}"] = summaries.marginals
        arrays[f"atoms {number}"] = summaries.atoms
    if isinstance(core.membership, Refined):
        arrays["live"] = core.membership.live
        arrays["truths"] = core.membership.refinement.truths[core.membership.live]
    arrays.update({f"row {name}": array for name, array in core.retained.arrays().items()})
    sample = core.sample
    if sample is not None:
        arrays.update({f"sample {name}": array for name, array in sample.arrays().items()})
    about = {
        "sample": None if sample is None else sample.facts(),
        "kinds": {name: kind.value for name, kind in core.schema.kinds.items()},
        "order_by": core.schema.order_by,
        "rows": core.rows,
        "scales": [asdict(s.scale) for s in core.measures],
        "rounded": sorted(core.rounded),
        "refined": isinstance(core.membership, Refined),
        "dictionaries": core.retained.dictionaries(),
    }
    save(path, {**facts, "core": about}, arrays)


def restore_core(
    about: Mapping[str, Any],
    arrays: Mapping[str, Array],
    settings: Settings,
    measures: Mapping[str, Expression],
    registered: Registrations,
) -> Core:
    """The core of a checkpoint, by the facts and arrays that ``write_engine`` has written."""
    kinds = {name: Kind(value) for name, value in about["kinds"].items()}
    bound = tuple(bind_measure(measure, kinds) for measure in measures.values())
    schema = Schema(kinds, bound, about["order_by"])
    core = Core(schema, bind_conditions(registered.conditions, kinds), settings)
    membership: Refined | Enumerated
    if about["refined"]:
        membership = Refined(core.predicates)
        membership.preload(arrays["truths"].view(np.int8), arrays["live"].view(np.int64))
    else:
        membership = Enumerated(registered.bind_targets(core))
    summaries = [_summaries(n, scale, arrays) for n, scale in enumerate(about["scales"])]
    core.restore(
        about["rows"], about["rounded"], summaries, membership, about["dictionaries"],
        _part(arrays, "row "),
    )  # fmt: skip
    if core.sample is not None:
        core.sample.restore(about["sample"], _part(arrays, "sample "))
    return core


def _part(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def _summaries(number: int, scale: dict[str, Any], arrays: Mapping[str, Array]) -> Summaries:
    window, marginals, atoms = (
        arrays[f"{name} {number}"].astype(np.int64) for name in ("window", "marginals", "atoms")
    )
    own = Scale(**{**scale, "centre": tuple(scale["centre"])})
    return Summaries.restored(own, window, marginals, atoms)
