"""Answers: one measure's items at every emit, block by block, on as many threads as there are."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from threading import Lock
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ids.engine.answering import empty_emits, moments_of
from ids.engine.answers import Answers
from ids.engine.asked import Asked
from ids.games import Game, attribute
from ids.kernels.central import Centred, centre_block
from ids.kernels.replay import Bounds, Cut, Lists, replay
from ids.kernels.threads import THREADS, side_by_side
from ids.model.scale import Scale
from ids.window import EmitPlan

__all__ = ["answer_measure"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_BLOCK_WORDS = 2**18
_LARGEST_BLOCK = 8_192
_ROWS_PER_THREAD = 50_000


class _Job(NamedTuple):
    """What is asked, which summaries each row touches, and where answers go."""

    asked: Asked
    touched: Lists
    merged: Lists
    summaries: int
    games: dict[str, Game]
    scale: Scale
    answers: Answers


def answer_measure(asked: Asked, scale: Scale) -> Answers:
    """Every item over one measure, whose values the scale holds."""
    job = _job(asked, scale)
    total = len(asked.emits)
    done = 0
    lock = Lock()

    def tick(count: int) -> None:
        nonlocal done
        with lock:
            done += count
            if asked.progress is not None:
                asked.progress(done, total)

    stretches = _stretches(asked.emits)
    for _ in side_by_side(lambda stretch: _answer_stretch(job, *stretch, tick), stretches):
        pass
    return job.answers


def _job(asked: Asked, scale: Scale) -> _Job:
    count = len(asked.emits)
    touched, merged, summaries = _lists(asked.held, len(asked.rows.atom), count)
    games = {item.game.name: item.game for item in asked.items}
    answers = Answers.room_for(asked.items, asked.number, count)
    return _Job(asked, touched, merged, summaries, games, scale, answers)


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


def _answer_stretch(job: _Job, start: int, stop: int, tick: Callable[[int], None]) -> None:
    """Replay one stretch of emits from its own first window on.

    Sums are exact, so a stretch that starts over yields the same bits as one that goes on.
    """
    scale, emits = job.scale, job.asked.emits
    first = emits.expired[start]
    cut = Cut(2.0**-scale.exponent, np.array(scale.centre or (0,), dtype=np.int64), scale.layout)
    summaries = np.zeros((job.summaries, scale.words), np.int64)
    pointers = np.array([first, first], dtype=np.uint64)
    items = len(job.asked.predicates)
    block = max(64, min(_LARGEST_BLOCK, _BLOCK_WORDS // ((items + 1) * scale.words)))
    taken = np.zeros((items + 1, scale.words, block + 8), np.int64)
    for at in range(start, stop, block):
        here = slice(at, min(at + block, stop))
        bounds = Bounds(emits.arrived[here], emits.expired[here])
        view = taken[:, :, : here.stop - at]
        replay(summaries, pointers, job.asked.rows, cut, bounds, job.touched, job.merged, view)
        centred = empty_emits(scale, items, here.stop - at)
        centre_block(view, cut.centre, scale.layout, centred)
        _evaluate(job, centred, here)
        tick(here.stop - at)


@np.errstate(over="ignore")
def _evaluate(job: _Job, emits: Centred, here: slice) -> None:
    """The closed forms of one block, in the measure's own units; infinite where no double holds."""
    moments = moments_of(emits)
    members = emits.members.astype(np.float64)
    number = job.asked.number
    for name, game in job.games.items():
        unit = job.scale.exponent * game.power
        worth, missing = job.answers.worths[name, number]
        worth[here] = np.ldexp(game.worth(moments), unit)
        missing[here] = emits.players < game.nulls
        attributed = attribute(game, moments, members, emits.item_total, emits.deviation)
        for row, predicate in enumerate(job.asked.predicates):
            room = job.answers.attributions.get((name, number, predicate))
            if room is not None:
                room.value[here] = np.ldexp(attributed.value[row], unit)
                room.share[here] = np.ldexp(attributed.share[row], unit)
                room.lift[here] = np.ldexp(attributed.lift[row], unit)
