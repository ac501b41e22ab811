"""Random sampling from a sliding window; a sample can be drawn at any time.

    rows ─▶ the sampler marks rows it may need later ─▶ candidates ─▶ sample

*Candidates* are the rows that are kept because a later sample may need them. From time to time a
*sweep*, from the newest row to the oldest, drops those that are no longer needed. Which rows are
candidates depends on the sampler:

    without replacement                      the rows with the highest random priorities, in each
                                             stratum if there are strata
    with replacement from a time window      many independent samples of one row, called *copies*;
                                             in each, the row with the highest priority is drawn
    with replacement from a count window     the rows of a chain sample

The rows with the largest and smallest values are kept too. They are *taken whole*: they are counted
exactly instead of being sampled. A row is a *player* of a measure if its value y is not NULL. The
loops are in ``kernels/priority_sample.py`` and ``kernels/chain_sample.py``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ids.errors import ArgumentError, StateError, UnknownNameError
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

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]

Codes = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]
Key = tuple[Any, ...]

_NONE = np.zeros(0, np.int64)
_FEW_STRATA = 1024  # with at most this many unused codes, none is reused
_NAN = math.nan  # one object, so that a dict finds a NaN key by identity
_FEW_ROWS = 4096  # with fewer candidates, a sweep is not worth its cost
_SLACK = 3  # sweep when there are this many times as many rows as after the last sweep


class Strata:
    """The strata and their row counts; each combination of values (NULL is one) is a stratum.

    ``codes`` assigns a code to each stratum, and ``insert`` counts its rows. Once most codes have
    no rows, these codes are reused, so the state stays small even if new values keep arriving.
    """

    def __init__(self, columns: Sequence[str], kinds: Mapping[str, Kind]) -> None:
        for name in columns:
            if name not in kinds:
                raise UnknownNameError("column", name, kinds)
        self.columns = tuple(columns)
        self._kinds = {name: kinds[name] for name in columns}
        self._code: dict[Key, int] = {}
        self._free: list[int] = []
        self.population: Counts = np.zeros(0 if columns else 1, np.int64)

    def codes(self, table: Table) -> Codes:
        """Return each row's stratum code, assigning codes to new strata.

        Python code runs once per stratum.
        """
        if not self.columns:
            return np.zeros(table.rows, np.int32)
        if not table.rows:
            return np.zeros(0, np.int32)
        place: Counts = np.zeros(table.rows, np.int64)
        firsts: Counts = np.zeros(1, np.int64)
        for name in self.columns:
            own, width = _numbered(table.columns[name])
            firsts, place = _distinct(place * width + own, len(firsts) * width)
        keys = [self._values(table, int(row)) for row in firsts]
        known = np.array([self._number(key) for key in keys], np.int32)
        return known[place]

    def _values(self, table: Table, row: int) -> Key:
        return tuple(_value(table.columns[name], row) for name in self.columns)

    def _number(self, key: Key) -> int:
        code = self._code.get(key)
        if code is None:
            if self._free:
                code = self._free.pop()
            else:
                code = len(self.population)
                self.population = np.append(self.population, 0)
            self._code[key] = code
        return code

    def insert(self, codes: Codes) -> None:
        """Add new rows, one per code, to the counts."""
        self.population += self._counted(codes)
        if len(self._code) > _FEW_STRATA + 2 * int(np.count_nonzero(self.population)):
            gone = [key for key, code in self._code.items() if not self.population[code]]
            self._free += [self._code.pop(key) for key in gone]

    def expire(self, codes: Codes) -> None:
        """Subtract expired rows, one per code, from the counts."""
        self.population -= self._counted(codes)

    def _counted(self, codes: Codes) -> Counts | int:
        if not self.columns:
            return len(codes)
        return np.bincount(codes, minlength=len(self.population))

    def clear(self) -> None:
        """Set all counts to 0, but keep the codes."""
        self.population[:] = 0

    def table(self, codes: npt.NDArray[np.int64]) -> Table | None:
        """Return the values of these strata, one row each, or None if there are no strata."""
        if not self.columns:
            return None
        keys: dict[int, Key] = {code: key for key, code in self._code.items()}
        chosen = [keys[int(code)] for code in codes]
        return Table(
            {
                name: _column(self._kinds[name], [key[n] for key in chosen])
                for n, name in enumerate(self.columns)
            },
            len(chosen),
        )

    @property
    def nbytes(self) -> int:
        """The approximate size of the counts and values in bytes."""
        words = sum(len(str(value)) + 8 for key in self._code for value in key)
        return self.population.nbytes + words

    def facts(self) -> list[list[Any]]:
        """Return each stratum and its code, for a checkpoint."""
        return [[code, *key] for key, code in self._code.items()]

    def restore(self, facts: Sequence[Sequence[Any]], population: Counts) -> None:
        """Restore the strata from a checkpoint."""
        self._code = {tuple(_one_nan(v) for v in key): code for code, *key in facts}
        self.population = population.copy()
        used = set(self._code.values())
        self._free = [c for c in range(len(population)) if c not in used] if self.columns else []


def _numbered(column: ColumnData) -> tuple[Counts, int]:
    """Number the distinct values (NULL is one); return each row's number and an upper bound."""
    if column.kind is Kind.TEXT:
        words = 0 if column.dictionary is None else len(column.dictionary)
        own, width = column.values.astype(np.int64), words
    else:
        distinct, own = np.unique(column.values, return_inverse=True)
        own, width = own.ravel(), len(distinct)
    if column.valid is not None:
        own = np.where(column.valid, own, width)
    return own, width + 1


