"""APPROXIMATE: at each emit a sample of the window's rows, and the estimate it gives.

    the window's rows ─▶ the k largest and k smallest values, taken whole
                      └▶ of the others the first r by priority ─▶ estimate ± bound

A window of no more than r + 2·k rows is not sampled: its answer is the exact one, with no error.
Items that sample the same measure by as many rows share the drawing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ids.engine.answers import Answers
from ids.engine.contents import tie_breaks
from ids.engine.moments import moments_at
from ids.engine.rows import Measure
from ids.estimates import Drawn, Estimates, Parts, Whole, estimate
from ids.kernels.drawing import Keys, Taken, draw
from ids.kernels.threads import THREADS, side_by_side
from ids.plan import PlannedItem, SelectPlan

__all__ = ["Population", "estimated"]

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_BLOCK_ROWS = 2**19  # rows drawn for the emits of a block, all told
_NOBODY = np.zeros(0, np.int64)


class Population(NamedTuple):
    """Rows in window order, key by key, and the windows that are sampled of them.

    priority  int64[n]
    atoms     uint32[n]   the atom of each row
    held      bool[a, K]  on which atoms each predicate holds
    measures  the values of each measure; None for COUNT(*)
    arrived, expired  int64[e]  row bounds of each window
    sizes     int64[e]    the rows of each window (more than the bounds hold, where rows that no
                          sample can need were left out before)
    """

    priority: Integers
    atoms: npt.NDArray[np.uint32]
    held: npt.NDArray[np.bool_]
    measures: Sequence[Measure | None]
    arrived: Integers
    expired: Integers
    sizes: Integers


class _Drawing(NamedTuple):
    """What is drawn once for some items: ``measure`` is None where values do not matter."""

    measure: int | None
    size: int
    whole: int


class _Block(NamedTuple):
    """The rows drawn at some emits and those taken whole, emit by emit."""

    emits: Integers
    sample: Integers
    sample_starts: Integers
    whole: Integers
    whole_starts: Integers
    parts: Parts


def estimated(plan: SelectPlan, rows: Population, answers: Answers) -> dict[str, Estimates]:
    """Every item that asks for a sample, by name; ``answers`` are the exact ones and moments."""
    drawings: dict[_Drawing, list[PlannedItem]] = {}
    for item in plan.sampled:
        assert item.approximate is not None
        measure = item.measure if item.game.degree else None
        drawing = _Drawing(measure, item.approximate.size, item.extremes)
        drawings.setdefault(drawing, []).append(item)
    found = {item.name: _exact(answers, item, len(rows.sizes)) for item in plan.sampled}
    for drawing, items in drawings.items():
        _estimate_drawing(drawing, items, rows, answers, found)
    return found


def _exact(answers: Answers, item: PlannedItem, emits: int) -> Estimates:
    """The exact answer with no error, to be overwritten where the window is sampled."""
    value, share, lift = (
        part.copy() if len(part) == emits else np.zeros(emits) for part in answers.attributed(item)
    )
    return Estimates(value, share, lift, np.zeros(emits), np.zeros(emits))


def _estimate_drawing(
    drawing: _Drawing,
    items: list[PlannedItem],
    rows: Population,
    answers: Answers,
    found: dict[str, Estimates],
) -> None:
    wide = np.flatnonzero(rows.sizes > drawing.size + 2 * drawing.whole)
    keys = Keys(
        rows.priority, _NOBODY if drawing.measure is None else _ranks(rows, drawing.measure)
    )

    def run(stretch: tuple[int, int]) -> None:
        for block in _blocks(drawing, keys, rows, wide[slice(*stretch)], answers):
            for item in items:
                _put(found[item.name], block.emits, _estimate(item, block, rows, answers))

    cuts = [len(wide) * k // THREADS for k in range(THREADS + 1)]
    stretches = [(a, b) for a, b in pairwise(cuts) if b > a]
    for _ in side_by_side(run, stretches):
        pass


def _put(found: Estimates, emits: Integers, new: Estimates) -> None:
    for every, some in zip(found, new, strict=True):
        every[emits] = some


def _ranks(rows: Population, number: int) -> Integers:
    """Each player's place among all by value, equal values in an order of their own."""
    measure = rows.measures[number]
    assert measure is not None
    ties = tie_breaks(rows.priority)
    ranks = np.full(len(ties), -1, np.int64)
    if measure.players is None:
        order = np.lexsort((ties, measure.values))
    else:
        players = np.flatnonzero(measure.players)
        order = players[np.lexsort((ties[players], measure.values[players]))]
    ranks[order] = np.arange(len(order))
    return ranks


