"""The core to a checkpoint and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ids.engine.attending import attend
from ids.engine.core import CONTENT, Core
from ids.engine.incoming import Schema
from ids.engine.settings import Settings
from ids.model.expression import Expression
from ids.model.scale import Scale
from ids.model.table import Kind
from ids.state.checkpoint import load, save
from ids.state.enumerated import Enumerated
from ids.state.refined import Refined
from ids.state.sliding import Array
from ids.state.summaries import Summaries

__all__ = ["read_core", "write_core"]

Kinds = Mapping[str, Kind]
Build = Callable[
    [
        Callable[[Kinds], dict[str, Expression]],
        Callable[[Kinds], tuple[Expression, ...]],
        Callable[[Core], Mapping[str, Expression]],
        Settings,
    ],
    Core | None,
]


def write_core(path: str | Path, facts: Mapping[str, Any], core: Core | None) -> None:
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
    retained = core.retained
    if retained is not None:
        names = [name for name in retained.rows.names if name != CONTENT]
        arrays.update({f"row {name}": retained.rows[name] for name in names})
    sampler = core.sampler
    if sampler is not None:
        arrays.update({f"sample {name}": array for name, array in sampler.arrays().items()})
    about = {
        "sample": None if sampler is None else sampler.facts(),
        "kinds": {name: kind.value for name, kind in core.schema.kinds.items()},
        "order_by": core.schema.order_by,
        "rows": core.rows,
        "scales": [asdict(s.scale) for s in core.measures],
        "rounded": sorted(core.rounded),
        "refined": isinstance(core.membership, Refined),
        "retains": retained is not None,
        "raw": core.has_raw,
        "dictionaries": {} if retained is None else retained.dictionaries(),
    }
    save(path, {**facts, "core": about}, arrays)


def read_core(path: str | Path) -> tuple[dict[str, Any], Build]:
    """The engine's facts, and a way to build its core once conditions can be bound."""
    facts, arrays = load(path)
    about = facts["core"]

    def build(
        bind: Callable[[Kinds], dict[str, Expression]],
        measures: Callable[[Kinds], tuple[Expression, ...]],
        targets: Callable[[Core], Mapping[str, Expression]],
        settings: Settings,
    ) -> Core | None:
        if about is None:
            return None
        kinds = {name: Kind(value) for name, value in about["kinds"].items()}
        schema = Schema(kinds, measures(kinds), about["order_by"])
        core = Core(schema, bind(kinds), retain=about["retains"], raw=about["raw"])
        core.rows = about["rows"]
        core.rounded = set(about["rounded"])
        core.measures = [_summaries(n, s, arrays) for n, s in enumerate(about["scales"])]
        if not about["refined"]:
            core.membership = Enumerated(targets(core))
        elif isinstance(core.membership, Refined):
            truths, live = arrays["truths"].view(np.int8), arrays["live"].view(np.int64)
            core.membership.preload(truths, live)
        if core.retained is not None:
            core.retained.adopt(about["dictionaries"], _part(arrays, "row "))
        attend(core, settings)
        if core.index is not None and core.retained is not None:
            core.index.follow(core.retained)
        if core.sampler is not None:
            core.sampler.adopt(about["sample"], _part(arrays, "sample "))
        return core

    return facts, build


def _part(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def _summaries(number: int, scale: dict[str, Any], arrays: Mapping[str, Array]) -> Summaries:
    made = Summaries(Scale(**{**scale, "centre": tuple(scale["centre"])}), 0)
    made.window = arrays[f"window {number}"].astype(np.int64)
    made.marginals = arrays[f"marginals {number}"].astype(np.int64)
    made.atoms = arrays[f"atoms {number}"].astype(np.int64)
    return made
