"""Answers: one measure's items at every emit, block by block, on as many threads as there are."""

from __future__ import annotations

from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ids.engine.answering import empty_emits, moments_of
from ids.engine.answers import Answers
from ids.engine.arrow import room
from ids.engine.rows import Prepared
from ids.games import Attributed, Game, attribute
from ids.kernels.central import Centred, centre_block
from ids.kernels.replay import Bounds, Cut, Lists, Rows, replay
from ids.kernels.threads import THREADS, side_by_side
from ids.model.query import ItemKind
from ids.model.scale import Scale
from ids.plan import PlannedItem, SelectPlan
from ids.window import EmitPlan

if TYPE_CHECKING:
    from ids.engine.continuous import Progress

__all__ = ["answer_measure"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_BLOCK_WORDS = 2**18
_LARGEST_BLOCK = 8_192
_ROWS_PER_THREAD = 50_000


class _Job(NamedTuple):
    """One measure's work: its rows, which summaries they touch, and where answers go."""

    rows: Rows
    scale: Scale
    touched: Lists
    merged: Lists
    summaries: int
    emits: EmitPlan
    games: dict[str, Game]
    predicates: list[int]
    answers: Answers
    number: int


def answer_measure(
    plan: SelectPlan,
    number: int,
    prepared: Prepared,
    atoms: npt.NDArray[np.uint32],
    held: Bools,
    emits: EmitPlan,
    scale: Scale,
    progress: Progress | None,
) -> Answers:
    """Every item over measure ``number`` of the plan."""
    items = [item for item in plan.items if item.measure == number]
    predicates = sorted({i.predicate for i in items if i.predicate is not None})
    held = held[:, predicates]
    job = _job(number, prepared, atoms, held, emits, scale, items, predicates)
    total = len(emits.arrived)
    done = 0
    lock = Lock()

    def tick(count: int) -> None:
        nonlocal done
        with lock:
            done += count
            if progress is not None:
                progress(done, total)

    stretches = _stretches(emits)
    for _ in side_by_side(lambda stretch: _answer_stretch(job, *stretch, tick), stretches):
        pass
    return job.answers


def _job(
    number: int,
    prepared: Prepared,
    atoms: npt.NDArray[np.uint32],
    held: Bools,
    emits: EmitPlan,
    scale: Scale,
    items: list[PlannedItem],
    predicates: list[int],
) -> _Job:
    measure = prepared.measures[number]
    players = None if measure is None else measure.players
    if players is not None:
        # a row that is no player belongs to an atom of its own that touches nothing
        atoms = np.where(players, atoms, np.uint32(len(held)))
    values = np.zeros(0) if measure is None else measure.values
    touched, merged, summaries = _lists(held, prepared.table.rows, len(emits.arrived))
    games = {item.game.name: item.game for item in items}
    answers = Answers.empty()
    count = len(emits.arrived)
    for name in games:
        answers.worths[name, number] = (room(count), np.zeros(count, dtype=np.bool_))
    for item in items:
        if item.kind is not ItemKind.AGGREGATE and item.predicate is not None:
            key = (item.game.name, number, item.predicate)
            if key not in answers.attributions:
                answers.attributions[key] = Attributed(room(count), room(count), room(count))
    return _Job(
        Rows(atoms, values), scale, touched, merged, summaries, emits, games, predicates,
        answers, number,
    )  # fmt: skip


def _lists(held: Bools, rows: int, emits: int) -> tuple[Lists, Lists, int]:
    """Which summaries a row touches, and which make up an item: per atom or per item.

    Summaries per atom: a row touches one, an emit merges many. Summaries per item: a row touches
    every item it belongs to, an emit merges nothing. Whichever costs less here.
    """
    atoms, items = held.shape
    per_item = np.concatenate([np.ones((atoms, 1), dtype=np.bool_), held], axis=1)
    memberships = int(per_item.sum())
    if rows * memberships / max(1, atoms) + emits * (items + 1) < rows + emits * memberships:
        return _as_lists(per_item, spare=True), _each_its_own(items + 1), items + 1
    return _each_its_own(atoms, spare=True), _as_lists(per_item.T), atoms


def _each_its_own(count: int, *, spare: bool = False) -> Lists:
    """List k holds k alone; ``spare`` adds an empty list at the end."""
    starts = np.arange(count + 1, dtype=np.uint32)
    if spare:
        starts = np.append(starts, starts[-1])
    return Lists(starts, np.arange(count, dtype=np.uint32))


def _as_lists(member: npt.NDArray[np.bool_], *, spare: bool = False) -> Lists:
    """Row k of a membership matrix as list k; ``spare`` adds an empty list at the end."""
    starts = np.concatenate([[0], np.cumsum(member.sum(axis=1))])
    if spare:
        starts = np.append(starts, starts[-1])
    return Lists(starts.astype(np.uint32), np.nonzero(member)[1].astype(np.uint32))


def _stretches(emits: EmitPlan) -> list[tuple[int, int]]:
    """The emits cut into stretches of about equal rows, one a thread."""
    count = len(emits.arrived)
    if count == 0:
        return []
    rows = int(emits.arrived[-1])
    threads = max(1, min(THREADS, (rows + count) // _ROWS_PER_THREAD))
    cuts = [count * k // threads for k in range(threads + 1)]
    return [(a, b) for a, b in pairwise(cuts) if b > a]


def _answer_stretch(job: _Job, start: int, stop: int, tick: object) -> None:
    """Replay one stretch of emits from its own first window on.

    Sums are exact, so a stretch that starts over yields the same bits as one that goes on.
    """
    assert callable(tick)
    first = int(job.emits.expired[start])
    scale = job.scale
    cut = Cut(2.0**-scale.exponent, np.array(scale.centre or (0,), dtype=np.int64), scale.layout)
    summaries = np.zeros((job.summaries, scale.words), np.int64)
    pointers = np.array([first, first], dtype=np.uint64)
    items = len(job.predicates)
    block = max(64, min(_LARGEST_BLOCK, _BLOCK_WORDS // ((items + 1) * scale.words)))
    taken = np.zeros((items + 1, scale.words, block + 8), np.int64)
    for at in range(start, stop, block):
        size = min(block, stop - at)
        bounds = Bounds(job.emits.arrived[at : at + size], job.emits.expired[at : at + size])
        view = taken[:, :, :size]
        replay(summaries, pointers, job.rows, cut, bounds, job.touched, job.merged, view)
        emits = empty_emits(scale, items, size)
        centre_block(view, cut.centre, scale.layout, emits)
        _evaluate(job, scale, emits, at, size)
        tick(size)


def _evaluate(job: _Job, scale: Scale, emits: Centred, at: int, size: int) -> None:
    """The closed forms of one block, back in the measure's own units."""
    here = slice(at, at + size)
    moments = moments_of(emits)
    members = emits.members.astype(np.float64)
    for name, game in job.games.items():
        unit = scale.exponent * game.power
        worth, missing = job.answers.worths[name, job.number]
        worth[here] = np.ldexp(game.worth(moments), unit)
        missing[here] = emits.players < game.nulls
        attributed = attribute(game, moments, members, emits.item_total, emits.deviation)
        for row, predicate in enumerate(job.predicates):
            room = job.answers.attributions.get((name, job.number, predicate))
            if room is not None:
                room.value[here] = np.ldexp(attributed.value[row], unit)
                room.share[here] = np.ldexp(attributed.share[row], unit)
                room.lift[here] = np.ldexp(attributed.lift[row], unit)
