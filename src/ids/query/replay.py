"""Computes one measure's items at every emit, in one of three ways with bit-identical results.

every row   For first-degree games over a count window that emits at every row. A single kernel
            computes the output columns from the rows.
blocks      For any emits. The slide kernel writes blocks of summaries (counts and power sums), and
            the closed forms are evaluated on each block, in parallel threads.
wide range  For values whose magnitudes differ too much for one scale. Windows with such values are
            summed as Python integers, which represent any double. This is much slower.

The *players* of a measure are the rows whose value is not NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Lock
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ids.exact import Powers, big_attribution, big_worth, integers, unit_of
from ids.games import Attributed, Estimates, Game, Moments, attribute, find
from ids.kernels import (
    BLOCK,
    DENSE_ITEMS,
    DENSE_ROWS,
    THREADS,
    Bounds,
    Centred,
    Cut,
    Forms,
    Lists,
    Rows,
    centre_block,
    dense,
    replay,
    side_by_side,
)
from ids.model import Scale
from ids.plan import PlannedItem
from ids.query.emits import CountEmits, EmitPlan, chosen
from ids.state import empty_emits, moments_of

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
Progress = Callable[[int, int], None]


class MeasureJob(NamedTuple):
    """The items to compute for one measure.

    number      the number of the measure in the plan
    items       the items of the SELECT over the measure
    predicates  the numbers of the items' predicates, ascending
    held        bool[a, p]  whether predicate p holds on atom a
    rows        each row's atom and value; rows that are not players have an extra, empty atom
    gaps        whether some rows are not players
    """

    number: int
    items: list[PlannedItem]
    predicates: list[int]
    held: Bools
    rows: Rows
    gaps: bool
    emits: EmitPlan
    progress: Progress | None

    @property
    def games(self) -> dict[str, Game]:
        """The games of the items, keyed by name."""
        return {item.game.name: item.game for item in self.items}


@dataclass(slots=True)
class Answers:
    """The worths by (game, measure) and attributions by (game, measure, predicate) at every emit.

    counts   the number of rows in the window at each emit, if it was computed
    sampled  the estimates of APPROXIMATE items, keyed by name
    """

    worths: dict[tuple[str, int], tuple[Floats, Bools]] = field(default_factory=dict)
    attributions: dict[tuple[str, int, int | None], Attributed] = field(default_factory=dict)
    counts: Integers | None = None
    sampled: dict[str, Estimates] = field(default_factory=dict)

    @classmethod
    def allocate(cls, items: Sequence[PlannedItem], measure: int, emits: int) -> Answers:
        """Allocate arrays for the items over one measure; the caller fills them."""
        games = dict.fromkeys(item.game.name for item in items)
        asked = [item for item in items if item.predicate is not None]
        keys = dict.fromkeys((item.game.name, measure, item.predicate) for item in asked)
        return cls(
            {(name, measure): (_buffer(emits), np.zeros(emits, np.bool_)) for name in games},
            {key: Attributed(*(_buffer(emits) for _ in range(3))) for key in keys},
        )

    def fill(self, some: Answers, emits: Bools) -> None:
        """Copy the results for some of the emits into these arrays."""
        for key, pair in some.worths.items():
            for whole, part in zip(self.worths[key], pair, strict=True):
                whole[emits] = part
        for name, attributed in some.attributions.items():
            for whole, part in zip(self.attributions[name], attributed, strict=True):
                whole[emits] = part

    def __or__(self, other: Answers) -> Answers:
        counts = self.counts if other.counts is None else other.counts
        return Answers(
            self.worths | other.worths,
            self.attributions | other.attributions,
            counts,
            self.sampled | other.sampled,
        )

    def aggregate(self, item: PlannedItem) -> tuple[Floats, Bools]:
        """Return the values of an aggregate, and where it is NULL."""
        return self.worths[item.game.name, item.measure]

    def attributed(self, item: PlannedItem) -> Attributed:
        """Return the value, share and lift of an item."""
        return self.attributions[item.game.name, item.measure, item.predicate]


def _buffer(rows: int) -> Floats:
    """Allocate an uninitialised float64 column from Arrow's pool, aligned to 64 bytes."""
    return np.frombuffer(pa.allocate_buffer(rows * 8), dtype=np.float64)


_BLOCK_WORDS = 2**18  # words of summaries per block, at most
_LARGEST_BLOCK = 8_192  # emits per block, at most
_ROWS_PER_THREAD = 50_000


class _Summaries(NamedTuple):
    """The summaries that each row updates, the summaries of each item, and their number."""

    touched: Lists
    merged: Lists
    number: int