def _distinct(numbers: Counts, bound: int) -> tuple[Counts, Counts]:
    """Group equal numbers below ``bound``; return one row per group, and the group of each row."""
    if bound > 4 * len(numbers):
        _, firsts, place = np.unique(numbers, return_index=True, return_inverse=True)
        return firsts, place.ravel()
    row = np.full(bound, -1, np.int64)
    row[numbers] = np.arange(len(numbers))
    there = row >= 0
    return row[there], (np.cumsum(there) - 1)[numbers]


def _value(column: ColumnData, row: int) -> Any:
    if column.valid is not None and not column.valid[row]:
        return None
    if column.dictionary is not None:
        return column.dictionary[int(column.values[row])]
    return _one_nan(column.values[row].item())


def _one_nan(value: Any) -> Any:
    return _NAN if isinstance(value, float) and math.isnan(value) else value


def _column(kind: Kind, values: list[Any]) -> ColumnData:
    valid = np.array([value is not None for value in values], np.bool_)
    given = None if valid.all() else valid
    if kind is Kind.TEXT:
        words = [value or "" for value in values]
        dictionary = np.array([*words, ""], dtype=object)
        return ColumnData(kind, np.arange(len(words), dtype=np.int32), given, dictionary)
    dtype = {Kind.BOOLEAN: np.bool_, Kind.TIME: np.int64}.get(kind)
    filled = [0 if value is None else value for value in values]
    if kind is Kind.NUMBER:
        whole = all(isinstance(value, int) for value in filled)
        dtype = np.int64 if whole else np.float64
    return ColumnData(kind, np.array(filled, dtype), given)


class Drawing(NamedTuple):
    """A sample: the rows taken whole, then the rows drawn from each part.

    Each stratum is a part. Without strata, the whole window is one part.

    rows         raw columns: rows taken whole, then each part's rows by descending priority
    whole        the number of rows taken whole; each represents only itself
    starts       int64[p+1]   where each part's rows start, counted after the rows taken whole
    population   int64[p]     the number of window rows in each part, without those taken whole
    value        float64[n]   y of each row (0 for COUNT(*))
    plays        bool[n]      whether a row is a player
    low, high    bounds on y of the players that are not taken whole (0 if there are none)
    complete     whether every row of the window is taken whole, so that the result is exact
    replacement  whether a row may have been drawn more than once
    strata       the columns of the strata, one row per part; None if there are no strata
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
    """The columns that are kept for each candidate besides its raw columns, in window order.

    stratum   int32[n]
    sequence  int64[n]    arrival numbers
    priority  float64[n]  empty unless the sampler has one priority per row
    arrival   int64[n]    order of arrival; empty unless the sampler uses chains
    values    float64[n] for each measure
    plays     bool[n]     for each measure, whether the row is a player
    """

    stratum: Codes
    sequence: Places
    priority: Floats
    arrival: Places
    values: Sequence[Floats]
    plays: Sequence[Mask]

    def take(self, rows: npt.NDArray[np.intp]) -> _Columns:
        """Return the columns for these rows only."""
        return _Columns(
            self.stratum[rows],
            self.sequence[rows],
            self.priority[rows] if len(self.priority) else self.priority,
            self.arrival[rows] if len(self.arrival) else self.arrival,
            [values[rows] for values in self.values],
            [plays[rows] for plays in self.plays],
        )

    def named(self) -> dict[str, Array]:
        """Return all columns, keyed by their names in checkpoints."""
        found: dict[str, Array] = {"tag": self.stratum, "sequence": self.sequence}
        if len(self.priority):
            found["priority"] = self.priority
        if len(self.arrival):
            found["arrival"] = self.arrival
        for m, (values, plays) in enumerate(zip(self.values, self.plays, strict=True), start=1):
            found[f"y {m}"], found[f"plays {m}"] = values, plays
        return found


class _Arrival(NamedTuple):
    """What a sampler computes for new rows; ``taken`` if it decides immediately what to keep."""

    priority: Floats = np.zeros(0)
    arrival: Places = _NONE
    taken: Mask | None = None


class _Sampler(Protocol):
    """Decides which rows may be drawn later."""

    def arrive(self, sequence: Places) -> _Arrival:
        """Register new rows with these arrival numbers."""

    def mark(self, rows: _Columns) -> Mask:
        """Return a mask of the rows that must be kept; the rows are in window order."""

    def heads(self, rows: _Columns) -> Places | None:
        """Return the position of each copy's row, or None if sampling is without replacement."""


