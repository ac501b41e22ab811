"""The refinement under change: predicates come and go, atoms split, merge, or are given up."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt

from ids.engine.core import Core
from ids.errors import StateError
from ids.kernels.scatter import add_rows
from ids.model.expression import Expression
from ids.state.enumerated import Enumerated
from ids.state.refined import Refined
from ids.state.retained import TAG
from ids.state.summaries import Summaries

__all__ = ["drop", "enumerate_targets", "recount", "refine", "refuse_unless_raw"]


def recount(core: Core) -> None:
    """Sum the rows inside from scratch: the slow, obvious state."""
    width = len(core.membership.names)
    core.measures = [Summaries(s.scale, width) for s in core.measures]
    if core.retained is not None and len(core.retained):
        core.membership.commit(core.measures, core.deltas(core.inside(), 1))


def refuse_unless_raw(core: Core) -> None:
    """A new predicate must be put to the rows inside; refused where they are not retained."""
    if not core.has_raw:
        raise StateError(
            "a predicate registered mid-stream needs the rows inside, and this engine retains "
            "none; register it before the stream starts, or make the engine with retain=True"
        )


def refine(core: Core, predicates: Mapping[str, Expression]) -> None:
    """Refine by other predicates: every row inside is looked at once, exactly."""
    _retag(core, Refined(predicates))
    core.predicates = dict(predicates)
    recount(core)


def _retag(core: Core, membership: Refined | Enumerated) -> None:
    if core.retained is not None and len(core.retained):
        core.retained.rows.put(TAG, membership.assign(core.retained.table()))
    core.membership = membership


def drop(core: Core, name: str, targets: Collection[str]) -> None:
    """Drop a predicate: atoms that differed only in it become one; no row is looked at.

    Where the atoms were given up they come back if the rows can be asked, and else only
    ``targets`` stay.
    """
    predicates = {n: e for n, e in core.predicates.items() if n != name}
    if isinstance(core.membership, Enumerated):
        if core.has_raw or not core.rows:
            refine(core, predicates)
        else:
            _keep_targets(core, core.membership, targets)
            core.predicates = predicates
        return
    old = core.membership
    fresh, mapping = old.without(name, predicates)
    if core.retained is not None and len(core.retained):
        core.retained.rows.put(TAG, mapping[core.retained.rows[TAG].view(np.uint32)])
    core.measures = [_merge(s, old, mapping, fresh) for s in core.measures]
    core.membership = fresh
    core.predicates = predicates


def _keep_targets(core: Core, old: Enumerated, targets: Collection[str]) -> None:
    kept = [t for t, name in enumerate(old.names) if name in targets]
    fresh = Enumerated({old.names[t]: old.targets[t] for t in kept})
    if core.retained is not None and len(core.retained):
        core.retained.rows.put(TAG, fresh.pack(old.unpack(core.retained.rows[TAG])[:, kept]))
    for summaries in core.measures:
        summaries.marginals = summaries.marginals[kept]
    core.membership = fresh


def _merge(
    summaries: Summaries, old: Refined, mapping: npt.NDArray[np.uint32], fresh: Refined
) -> Summaries:
    merged = Summaries(summaries.scale, len(fresh.names))
    delta = np.zeros((fresh.width, summaries.scale.words), np.int64)
    summaries.reserve(old.width)
    for atom in old.live:
        row = int(mapping[atom])
        add_rows(delta[row : row + 1], summaries.atoms[atom : atom + 1], merged.scale.layout)
    merged.add(delta, np.arange(fresh.width), fresh.holds())
    return merged


def enumerate_targets(
    core: Core, bound: Mapping[str, Expression], over_names: Mapping[str, Expression]
) -> None:
    """Give up the atoms and keep the named targets alone; the atoms still tell their sums.

    bound       each target over the table's columns
    over_names  the same targets over the registered names
    """
    assert isinstance(core.membership, Refined)
    old = core.membership
    targets = Enumerated(bound)
    held = old.judge(list(over_names.values()))
    if core.retained is not None and len(core.retained):
        packed = targets.pack(held)
        core.retained.rows.put(TAG, packed[core.retained.rows[TAG].view(np.uint32)])
    for summaries in core.measures:
        summaries.reserve(old.width)
        live = old.refinement.live()
        kept = [summaries.merged(live[held[live, t]]) for t in range(len(bound))]
        summaries.marginals = np.array(kept, np.int64).reshape(len(bound), -1)
        summaries.atoms = np.zeros((0, summaries.scale.words), np.int64)
    core.membership = targets
