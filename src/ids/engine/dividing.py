"""One predicate more: every live atom divides by it, and nothing else is disturbed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ids.engine.core import Core
from ids.kernels.scatter import add_rows
from ids.model.expression import Expression, columns_of
from ids.predicates.truth import truth
from ids.state.refined import Refined
from ids.state.retained import TAG
from ids.state.summaries import Summaries

__all__ = ["OUTCOMES", "divide"]

Words = npt.NDArray[np.int64]
OUTCOMES = 3  # NULL, FALSE, TRUE


class _Division(NamedTuple):
    """How the rows fall: a part is an old atom and an outcome of the new predicate.

    part    int64[n]  each row's part, 3 · atom + outcome
    parts   int64[p]  the parts that hold a row, ascending
    number  uint32[…] each part's place among them: its new atom
    common  the outcome of most rows
    """

    part: Words
    parts: Words
    number: npt.NDArray[np.uint32]
    common: int


def divide(core: Core, name: str, predicates: Mapping[str, Expression]) -> None:
    """Refine by ``name``, the last of the predicates: each row inside is looked at once.

    The rows of the rarer outcomes are summed; what is left of an atom is its rows of the common
    one. Sums are exact, so this is the state of a recount, to the bit.
    """
    assert core.retained is not None
    old = core.membership
    assert isinstance(old, Refined)
    fresh = Refined(predicates)
    division = _divided(core, old, predicates[name])
    if len(division.parts):
        atoms, outcomes = np.divmod(division.parts, OUTCOMES)
        said = (outcomes - 1).astype(np.int8)
        truths = np.concatenate([old.refinement.truths[atoms], said[:, None]], axis=1)
        fresh.preload(truths, np.arange(len(truths)))
        core.retained.rows.put(TAG, division.number[division.part])
    core.measures = [_parted(core, m, old, fresh, division) for m in range(len(core.measures))]
    core.membership = fresh
    core.predicates = dict(predicates)


def _divided(core: Core, old: Refined, condition: Expression) -> _Division:
    assert core.retained is not None
    said, atoms = np.zeros(0, np.int8), np.zeros(0, np.uint32)
    if len(core.retained):  # an empty window's tags may still be those of another membership
        said = truth(condition, core.retained.table(set(columns_of(condition))))
        atoms = core.retained.rows[TAG].view(np.uint32)
    outcome = said.astype(np.int64) + 1
    part = atoms * np.int64(OUTCOMES) + outcome
    counts = np.bincount(part, minlength=OUTCOMES * max(1, old.width))
    parts = np.flatnonzero(counts)
    number = np.zeros(len(counts), np.uint32)
    number[parts] = np.arange(len(parts), dtype=np.uint32)
    common = int(np.bincount(outcome, minlength=OUTCOMES).argmax())
    return _Division(part, parts, number, common)


def _parted(
    core: Core, measure: int, old: Refined, fresh: Refined, division: _Division
) -> Summaries:
    """One measure's sums, atom by atom, under the refinement with the new predicate."""
    before = core.measures[measure]
    before.reserve(old.width)
    after = Summaries(before.scale, len(fresh.names), fresh.width)
    rare = division.part % OUTCOMES != division.common
    digits, players = core.playing(measure)
    playing = rare & players if len(players) else rare
    tags = division.number[division.part]
    sums = after.tally(max(1, fresh.width), tags, digits, playing, 1)
    lost = after.tally(max(1, old.width), (division.part // OUTCOMES).astype(np.uint32),
                       digits, playing, -1)  # fmt: skip
    for number in np.flatnonzero(division.parts % OUTCOMES == division.common):
        atom = int(division.parts[number]) // OUTCOMES
        row = sums[number : number + 1]
        add_rows(row, before.atoms[atom : atom + 1], before.scale.layout)
        add_rows(row, lost[atom : atom + 1], before.scale.layout)
    after.add(sums[: fresh.width], np.arange(fresh.width), fresh.holds())
    return after