class _ByPriority:
    """Samples the ``size`` rows with the highest random priorities, in each stratum if any."""

    def __init__(self, size: int, seed: int, strata: Strata) -> None:
        self._size = size
        self._seed = np.uint64(seed % 2**64)
        self._strata = strata

    def arrive(self, sequence: Places) -> _Arrival:
        """Derive a priority from each arrival number."""
        priority = np.empty(len(sequence), np.float64)
        mix(self._seed, sequence, priority)
        return _Arrival(priority)

    def mark(self, rows: _Columns) -> Mask:
        """Mark rows with fewer than ``size`` newer rows of higher priority (in their stratum)."""
        keep = np.empty(len(rows.priority), np.bool_)
        if self._strata.columns:
            strata = len(self._strata.population)
            survivors_by_stratum(rows.priority, rows.stratum, strata, self._size, keep)
        else:
            likely_survivors(rows.priority, self._size, keep)
        return keep

    def heads(self, rows: _Columns) -> None:
        """Return None, because this sampler draws without replacement."""


class _ByCopies:
    """Samples with replacement: each of ``copies`` independent samples has one row."""

    def __init__(self, copies: int, seed: int) -> None:
        self._copies = copies
        self._seed = np.uint64(seed % 2**64)

    def arrive(self, sequence: Places) -> _Arrival:  # noqa: ARG002
        """Compute nothing, since priorities are derived from arrival numbers when needed."""
        return _Arrival()

    def mark(self, rows: _Columns) -> Mask:
        """Mark the rows that outrank every newer row in at least one copy."""
        keep = np.empty(len(rows.sequence), np.bool_)
        survivors_of_copies(self._seed, self._copies, rows.sequence, keep)
        return keep

    def heads(self, rows: _Columns) -> Places:
        """Return the position of each copy's row with the highest priority."""
        places = np.empty(self._copies if len(rows.sequence) else 0, np.int64)
        if len(places):
            highest_of_copies(self._seed, self._copies, rows.sequence, places)
        return places


