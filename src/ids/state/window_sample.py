"""The sample of a sliding window: rows come in, rows leave, a sample is drawn at any moment.

    rows ─▶ a sampler marks those it may yet draw ─▶ candidates, swept now and then ─▶ drawing

A sampler says which rows must be kept: the highest priorities (without replacement, by stratum
where there are some), the highest row of many priorities (with replacement from a time window), or
the links of chains (with replacement from a count window). Beside them the rows of extreme values
are kept. All do it by a sweep from the newest row to the oldest; the loops are in
``kernels/priority_sample.py`` and ``kernels/chain_sample.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ids.errors import ScriptError, StateError
from ids.kernels import (
    begin_chains,
    head_arrivals,
    highest,
    highest_by_stratum,
    highest_of_copies,
    likely_highest,
    likely_survivors,
    mark_links,
    mix,
    run_chains,
    survivors,
    survivors_by_stratum,
    survivors_of_copies,
)
from ids.model import (
    ColumnData,
    CountWindow,
    Kind,
    Sampling,
    Table,
    TimeWindow,
    extremes_of,
    type_of,
)
from ids.predicates import Measure
from ids.state.retained_rows import Array, Retained, Sliding
from ids.state.strata import Codes, Strata

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]

_NONE = np.zeros(0, np.int64)
_FEW_ROWS = 4096  # candidates that no sweep is worth
_SLACK = 3  # times as many rows as a sweep left call for the next one


class Drawing(NamedTuple):
    """Rows taken whole, then rows drawn, part by part (a stratum is a part).

    rows         raw columns: first those taken whole, then each part's, highest priority first
    whole        how many are taken whole: each stands for itself
    starts       int64[p+1]   where a part's rows start, behind those taken whole
    population   int64[p]     rows of the window a part stands for, those taken whole left out
    value        float64[n]   y of each row (0 for COUNT(*))
    plays        bool[n]      whether a row is a player
    low, high    bounds on y of the players that are not taken whole (0 where there is none)
    complete     every row of the window is here, taken whole: the answer is exact
    replacement  a row may have been drawn more than once
    strata       the strata's columns, one row a part; None without strata
    """

    rows: Table
    whole: int
    starts: npt.NDArray[np.int64]
    population: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    plays: npt.NDArray[np.bool_]
    low: float
    high: float
    complete: bool
    replacement: bool
    strata: Table | None


class _Columns(NamedTuple):
    """What is kept of candidates beside their own columns, rows in window order.

    stratum   int32[n]
    sequence  int64[n]    arrival numbers
    priority  float64[n]  where the sampler draws by one priority a row, else empty
    arrival   int64[n]    places in the order of arrival, where chains draw, else empty
    values    float64[n] and ``plays`` bool[n] of each measure
    """

    stratum: Codes
    sequence: Places
    priority: Floats
    arrival: Places
    values: Sequence[Floats]
    plays: Sequence[Mask]

    def take(self, rows: npt.NDArray[np.intp]) -> _Columns:
        """Some of the rows."""
        return _Columns(
            self.stratum[rows],
            self.sequence[rows],
            self.priority[rows] if len(self.priority) else self.priority,
            self.arrival[rows] if len(self.arrival) else self.arrival,
            [values[rows] for values in self.values],
            [plays[rows] for plays in self.plays],
        )

    def named(self) -> dict[str, Array]:
        """All of it by the names of a checkpoint."""
        found: dict[str, Array] = {"tag": self.stratum, "sequence": self.sequence}
        if len(self.priority):
            found["priority"] = self.priority
        if len(self.arrival):
            found["arrival"] = self.arrival
        for m, (values, plays) in enumerate(zip(self.values, self.plays, strict=True), start=1):
            found[f"y {m}"], found[f"plays {m}"] = values, plays
        return found


class _Arrival(NamedTuple):
    """What a sampler gives to rows that arrive; ``taken`` where it says at once which it takes."""

    priority: Floats = np.zeros(0)
    arrival: Places = _NONE
    taken: Mask | None = None


class _Sampler(Protocol):
    """Which rows may yet be drawn."""

    def arrive(self, sequence: Places) -> _Arrival:
        """Rows arrive under these numbers."""

    def mark(self, rows: _Columns) -> Mask:
        """The rows that must be kept, of rows in window order."""

    def heads(self, rows: _Columns) -> Places | None:
        """With replacement: where the row of each copy is among the kept ones; else None."""


class _ByPriority:
    """The ``size`` highest of one random priority a row; of each stratum, where there are some."""

    def __init__(self, size: int, seed: int, strata: Strata) -> None:
        self._size = size
        self._seed = np.uint64(seed % 2**64)
        self._strata = strata

    def arrive(self, sequence: Places) -> _Arrival:
        """The arrival number draws a priority."""
        priority = np.empty(len(sequence), np.float64)
        mix(self._seed, sequence, priority)
        return _Arrival(priority)

    def mark(self, rows: _Columns) -> Mask:
        """Rows that are among the highest of themselves and all newer rows."""
        keep = np.empty(len(rows.priority), np.bool_)
        if self._strata.columns:
            strata = len(self._strata.population)
            survivors_by_stratum(rows.priority, rows.stratum, strata, self._size, keep)
        else:
            likely_survivors(rows.priority, self._size, keep)
        return keep

    def heads(self, rows: _Columns) -> None:
        """None: no copies."""


class _ByCopies:
    """Priority-sample with replacement: the highest row of each of ``copies`` priorities."""

    def __init__(self, copies: int, seed: int) -> None:
        self._copies = copies
        self._seed = np.uint64(seed % 2**64)

    def arrive(self, sequence: Places) -> _Arrival:  # noqa: ARG002
        """A copy's priorities are worked out from the arrival number each time."""
        return _Arrival()

    def mark(self, rows: _Columns) -> Mask:
        """Rows that some copy ranks above all newer rows."""
        keep = np.empty(len(rows.sequence), np.bool_)
        survivors_of_copies(self._seed, self._copies, rows.sequence, keep)
        return keep

    def heads(self, rows: _Columns) -> Places:
        """The highest row of each copy."""
        places = np.empty(self._copies if len(rows.sequence) else 0, np.int64)
        if len(places):
            highest_of_copies(self._seed, self._copies, rows.sequence, places)
        return places