def answer_blocks(job: MeasureJob, scale: Scale) -> Answers:
    """Compute the SELECT items from blocks of summaries; all values must fit the scale."""
    total = len(job.emits)
    answers = Answers.allocate(job.items, job.number, total)
    summaries = _choose_summaries(job.held, len(job.rows.atom), total)
    done = 0
    lock = Lock()

    def run(part: tuple[int, int]) -> None:
        nonlocal done
        for here, block in _replay(job, scale, summaries, *part):
            _evaluate_block(job, scale, block, here, answers)
            with lock:
                done += here.stop - here.start
                if job.progress is not None:
                    job.progress(done, total)

    for _ in side_by_side(run, _thread_parts(job.emits)):
        pass
    return answers


def _choose_summaries(held: Bools, rows: int, emits: int) -> _Summaries:
    """Choose summaries per atom or per item, whichever costs less.

    With summaries per atom, each row updates one summary, and each emit merges many. With summaries
    per item, each row updates the summaries of all items it belongs to, and nothing is merged.
    """
    atoms, items = held.shape
    per_item = np.concatenate([np.ones((atoms, 1), dtype=np.bool_), held], axis=1)
    memberships = int(per_item.sum())
    if rows * memberships / max(1, atoms) + emits * (items + 1) < rows + emits * memberships:
        own = _each_its_own(items + 1)
        return _Summaries(_as_lists(per_item, spare=True), own, items + 1)
    return _Summaries(_each_its_own(atoms, spare=True), _as_lists(per_item.T), atoms)


def _each_its_own(count: int, *, spare: bool = False) -> Lists:
    """Make list k contain only k; ``spare`` adds an empty list at the end."""
    starts = np.arange(count + 1, dtype=np.uint32)
    if spare:
        starts = np.append(starts, starts[-1])
    return Lists(starts, np.arange(count, dtype=np.uint32))


def _as_lists(member: Bools, *, spare: bool = False) -> Lists:
    """Convert row k of a membership matrix to list k; ``spare`` adds an empty list at the end."""
    starts = np.concatenate([[0], np.cumsum(member.sum(axis=1))])
    if spare:
        starts = np.append(starts, starts[-1])
    return Lists(starts.astype(np.uint32), np.nonzero(member)[1].astype(np.uint32))