class Chains:
    """A chain sample with replacement; each of its r chains has one sampled row.

    Rows are identified by their order of arrival, starting at 1. The state is O(r) numbers and the
    rows in the chains, about e (2.72) per chain.
    """

    def __init__(self, copies: int, window: int, seed: int) -> None:
        self._seed = np.uint64(seed % 2**64)
        self._window = window
        self._chains: Places = np.zeros((copies, 3), np.int64)
        self._heap: Places = np.zeros(copies, np.int64)
        self.arrived = 0
        self.begin()

    def begin(self) -> None:
        """Start with an empty window; arrival numbers continue, so that no draw is repeated."""
        self._begun = self.arrived
        begin_chains(self._chains, self._heap, self._begun)

    @property
    def nbytes(self) -> int:
        """The size of the chains in bytes."""
        return self._chains.nbytes + self._heap.nbytes

    def arrive(self, sequence: Places) -> _Arrival:
        """Register new rows, and mark those that are added to a chain."""
        rows = len(sequence)
        taken = np.empty(rows, np.bool_)
        first = self.arrived + 1
        run_chains(self._seed, self._chains, self._heap, self._begun, self._window, first, taken)
        self.arrived += rows
        return _Arrival(arrival=np.arange(first, first + rows), taken=taken)

    def mark(self, rows: _Columns) -> Mask:
        """Mark the rows that are still in a chain."""
        return self.held(rows.arrival)

    def held(self, arrivals: Places) -> Mask:
        """Mark the arrivals that are in a chain; ``arrivals`` must be ascending."""
        keep = np.empty(len(arrivals), np.bool_)
        mark_links(self._seed, self._chains, self._window, self.arrived, arrivals, keep)
        return keep

    def heads(self, rows: _Columns) -> Places:
        """Return the position of each chain's sampled row."""
        return np.searchsorted(rows.arrival, self.first()) if len(rows.arrival) else _NONE

    def first(self) -> Places:
        """Return the arrival number of each chain's sampled row; the window must not be empty."""
        heads = np.empty(len(self._heap), np.int64)
        head_arrivals(self._seed, self._chains, self._window, self.arrived, heads)
        return heads

    def arrays(self) -> dict[str, Array]:
        """Return the arrays for a checkpoint."""
        return {"chains": self._chains, "chain heap": self._heap}

    def facts(self) -> dict[str, Any]:
        """Return the facts for a checkpoint."""
        return {"arrived": self.arrived, "begun": self._begun}

    def restore(self, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Restore the chains from a checkpoint."""
        self.arrived, self._begun = int(facts["arrived"]), int(facts["begun"])
        self._chains = arrays["chains"].astype(np.int64)
        self._heap = arrays["chain heap"].astype(np.int64)


def _mark_extremes(rows: _Columns, size: int, keep: Mask) -> None:
    """Mark rows that may become one of the ``size`` largest or smallest values of a measure."""
    for y, plays in zip(rows.values, rows.plays, strict=True):
        among = slice(None) if plays.all() else np.flatnonzero(plays)
        playing = y[among]
        high = np.empty(len(playing), np.bool_)
        for priority in (playing, -playing):
            survivors(priority, size, high)
            keep[among] |= high


class _Candidates(Retained):
    """The rows that a later sample may need, in window order, with their ``_Columns``.

    Adding rows only copies them. A sweep runs once there are several times as many rows as after
    the last sweep, so each row is examined only a few times.
    """

    def __init__(self, kinds: Mapping[str, Kind], measures: int) -> None:
        super().__init__(kinds)
        self._rows: _Roomy = _Roomy(2 * _FEW_ROWS)
        self._measures = range(1, measures + 1)
        self.limit = _FEW_ROWS

    @property
    def crowded(self) -> bool:
        """Whether there are enough rows for a sweep to be worth its cost."""
        return len(self) > self.limit

    def columns(self) -> _Columns:
        """Return views of the columns that are kept besides the raw columns."""
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
        """Append rows; if some are older than existing rows, merge them in window order."""
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
        """Set the number of rows above which a sweep runs."""
        self.limit = limit

    def cut(self, time: int, sequence: int) -> None:
        """Drop the rows that precede (time, sequence) in window order."""
        if not len(self):
            return
        first, last, times = 0, len(self), self.times
        if times is not None:
            first, last = (int(np.searchsorted(times, time, side)) for side in ("left", "right"))
        first += int(np.searchsorted(self.columns().sequence[first:last], sequence))
        self._rows.drop_front(first)

    def clear(self) -> None:
        """Drop every row."""
        self._rows.drop_front(len(self))
        self.forget()

    def take_rows(self, places: Places) -> Table:
        """Return the rows at these positions; without any rows, return empty columns."""
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
    """Sliding columns with enough space until the next sweep, which works in place."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def pick(self, places: Places, room: int) -> None:
        """Keep only the rows at these ascending positions; prepare for ``room`` rows."""
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
    """A mask of the rows taken whole, and bounds on y for the other players."""

    mask: Mask
    low: float
    high: float


def _extremes(value: Floats, plays: Mask, size: int) -> _Held:
    """Return the ``size`` players with the largest y and those with the smallest.

    Among equal values, newer rows are taken. Breaking ties by priority would leave rows with low
    priorities, which would be drawn too rarely. If ``size`` is 0, no row is taken, and the bounds
    are the smallest and the largest y.
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
    # if the bounds cross, every player is among the largest or the smallest
    return _Held(mask, low, high) if low <= high else _Held(mask, 0.0, 0.0)


def _sampled(priority: Floats, held: Mask, size: int) -> Places:
    """Return the ``size`` rows with the highest priorities that are not held, highest first."""
    near = np.empty(len(priority), np.bool_)
    likely_highest(priority, size + int(np.count_nonzero(held)), near)
    rows = np.flatnonzero(near & ~held)[::-1]  # among equal priorities, newer rows come first
    return rows[np.argsort(-priority[rows], kind="stable")[:size]]


def _sampled_by_stratum(
    priority: Floats, stratum: Codes, strata: int, held: Mask, size: int
) -> Places:
    """Return the result of ``_sampled`` for each stratum, concatenated."""
    rest = np.flatnonzero(~held)
    codes = stratum[rest]
    keep = np.empty(len(rest), np.bool_)
    room = np.bincount(codes, minlength=strata)
    highest_by_stratum(priority[rest], codes, size, room, keep)
    rows = rest[keep]
    order: Places = rows[np.lexsort((-priority[rows], stratum[rows]))]
    return order


class WindowSample:
    """A uniform sample of the window, together with the rows that have extreme values.

    Measures are numbered from 1; measure 0 is COUNT(*). Window order is (time, sequence). The
    sample depends on the seed and the rows in the window, but not on how rows are batched. With
    replacement from a count window, it also depends on earlier rows.

    The cost is O(1) amortised per row, for any sample size r. Of N rows, a constant times
    r + r ln(N / r) are kept. More are kept if values keep rising or keep falling, because each row
    is then among the extremes at some time.
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
        self._extremes = max(1, whole)  # at least one, to know the range of the window's values
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
        """Assign arrival numbers and strata to rows that will be inserted, and return them."""
        first = self._arrived
        self._arrived += table.rows
        return np.arange(first, self._arrived, dtype=np.int64), self._strata.codes(table)

    def strata_of(self, table: Table) -> Codes:
        """Return the stratum code of each row, which is 0 if there are no strata."""
        return self._strata.codes(table)

    def refuse(self, table: Table, times: Places | None) -> None:
        """Raise if rows are out of order or their numeric types cannot be mixed."""
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
        """Insert rows sorted in window order; they may be older than existing rows."""
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
            # rows that no later sample can need are not stored at all
            places = np.flatnonzero(self._mark(columns, taken))
            table, columns = table.take(places), columns.take(places)
            times = None if times is None else times[places]
        self._strata.insert(stratum)
        if table.rows:
            self._rows.add(table, times, columns)
        if self._rows.crowded:
            self._rows.sweep(self._mark(self._rows.columns()))

    def _refuse_disorder(self, times: Places) -> None:
        """Raise if a row is older than an earlier one, because chains need rows in order."""
        if self._newest is not None and times[0] < self._newest:
            raise StateError(
                "rows out of order: a sample with replacement of a count window requires rows in "
                "order; leave replacement out. Nothing changed"
            )

    def _mark(self, columns: _Columns, taken: Mask | None = None) -> Mask:
        keep = self._sampler.mark(columns) if taken is None else taken
        _mark_extremes(columns, self._extremes, keep)
        return keep

    def expire(self, oldest: tuple[int, int] | None, left: Codes) -> None:
        """Expire the rows before ``oldest`` = (time or 0, sequence), or all rows if it is None.

        left  the strata of the expired rows
        """
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
        """Drop all rows; they may be inserted again in window order."""
        self.expire(None, np.zeros(0, np.int32))
        self._newest = None

    def drawn(self, measure: int, size: int | None = None) -> Drawing:
        """Return a sample of ``size`` rows for a measure; by default, the largest possible."""
        kept = self.sampling.size
        asked = kept if size is None else size
        if not 1 <= asked <= kept:
            raise ArgumentError(
                f"cannot draw a sample of {asked:,} rows: {kept:,} are kept",
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
        if fits:  # every row of the window is taken whole
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
        """Return how many of the largest (and of the smallest) values are taken whole."""
        if measure == 0:
            return 0
        declared = self.sampling.extremes
        return extremes_of(size) if declared is None else declared

    def looks_at(self, size: int) -> int:
        """Estimate how many rows are read to draw a sample of this size."""
        strata = int(np.count_nonzero(self._strata.population)) if self._strata.columns else 1
        whole = min(self.sampling.taken_whole, extremes_of(size))
        return size * max(1, strata) + 2 * whole

    @property
    def nbytes(self) -> int:
        """The size of rows, text, strata and chains in bytes."""
        chains = 0 if self._chains is None else self._chains.nbytes
        return self._rows.nbytes + self._strata.nbytes + chains

    def facts(self) -> dict[str, Any]:
        """Return the facts for a checkpoint."""
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
        """Return the arrays for a checkpoint."""
        rows = {f"row {name}": array for name, array in self._rows.arrays().items()}
        chains = {} if self._chains is None else self._chains.arrays()
        return {**rows, **chains, "population": self._strata.population}

    def restore(self, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Restore the sample from a checkpoint."""
        own = facts["sample"]
        rows = {n.removeprefix("row "): a for n, a in arrays.items() if n.startswith("row ")}
        self._rows.restore(own["dictionaries"], rows)
        self._rows.sweep_at(int(own["limit"]))
        self._arrived, self._newest = facts["arrived"], own["newest"]
        self._strata.restore(own["strata"], arrays["population"].view(np.int64))
        if self._chains is not None:
            self._chains.restore(own["chains"], arrays)
        self._drawn.clear()