class Chains:
    """Chain-sample: which row each chain has for its sample, by the order of arrival, from 1.

    O(r) numbers, and the rows in the chains: about e of them each.
    """

    def __init__(self, copies: int, window: int, seed: int) -> None:
        self._seed = np.uint64(seed % 2**64)
        self._window = window
        self._chains: Places = np.zeros((copies, 3), np.int64)
        self._heap: Places = np.zeros(copies, np.int64)
        self.arrived = 0
        self.begin()

    def begin(self) -> None:
        """No row is inside; arrivals are counted on, so no draw is made twice."""
        self._begun = self.arrived
        begin_chains(self._chains, self._heap, self._begun)

    @property
    def nbytes(self) -> int:
        """Bytes of the chains."""
        return self._chains.nbytes + self._heap.nbytes

    def arrive(self, sequence: Places) -> _Arrival:
        """Rows arrive: which of them some chain takes."""
        rows = len(sequence)
        taken = np.empty(rows, np.bool_)
        first = self.arrived + 1
        run_chains(self._seed, self._chains, self._heap, self._begun, self._window, first, taken)
        self.arrived += rows
        return _Arrival(arrival=np.arange(first, first + rows), taken=taken)

    def mark(self, rows: _Columns) -> Mask:
        """Rows that are still in a chain."""
        return self.held(rows.arrival)

    def held(self, arrivals: Places) -> Mask:
        """Which of these arrivals, ascending, are in a chain."""
        keep = np.empty(len(arrivals), np.bool_)
        mark_links(self._seed, self._chains, self._window, self.arrived, arrivals, keep)
        return keep

    def heads(self, rows: _Columns) -> Places:
        """The first row of each chain."""
        return np.searchsorted(rows.arrival, self.first()) if len(rows.arrival) else _NONE

    def first(self) -> Places:
        """The arrival that each chain has for its sample; at least one row is inside."""
        heads = np.empty(len(self._heap), np.int64)
        head_arrivals(self._seed, self._chains, self._window, self.arrived, heads)
        return heads

    def arrays(self) -> dict[str, Array]:
        """What a checkpoint keeps."""
        return {"chains": self._chains, "chain heap": self._heap}

    def facts(self) -> dict[str, Any]:
        """What a checkpoint says."""
        return {"arrived": self.arrived, "begun": self._begun}

    def restore(self, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Take the place of chains that were written to a checkpoint."""
        self.arrived, self._begun = int(facts["arrived"]), int(facts["begun"])
        self._chains = arrays["chains"].astype(np.int64)
        self._heap = arrays["chain heap"].astype(np.int64)


def _mark_extremes(rows: _Columns, size: int, keep: Mask) -> None:
    """Mark the rows that may yet be among the ``size`` largest or smallest of some measure."""
    for y, plays in zip(rows.values, rows.plays, strict=True):
        among = slice(None) if plays.all() else np.flatnonzero(plays)
        playing = y[among]
        high = np.empty(len(playing), np.bool_)
        for priority in (playing, -playing):
            survivors(priority, size, high)
            keep[among] |= high


class _Candidates(Retained):
    """The rows that some drawing may yet need, in window order, with their ``_Columns``.

    Rows are added at no other cost than their copy; once there are several times as many as the
    last sweep left, the sample sweeps again. So a row is looked at a few times in its life.
    """

    def __init__(self, kinds: Mapping[str, Kind], measures: int) -> None:
        super().__init__(kinds)
        self._rows: _Roomy = _Roomy(2 * _FEW_ROWS)
        self._measures = range(1, measures + 1)
        self.limit = _FEW_ROWS

    @property
    def crowded(self) -> bool:
        """Whether a sweep pays."""
        return len(self) > self.limit

    def columns(self) -> _Columns:
        """What is kept beside the rows' own columns, as views."""
        if not len(self):
            none, nobody = np.zeros(0), np.zeros(0, np.bool_)
            measures = len(self._measures)
            return _Columns(
                np.zeros(0, np.int32), _NONE, none, _NONE, [none] * measures, [nobody] * measures
            )
        rows = self._rows
        priority, arrival = rows.get("priority"), rows.get("arrival")
        return _Columns(
            rows["tag"].view(np.int32),
            rows["sequence"].view(np.int64),
            np.zeros(0) if priority is None else priority.view(np.float64),
            _NONE if arrival is None else arrival.view(np.int64),
            [rows[f"y {m}"].view(np.float64) for m in self._measures],
            [rows[f"plays {m}"].view(np.bool_) for m in self._measures],
        )

    def add(self, table: Table, times: Places | None, columns: _Columns) -> None:
        """Rows in window order; those older than rows inside are merged among them."""
        named = {**self._encode(table), **columns.named()}
        inside = self.times
        if times is not None:
            named["time"] = times
        if times is not None and inside is not None and len(inside) and times[0] < inside[-1]:
            self._rows.merge(named, "time")
        else:
            self._rows.append(named)

    def sweep(self, keep: Mask) -> None:
        """Keep only the marked rows."""
        places = np.flatnonzero(keep)
        self.limit = max(_FEW_ROWS, _SLACK * len(places))
        self._rows.pick(places, self.limit + max(_FEW_ROWS, self.limit // 4))
        self.forget()

    def sweep_at(self, limit: int) -> None:
        """Sweep once there are more rows than this."""
        self.limit = limit

    def cut(self, time: int, sequence: int) -> None:
        """Let go of the rows before (time, sequence) in window order."""
        if not len(self):
            return
        first, last, times = 0, len(self), self.times
        if times is not None:
            first, last = (int(np.searchsorted(times, time, side)) for side in ("left", "right"))
        first += int(np.searchsorted(self.columns().sequence[first:last], sequence))
        self._rows.drop_front(first)

    def clear(self) -> None:
        """Let go of every row."""
        self._rows.drop_front(len(self))
        self.forget()

    def take_rows(self, places: Places) -> Table:
        """The rows at some places; columns without a row before the first came."""
        if len(self):
            return self.table().take(places)
        word = np.array([""], dtype=object)
        columns = {
            name: ColumnData(
                kind, np.zeros(0, type_of(kind).dtype), None, word if kind is Kind.TEXT else None
            )
            for name, kind in self.kinds.items()
        }
        return Table(columns, 0)


class _Roomy(Sliding):
    """Sliding columns with room for all rows until the next sweep, which moves them in place."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def pick(self, places: Places, room: int) -> None:
        """Keep only the rows at these places, ascending; ``room`` rows are expected before long."""
        self.room = room
        for name, array in self._arrays.items():
            array[: len(places)] = self[name][places]
        self._head, self._tail = 0, len(places)

    def _reserve(self, count: int) -> None:
        capacity = len(next(iter(self._arrays.values())))
        if self._tail + count <= capacity:
            return
        live = len(self)
        fits = live + count <= capacity <= 4 * max(self.room, live + count)
        capacity = capacity if fits else max(self.room, live + count)
        for name, array in self._arrays.items():
            room = array if fits else np.empty((capacity, *array.shape[1:]), array.dtype)
            room[:live] = self[name].copy() if fits else self[name]
            self._arrays[name] = room
        self._head, self._tail = 0, live


class _Held(NamedTuple):
    """The rows taken whole, and bounds on y of the players that are not."""

    mask: Mask
    low: float
    high: float


def _extremes(value: Floats, plays: Mask, size: int) -> _Held:
    """The ``size`` players of largest and those of smallest y; of equal ones the newer.

    Never by priority: rows that stay behind in a tie would be those of low priority, and be drawn
    too seldom. With a size of 0 nothing is held, and the bounds are the smallest and largest y.
    """
    mask = np.zeros(len(value), np.bool_)
    players = np.flatnonzero(plays)
    playing = value[players]
    if len(playing) <= size:
        mask[players] = True
        return _Held(mask, 0.0, 0.0)
    if not size:
        return _Held(mask, float(playing.min()), float(playing.max()))
    top, bottom = np.empty((2, len(playing)), np.bool_)
    highest(playing, size, top)
    highest(-playing, size, bottom)
    mask[players] = top | bottom
    low, high = float(playing[bottom].max()), float(playing[top].min())
    # crossed bounds: so few players that each is among the largest or the smallest
    return _Held(mask, low, high) if low <= high else _Held(mask, 0.0, 0.0)


def _sampled(priority: Floats, held: Mask, size: int) -> Places:
    """The ``size`` rows of highest priority that are not held, the highest first."""
    near = np.empty(len(priority), np.bool_)
    likely_highest(priority, size + int(np.count_nonzero(held)), near)
    rows = np.flatnonzero(near & ~held)[::-1]  # of equal ones the newer first
    return rows[np.argsort(-priority[rows], kind="stable")[:size]]


def _sampled_by_stratum(
    priority: Floats, stratum: Codes, strata: int, held: Mask, size: int
) -> Places:
    """``sampled`` of each stratum, stratum after stratum."""
    rest = np.flatnonzero(~held)
    codes = stratum[rest]
    keep = np.empty(len(rest), np.bool_)
    room = np.bincount(codes, minlength=strata)
    highest_by_stratum(priority[rest], codes, size, room, keep)
    rows = rest[keep]
    order: Places = rows[np.lexsort((-priority[rows], stratum[rows]))]
    return order


class WindowSample:
    """Candidates for a uniform sample of the window, and its rows of extreme values.

    Measure 0 is COUNT(*); measures are numbered from 1. Window order is (time, sequence). What is
    drawn depends on the seed and on the rows inside alone, not on how they were cut into batches;
    with replacement from a count window also on those before.

    O(1) amortised a row, whatever the size r; r + r ln(N / r) rows are kept of N, times a constant
    (values that only fall or only rise keep more: each is then the largest of those yet to leave).
    """

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        measures: int,
        sampling: Sampling,
        window: CountWindow | TimeWindow,
    ) -> None:
        self.sampling, self.window = sampling, window
        whole = sampling.taken_whole if measures else 0
        self._extremes = max(1, whole)  # one of each is the window's range
        self._strata = Strata(sampling.strata, kinds)
        self._rows = _Candidates(kinds, measures)
        self._chains: Chains | None = None
        self._sampler: _Sampler
        if not sampling.replacement:
            self._sampler = _ByPriority(sampling.size + 2 * whole, sampling.seed, self._strata)
        elif isinstance(window, CountWindow):
            self._sampler = self._chains = Chains(sampling.size, window.size, sampling.seed)
        else:
            self._sampler = _ByCopies(sampling.size, sampling.seed)
        self._arrived = 0
        self._newest: int | None = None
        self._drawn: dict[tuple[int, int], Drawing] = {}

    def number(self, table: Table) -> tuple[Places, Codes]:
        """The arrival number and the stratum of rows that are about to be inserted."""
        first = self._arrived
        self._arrived += table.rows
        return np.arange(first, self._arrived, dtype=np.int64), self._strata.codes(table)

    def strata_of(self, table: Table) -> Codes:
        """The stratum of each row as a code, all 0 without strata; inserted before others."""
        return self._strata.codes(table)

    def refuse(self, table: Table, times: Places | None) -> None:
        """Before anything changes: rows out of order, or of types that do not go together."""
        if times is not None and len(times) and self._chains is not None:
            self._refuse_disorder(times)
        self._rows.agree(table)

    def insert(
        self,
        table: Table,
        measures: Sequence[Measure],
        times: Places | None,
        sequence: Places,
        stratum: Codes,
    ) -> None:
        """Rows came in: ascending in window order, though perhaps older than some inside."""
        if not table.rows:
            return
        self._drawn.clear()
        if times is not None and self._chains is not None:
            self._refuse_disorder(times)
            self._newest = int(times[-1])
        everyone = np.ones(table.rows, np.bool_)
        priority, arrival, taken = self._sampler.arrive(sequence)
        columns = _Columns(
            stratum, sequence, priority, arrival,
            [one.values for one in measures],
            [everyone if one.players is None else one.players for one in measures],
        )  # fmt: skip
        if taken is not None or table.rows > self._rows.limit:
            # rows that do not outlive the end of their own batch are never kept
            places = np.flatnonzero(self._mark(columns, taken))
            table, columns = table.take(places), columns.take(places)
            times = None if times is None else times[places]
        self._strata.insert(stratum)
        if table.rows:
            self._rows.add(table, times, columns)
        if self._rows.crowded:
            self._rows.sweep(self._mark(self._rows.columns()))

    def _refuse_disorder(self, times: Places) -> None:
        """Chains know the order of arrival alone: refuse any other."""
        if self._newest is not None and times[0] < self._newest:
            raise StateError(
                "rows out of order: a sample with replacement of a count window takes them as "
                "they arrive; leave replacement out. Nothing changed"
            )

    def _mark(self, columns: _Columns, taken: Mask | None = None) -> Mask:
        keep = self._sampler.mark(columns) if taken is None else taken
        _mark_extremes(columns, self._extremes, keep)
        return keep

    def expire(self, oldest: tuple[int, int] | None, left: Codes) -> None:
        """Rows before ``oldest`` = (time or 0, sequence) left, of these strata; None: all did."""
        self._drawn.clear()
        if oldest is None:
            self._strata.clear()
            self._rows.clear()
            if self._chains is not None:
                self._chains.begin()
            return
        self._strata.expire(left)
        self._rows.cut(*oldest)

    def clear(self) -> None:
        """Let go of everything; the rows inside may be inserted again, in window order."""
        self.expire(None, np.zeros(0, np.int32))
        self._newest = None

    def drawn(self, measure: int, size: int | None = None) -> Drawing:
        """A sample for questions about a measure: ``size`` rows, or as many as are kept."""
        kept = self.sampling.size
        asked = kept if size is None else size
        if not 1 <= asked <= kept:
            raise ScriptError(
                f"a sample of {asked:,} rows; {kept:,} are kept",
                hint=f"ask for 1 to {kept:,}, or keep more with Sampling(size=…)",
            )
        found = self._drawn.get((measure, asked))
        if found is None:
            found = self._drawn[measure, asked] = self._draw(measure, asked)
        return found

    def _draw(self, measure: int, size: int) -> Drawing:
        columns, population = self._rows.columns(), self._strata.population
        count, inside = len(columns.sequence), int(population.sum())
        value, plays = np.zeros(count, np.float64), np.ones(count, np.bool_)
        if measure:
            value, plays = columns.values[measure - 1], columns.plays[measure - 1]
        heads = self._sampler.heads(columns)
        whole = 0 if heads is not None else self._whole(measure, size)

        def drawing(
            places: Places, whole: int, starts: Places, parts: Places, population: Places,
            held: _Held, *, complete: bool = False,
        ) -> Drawing:  # fmt: skip
            return Drawing(
                self._rows.take_rows(places), whole, starts, population, value[places],
                plays[places], held.low, held.high, complete, heads is not None,
                self._strata.table(parts),
            )  # fmt: skip

        fits = population.max(initial=0) <= size + 2 * whole if heads is None else not inside
        if fits:  # every row of the window, taken whole
            nothing = _Held(np.zeros(0, np.bool_), 0.0, 0.0)
            start = np.zeros(1, np.int64)
            return drawing(np.arange(count), count, start, _NONE, _NONE, nothing, complete=True)
        held = _extremes(value, plays, whole)
        if heads is not None:
            places, parts = heads[:size], np.zeros(1, np.int64)
            starts = np.array([0, len(places)])
            return drawing(places, 0, starts, parts, np.array([inside]), held)
        stratum, strata = columns.stratum, len(population)
        if self._strata.columns:
            drawn = _sampled_by_stratum(columns.priority, stratum, strata, held.mask, size)
        else:
            drawn = _sampled(columns.priority, held.mask, size)
        rest = population - np.bincount(stratum[held.mask], minlength=strata)
        parts = np.flatnonzero(rest)
        counts = np.bincount(stratum[drawn], minlength=strata)[parts]
        starts = np.concatenate([[0], np.cumsum(counts)])
        first = np.flatnonzero(held.mask)
        places = np.concatenate([first, drawn])
        return drawing(places, len(first), starts, parts, rest[parts], held)

    def _whole(self, measure: int, size: int) -> int:
        """How many rows of either extreme are taken whole."""
        if measure == 0:
            return 0
        declared = self.sampling.extremes
        return extremes_of(size) if declared is None else declared

    def looks_at(self, size: int) -> int:
        """How many rows a question to a sample of that size looks at, about."""
        strata = int(np.count_nonzero(self._strata.population)) if self._strata.columns else 1
        whole = min(self.sampling.taken_whole, extremes_of(size))
        return size * max(1, strata) + 2 * whole

    @property
    def nbytes(self) -> int:
        """Bytes held: rows, their text, counts of strata, chains."""
        chains = 0 if self._chains is None else self._chains.nbytes
        return self._rows.nbytes + self._strata.nbytes + chains

    def facts(self) -> dict[str, Any]:
        """What a checkpoint says besides arrays."""
        return {
            "arrived": self._arrived,
            "sample": {
                "dictionaries": self._rows.dictionaries(),
                "limit": self._rows.limit,
                "newest": self._newest,
                "strata": self._strata.facts(),
                "chains": None if self._chains is None else self._chains.facts(),
            },
        }

    def arrays(self) -> dict[str, Array]:
        """What a checkpoint keeps."""
        rows = {f"row {name}": array for name, array in self._rows.arrays().items()}
        chains = {} if self._chains is None else self._chains.arrays()
        return {**rows, **chains, "population": self._strata.population}

    def restore(self, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Take the place of a sample that was written to a checkpoint, and go on as it would."""
        own = facts["sample"]
        rows = {n.removeprefix("row "): a for n, a in arrays.items() if n.startswith("row ")}
        self._rows.restore(own["dictionaries"], rows)
        self._rows.sweep_at(int(own["limit"]))
        self._arrived, self._newest = facts["arrived"], own["newest"]
        self._strata.restore(own["strata"], arrays["population"].view(np.int64))
        if self._chains is not None:
            self._chains.restore(own["chains"], arrays)
        self._drawn.clear()