def _thread_parts(emits: EmitPlan) -> list[tuple[int, int]]:
    """Divide the emits into ranges with about the same number of rows, one per thread."""
    count = len(emits.arrived)
    if count == 0:
        return []
    rows = int(emits.arrived[-1])
    threads = max(1, min(THREADS, (rows + count) // _ROWS_PER_THREAD))
    cuts = [count * k // threads for k in range(threads + 1)]
    return [(a, b) for a, b in pairwise(cuts) if b > a]


def _replay(
    job: MeasureJob, scale: Scale, summaries: _Summaries, start: int, stop: int
) -> Iterator[tuple[slice, Centred]]:
    """Yield blocks of the emits from ``start`` to ``stop`` with their centred summaries.

    Sums are exact, so a range that starts with empty summaries yields the same bits.
    """
    emits = job.emits
    first = emits.expired[start]
    cut = Cut(2.0**-scale.exponent, np.array(scale.centre or (0,), dtype=np.int64), scale.layout)
    sums = np.zeros((summaries.number, scale.words), np.int64)
    pointers = np.array([first, first], dtype=np.uint64)
    items = len(job.predicates)
    block = max(64, min(_LARGEST_BLOCK, _BLOCK_WORDS // ((items + 1) * scale.words)))
    taken = np.zeros((items + 1, scale.words, block + 8), np.int64)
    for at in range(start, stop, block):
        here = slice(at, min(at + block, stop))
        bounds = Bounds(emits.arrived[here], emits.expired[here])
        view = taken[:, :, : here.stop - at]
        replay(sums, pointers, job.rows, cut, bounds, summaries.touched, summaries.merged, view)
        centred = empty_emits(scale, items, here.stop - at)
        centre_block(view, cut.centre, scale.layout, centred)
        yield here, centred


@np.errstate(over="ignore")
def _evaluate_block(
    job: MeasureJob, scale: Scale, emits: Centred, here: slice, answers: Answers
) -> None:
    """Evaluate the closed forms of one block in the measure's units; overflow yields infinity."""
    moments = moments_of(emits)
    members = emits.members.astype(np.float64)
    for name, game in job.games.items():
        unit = scale.exponent * game.power
        worth, missing = answers.worths[name, job.number]
        worth[here] = np.ldexp(game.worth(moments), unit)
        missing[here] = emits.players < game.nulls
        attributed = attribute(game, moments, members, emits.item_total, emits.deviation)
        for row, predicate in enumerate(job.predicates):
            own = answers.attributions.get((name, job.number, predicate))
            if own is not None:
                for part, found in zip(own, attributed, strict=True):
                    part[here] = np.ldexp(found[row], unit)


_WIDE_EMITS = 2_048  # emits per step if values have a wide range
_WIDE_ROWS = 16_384  # rows summed per step


def answer_wide_range(job: MeasureJob, degree: int) -> Answers:
    """Compute the items, up to ``degree``, of a measure whose values do not fit one scale.

    Windows without outliers are computed by the kernels. In other windows, the sums at an emit are
    the running sums over arrived rows minus the running sums over expired rows.
    """
    values, emits = job.rows.values, job.emits
    scale, far = Scale.fit_most(values, degree)
    far_before = np.concatenate([[0], np.cumsum(far)])
    wide = far_before[emits.arrived] > far_before[emits.expired]
    answers = Answers.allocate(job.items, job.number, len(emits))
    near = Rows(job.rows.atom, np.where(far, 0.0, values))
    kernels = job._replace(rows=near, emits=chosen(emits, ~wide), progress=None)
    answers.fill(answer_blocks(kernels, scale), ~wide)
    answers.fill(_answer_wide(job._replace(emits=chosen(emits, wide))), wide)
    return answers


def _answer_wide(job: MeasureJob) -> Answers:
    answers = Answers.allocate(job.items, job.number, len(job.emits))
    all_arrived, all_expired = _Running(job), _Running(job)
    total = len(job.emits)
    for first in range(0, total, _WIDE_EMITS):
        here = slice(first, min(first + _WIDE_EMITS, total))
        arrived = all_arrived.before(job.emits.arrived[here].view(np.int64))
        expired = all_expired.before(job.emits.expired[here].view(np.int64))
        window, *items = (_difference(a, b) for a, b in zip(arrived, expired, strict=True))
        for name, game in job.games.items():
            worth, missing = answers.worths[name, job.number]
            worth[here] = big_worth(game, window)
            missing[here] = window.rows < game.nulls
            for predicate, item in zip(job.predicates, items, strict=True):
                parts = answers.attributions.get((name, job.number, predicate))
                if parts is not None:
                    for part, found in zip(parts, big_attribution(game, window, item), strict=True):
                        part[here] = found
        if job.progress is not None:
            job.progress(here.stop, total)
    return answers


def _difference(a: Powers, b: Powers) -> Powers:
    return Powers(a.rows - b.rows, [x - y for x, y in zip(a.sums, b.sums, strict=True)], a.unit)


class _Running:
    """Running power sums over all rows before a position, which can only increase.

    The first sums are over all players; the others are over the players on which a predicate holds.
    """

    def __init__(self, job: MeasureJob) -> None:
        self._rows = job.rows
        self._degree = max(item.game.degree for item in job.items)
        self._member = np.ones((len(job.held) + 1, 1 + job.held.shape[1]), np.bool_)
        self._member[:-1, 1:] = job.held
        self._member[-1] = False  # a row with the last atom is not a player
        self._unit = unit_of(job.rows.values)
        self._at = 0
        self._counts = [0] * self._member.shape[1]
        self._sums = [[0] * self._degree for _ in self._counts]

    def before(self, positions: Integers) -> list[Powers]:
        """Return the sums before each ascending position, for all players and each predicate."""
        items = range(len(self._counts))
        counts = [np.full(len(positions), self._counts[i]) for i in items]
        sums = [
            [np.full(len(positions), self._sums[i][d], object) for d in range(self._degree)]
            for i in items
        ]
        stop = int(positions[-1])
        for start in range(self._at, stop, _WIDE_ROWS):
            end = min(start + _WIDE_ROWS, stop)
            edges = np.clip(positions - start, 0, end - start)
            member = self._member[self._rows.atom[start:end]]
            value = integers(self._rows.values[start:end], self._unit)
            for i in items:
                own = member[:, i]
                counts[i] += _running(own.astype(np.int64))[edges]
                power = np.where(own, value, 0)
                for d in range(self._degree):
                    sums[i][d] += _running(power if d == 0 else power ** (d + 1))[edges]
        self._at = stop
        self._counts = [int(count[-1]) for count in counts]
        self._sums = [[each[-1] for each in powers] for powers in sums]
        return [Powers(counts[i], sums[i], self._unit) for i in items]


def _running(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Return the sums of the first 0, 1, 2 … values."""
    sums = np.zeros(len(values) + 1, values.dtype)
    np.cumsum(values, out=sums[1:])
    return sums


_SHORTEST_KEY = 4 * BLOCK  # shorter keys would leave most lanes of a block idle
_LONGEST = 2**20 // BLOCK * BLOCK


def answer_every_row(job: MeasureJob, scale: Scale) -> Answers | None:
    """Compute the items with the every-row kernel; return None if it cannot be used."""
    emits = job.emits
    if not isinstance(emits, CountEmits) or len(job.predicates) > DENSE_ITEMS:
        return None
    window, starts, rows = emits.window, emits.starts, len(job.rows.atom)
    if scale.degree != 1 or scale.digits != 2 or window.slide > 1 or window.size > DENSE_ROWS:
        return None
    if rows < _SHORTEST_KEY * (len(starts) - 1):
        return None
    if not all(item.game.affine for item in job.items):
        return None
    outputs = _OutputRows(job)
    forms = outputs.forms(min(window.size, rows))
    out = _aligned_rows(outputs.columns, rows)
    member = _membership(job.held)
    exponent = scale.exponent

    def run(part: tuple[int, int]) -> int:
        first, stop = part
        dense(job.rows, member, window.size, starts, first, stop, exponent, forms, out)
        return stop - first

    done = 0
    for size in side_by_side(run, _row_parts(rows, window.size)):
        done += size
        if job.progress is not None:
            job.progress(done, rows)
    return outputs.answers(out[:, :rows])


def _aligned_rows(columns: int, rows: int) -> Floats:
    """Allocate float64[columns, at least rows], with each column aligned to 64 bytes."""
    width = -(-rows // 8) * 8 + 8
    return _buffer(columns * width).reshape(columns, width)


def _row_parts(rows: int, window: int) -> list[tuple[int, int]]:
    """Divide the rows into ranges so long that summing the first window of each is cheap."""
    even = -(-rows // THREADS // BLOCK) * BLOCK
    length = max(BLOCK, min(even, max(_LONGEST, 16 * window // BLOCK * BLOCK)))
    return [(at, min(at + length, rows)) for at in range(0, rows, length)]


def _membership(held: Bools) -> Integers:
    """Return a word per atom (bit 0: window, bit k: item k - 1), followed by a word 0."""
    member = np.ones(len(held) + 1, np.int64)
    member[-1] = 0
    for k in range(held.shape[1]):
        member[:-1] |= held[:, k].astype(np.int64) << (k + 1)
    return member


class _OutputRows:
    """The results that the items need, and the output row of each result."""

    def __init__(self, job: MeasureJob) -> None:
        self.number = job.number
        self.predicates = job.predicates
        self.games = job.games
        if job.gaps:
            self.games.setdefault("COUNT", find("COUNT"))
        self.worth = dict.fromkeys(self.games, -1)
        self.parts: dict[tuple[str, int], list[int]] = {}
        self.columns = 1  # the first output row contains the number of rows in the window
        for item in job.items:
            if item.predicate is None:
                self._worth(item.game)
                if job.gaps:
                    self._worth(self.games["COUNT"])
                continue
            rows = self.parts.setdefault((item.game.name, item.predicate), [-1, -1, -1])
            self._part(rows, 0)
            for part in item.parts:
                self._part(rows, 1 if part == "SHARE" else 2)

    def _worth(self, game: Game) -> None:
        if self.worth[game.name] < 0:
            self.worth[game.name] = self._next()

    def _part(self, rows: list[int], part: int) -> None:
        if rows[part] < 0:
            rows[part] = self._next()

    def _next(self) -> int:
        self.columns += 1
        return self.columns - 1

    def forms(self, most: int) -> Forms:
        """Describe the games for the kernel; a weight is the worth if only that moment is 1."""
        games = list(self.games.values())
        one, zero = np.ones(1), np.zeros(1)
        central = np.zeros((3, 1))
        players = np.arange(most + 1, dtype=np.float64)
        slopes = np.zeros((len(games), most + 1))
        for g, game in enumerate(games):
            for slope in game.slopes(Moments(players, players, players, np.zeros((3, most + 1)))):
                slopes[g] = slope
        rows = [[self.parts.get((g.name, p), [-1, -1, -1]) for p in self.predicates] for g in games]
        empty = Moments(zero, zero, zero, central)
        return Forms(
            np.array([float(g.worth(empty._replace(players=one))[0]) for g in games]),
            np.array([float(g.worth(empty._replace(total=one))[0]) for g in games]),
            np.array([float(g.worth(empty._replace(mean=one))[0]) for g in games]),
            slopes,
            np.array([g.additive for g in games]),
            np.array([self.worth[g.name] for g in games], dtype=np.int64),
            np.array(rows, dtype=np.int64).reshape(len(games), len(self.predicates), 3),
            0,
        )

    def answers(self, out: Floats) -> Answers:
        """Convert the output rows to ``Answers``."""
        answers = Answers()
        answers.counts = counts = out[0].view(np.int64)
        counted = self.worth.get("COUNT", -1)
        players = out[counted] if counted >= 0 else counts
        for name, row in self.worth.items():
            if row >= 0:
                missing = players < self.games[name].nulls
                answers.worths[name, self.number] = (out[row], missing)
        nothing = out[:0].reshape(-1)
        for (name, predicate), rows in self.parts.items():
            parts = [out[row] if row >= 0 else nothing for row in rows]
            answers.attributions[name, self.number, predicate] = Attributed(*parts)
        return answers