def _blocks(
    drawing: _Drawing, keys: Keys, rows: Population, emits: Integers, answers: Answers
) -> Iterator[_Block]:
    """Draw at each of the given emits, from their own first window on."""
    _, size, whole = drawing
    block = max(1, _BLOCK_ROWS // (size + 2 * whole))
    lists = tuple(np.empty(1024, np.int64) for _ in range(3))
    states = np.zeros((3, 3), np.int64)
    for at in range(0, len(emits), block):
        here = emits[at : at + block]
        count = len(here)
        taken = Taken(
            np.empty((count, size), np.int64),
            np.empty((count, 2 * whole), np.int64),
            *(np.empty(count, np.int64) for _ in range(3)),
        )
        lists = draw(keys, rows.arrived[here], rows.expired[here], whole, lists, states, taken)
        low, high = _range(drawing.measure, here, taken, rows, answers)
        parts = Parts(np.arange(count), rows.sizes[here] - taken.held, low, high)
        yield _as_block(here, taken, parts)


def _range(
    measure: int | None, emits: Integers, taken: Taken, rows: Population, answers: Answers
) -> tuple[Floats, Floats]:
    """Bounds on the values of the players that were not taken whole."""
    if measure is None:
        return np.zeros(len(emits)), np.zeros(len(emits))
    given = rows.measures[measure]
    assert given is not None
    players, _ = answers.worths["COUNT", measure]
    # where all players were taken whole there are no bounds: low above high says so
    nobody = players[emits] <= taken.held
    low = np.where(nobody, 1.0, given.values[taken.low])
    return low, np.where(nobody, 0.0, given.values[taken.high])


def _as_block(emits: Integers, taken: Taken, parts: Parts) -> _Block:
    count, size = taken.sample.shape
    columns = np.arange(taken.whole.shape[1])
    whole = taken.whole[columns < taken.held[:, None]]
    return _Block(
        emits,
        taken.sample.reshape(-1),
        np.arange(count + 1) * size,
        whole,
        np.concatenate([[0], np.cumsum(taken.held)]),
        parts,
    )


@np.errstate(over="ignore", invalid="ignore")
def _estimate(item: PlannedItem, block: _Block, rows: Population, answers: Answers) -> Estimates:
    """Estimates in units of 2**exponent, so that no square of a value leaves the doubles.

    A third or fourth moment may be infinite. Then there is no estimate: NaN, and an infinite error.
    """
    assert item.predicate is not None
    measure = rows.measures[item.measure]
    if item.game.degree == 0 or measure is None:
        exponent, values = 0, np.zeros(len(rows.atoms))
    else:
        exponent, values = _exponent(block, measure.values), measure.values
    member = rows.held[:, item.predicate]

    def drawn(places: Integers) -> tuple[Floats, npt.NDArray[np.bool_]]:
        plays = member[rows.atoms[places]]
        if measure is not None and measure.players is not None:
            plays &= measure.players[places]
        return np.ldexp(values[places], -exponent), plays

    window, population, low, high = block.parts
    found = estimate(
        item.game,
        moments_at(answers, item, block.emits, exponent),
        Parts(window, population, np.ldexp(low, -exponent), np.ldexp(high, -exponent)),
        Drawn(block.sample_starts, *drawn(block.sample)),
        Whole(block.whole_starts, *drawn(block.whole)),
        confidence=item.confidence,
    )
    return Estimates(*(np.ldexp(each, exponent * item.game.power) for each in found))


def _exponent(block: _Block, values: Floats) -> int:
    """That of the largest magnitude of any player at these emits."""
    bounds = block.parts.low, block.parts.high
    known = [values[block.sample], values[block.whole], *bounds]
    return int(np.frexp(max(np.abs(each).max(initial=0.0) for each in known))[1])
