"""The state of a live engine, and everything that changes it.

read_batch               reads and checks a batch, and sorts it by event time
insert, delete           add and remove rows; they return deltas, that is, changes of the sums
commit                   adds the deltas and expires the oldest rows, which completes one slide
refine, drop, enumerate  add predicates, drop one, or abandon the atoms
fit                      adapts the scales to the values of a batch, and converts the sums exactly

A *scale* determines the integer digits into which a measure's values are split. A *tag* is a row's
atom, or the targets that hold on it (``ids.state.summaries``). The *players* of a measure are the
rows whose value is not NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ids.engine.settings import Settings
from ids.errors import DataError, StateError
from ids.exact import big_attribution, big_worth, sum_powers, unit_of
from ids.games import Game
from ids.kernels import add_rows, survey, touched_rows
from ids.model import (
    DIGIT_BITS,
    MAX_ROWS,
    Changelog,
    ColumnData,
    CountWindow,
    Expression,
    Kind,
    Scale,
    Table,
    TimeWindow,
    columns_of,
    lowest_bit,
    nulls,
    render,
)
from ids.predicates import Measure, evaluate_measure, holds, measure, truth
from ids.source import Source, refusal
from ids.state import (
    Array,
    Enumerated,
    Index,
    Refined,
    Retained,
    RowBlock,
    Summaries,
    Triple,
    WindowSample,
)

if TYPE_CHECKING:
    from ids.engine.promotion import Provisional

Words = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
Rows = slice | npt.NDArray[np.intp]

OUTCOMES = 3  # a predicate is NULL, FALSE or TRUE

_EVERYONE = np.zeros(0, np.bool_)
_NO_PLACES = np.zeros(0, np.int64)
_MARGIN = 8  # spare bits above the largest value
_SHOWN = 6  # the number of columns shown for a deleted row in an error message


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns and measures that the engine reads from every batch.

    kinds     the columns and their types
    measures  bound expressions
    order_by  the event-time column, if any
    """

    kinds: Mapping[str, Kind]
    measures: tuple[Expression, ...]
    order_by: str | None

    def evaluate(self, table: Table) -> tuple[Measure, ...]:
        """Evaluate each measure on these rows."""
        return tuple(evaluate_measure(expression, table) for expression in self.measures)


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch sorted in window order, without late rows.

    ``newest`` is the latest event time seen so far.
    """

    table: Table
    measures: tuple[Measure, ...]
    times: Words | None
    newest: int | None
    late: int

    def take(self, rows: Rows) -> Batch:
        """Return a batch with only these rows."""
        return Batch(
            self.table.take(rows),
            tuple(_take(one, rows) for one in self.measures),
            None if self.times is None else self.times[rows],
            self.newest,
            self.late,
        )


def _take(one: Measure, rows: Rows) -> Measure:
    """Return some rows of a measure, so that the other rows do not affect the scale."""
    values = np.ascontiguousarray(one.values[rows])
    players = None if one.players is None else one.players[rows]
    _, largest, smallest = survey(values)
    return Measure(values, players, float(largest), float(smallest))


def read_batch(
    source: Source, schema: Schema, newest: int | None = None, lateness: int | None = None
) -> Batch:
    """Read, check and sort one batch, without changing the engine.

    A row is late if its time is more than ``lateness`` before the newest time seen up to that row,
    in this batch or earlier. If ``lateness`` is None, no row is late.
    """
    for name in schema.kinds:
        if name not in source.schema:
            raise refusal(name, source)
    read = source.read(schema.kinds)
    columns = {name: _of_kind(name, read.columns[name], k) for name, k in schema.kinds.items()}
    table = Table(columns, read.rows)
    measures = schema.evaluate(table)
    for expression, one in zip(schema.measures, measures, strict=True):
        bad = survey(one.values)[0]
        if bad >= 0:
            value = "NaN" if np.isnan(one.values[bad]) else "infinite"
            raise DataError(
                f"{render(expression)!r} is {value} in {source.where(int(bad))}; "
                "the batch was rejected, nothing changed"
            )
    if schema.order_by is None:
        return Batch(table, measures, None, newest, 0)
    times = _times(source, table, schema.order_by)
    return _ordered(Batch(table, measures, times, newest, 0), times, lateness)


def _of_kind(name: str, column: ColumnData, kind: Kind) -> ColumnData:
    """Check that a column has the expected type, and return it; all-NULL columns fit any."""
    if column.kind is kind:
        return column
    if column.valid is None or column.valid.any():
        raise DataError(
            f"column {name!r} is of type {column.kind.value} in this batch, of type "
            f"{kind.value} before; the batch was rejected, nothing changed"
        )
    return nulls(kind, len(column), whole=False)


def _times(source: Source, table: Table, order_by: str) -> Words:
    column = table.columns[order_by]
    if column.kind is Kind.TEXT:
        raise DataError(f"cannot order by text column {order_by!r}; order by a time or a number")
    if column.valid is not None:
        row = int(np.flatnonzero(~column.valid)[0])
        raise DataError(
            f"NULL event time {order_by!r} in {source.where(row)}; "
            "the batch was rejected, nothing changed"
        )
    with np.errstate(invalid="ignore"):
        times = column.values.astype(np.int64, copy=False)
    fractions = np.flatnonzero(times.astype(column.values.dtype) != column.values)
    if len(fractions):
        raise DataError(
            f"{order_by!r} is {column.values[fractions[0]]}, not a whole number, in "
            f"{source.where(int(fractions[0]))}; order by a time or a whole number. "
            "Nothing changed"
        )
    return times


def _ordered(batch: Batch, times: Words, lateness: int | None) -> Batch:
    """Return the batch sorted by time, without late rows."""
    if not len(times):
        return batch
    newest = batch.newest
    start = times[0] if newest is None else newest
    seen = np.maximum.accumulate(np.concatenate([[start], times]))[:-1]
    on_time = np.ones(len(times), np.bool_)
    if lateness is not None:
        on_time = times >= np.maximum(seen, -(2**63) + lateness) - lateness  # never wraps around
    latest = max(int(seen[-1]), int(times[-1]))
    batch = replace(batch, newest=latest, late=int(np.sum(~on_time)))
    rows = np.flatnonzero(on_time)
    kept = times[rows]
    if len(kept) > 1 and bool(np.any(kept[1:] < kept[:-1])):
        rows = rows[np.argsort(kept, kind="stable")]
    elif on_time.all():
        return batch
    return batch.take(rows)


class Deleted(NamedTuple):
    """The rows that a changelog deletes, and where they were found.

    going   the rows to delete from the window
    places  their positions in the retained rows; None if no rows are retained
    undone  the positions of inserts in the same call that are cancelled by the other deletes
    """

    going: Batch
    places: Places | None
    undone: Places


class TaggedRows(NamedTuple):
    """The tags of some rows, and each measure's digits and players, to add or subtract them.

    Measure 0 counts rows. Its digits are zeros, and every row is a player (``players`` is empty).
    """

    tags: Array
    digits: Sequence[Words]
    players: Sequence[Bools]


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes per component, allocated but unused space included.

    summaries  sums of the window and of the predicates
    atoms      sums and signatures of the atoms
    retained   rows in the window (0 if none are retained)
    index      inverted indexes over the retained rows
    sampler    the sliding-window sample
    total      the sum of all these
    """

    summaries: int
    atoms: int
    retained: int
    index: int = 0
    sampler: int = 0

    @property
    def total(self) -> int:
        """The sum of all components."""
        return sum(astuple(self))


class Core:
    """The sums of every measure (measure 0 counts rows), the membership and the retained rows.

    schema       the columns and measures that are read from a batch
    membership   determines which sums a row changes
    retained     the rows in the window; empty for a changelog with ``retain=False``. The raw
                 columns are included only with ``retain=True`` (``has_raw``). For a changelog with
                 raw columns, each row has a hash of its contents, and rows are sorted by event
                 time if they have one
    index        finds retained rows by condition; None if no column is indexed
    sample       a sample of the window, if the engine keeps one
    provisional  predicates whose sums started from an estimate, keyed by name
    slides       the number of committed slides
    rounded      the measures whose scale rounds the value of some row in the window

    Other objects read a Core; only its own methods change it.
    """

    def __init__(
        self, schema: Schema, predicates: Mapping[str, Expression], settings: Settings
    ) -> None:
        window = settings.window
        self.schema = schema
        self.predicates = dict(predicates)
        self.membership: Refined | Enumerated = Refined(predicates)
        self.keeps_rows = settings.retain or not isinstance(window, Changelog)
        expected = window.size if isinstance(window, CountWindow) else 0
        self.retained = Retained(schema.kinds if settings.retain else {}, expected)
        self.measures = [Summaries(Scale(0, 0, 0), len(predicates))]
        self.index = Index(settings.index, schema.kinds) if settings.index else None
        self.sample: WindowSample | None = None
        if settings.sampling is not None and not isinstance(window, Changelog):
            count = len(schema.measures)
            self.sample = WindowSample(schema.kinds, count, settings.sampling, window)
        self.provisional: dict[str, Provisional] = {}
        self.rows = 0
        self.slides = 0
        self.rounded: frozenset[int] = frozenset()
        self._degree = settings.degree
        self._atom_limit = settings.atom_limit
        self._window = window
        self._relieved: set[int] = set()  # measures that may no longer need rounding
        self._changelog = isinstance(window, Changelog) and self.has_raw

    @property
    def has_raw(self) -> bool:
        """Whether the raw columns are retained, so that any condition can be evaluated."""
        return bool(self.retained.kinds)

    @property
    def exceeds_limit(self) -> bool:
        """Whether the number of atoms exceeds the limit, in which case they must be abandoned."""
        # without predicates there is one atom, and no target that could replace it
        return bool(self.predicates) and self.membership.met > self._atom_limit

    @property
    def has_room(self) -> bool:
        """Whether the atoms are certain to stay within the limit if a predicate is added.

        A new predicate can split each live atom into three.
        """
        if not isinstance(self.membership, Refined):
            return True
        return OUTCOMES * len(self.membership.live) <= self._atom_limit

    def memory(self) -> Memory:
        """Return the currently allocated bytes by component."""
        return Memory(
            sum(s.window.nbytes + s.marginals.nbytes for s in self.measures),
            sum(s.atoms.nbytes for s in self.measures) + self.membership.nbytes,
            self.retained.nbytes,
            0 if self.index is None else self.index.nbytes,
            0 if self.sample is None else self.sample.nbytes,
        )

    # --- checkpoints --------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        """Return the part of the state that a checkpoint stores as JSON."""
        return {
            "sample": None if self.sample is None else self.sample.facts(),
            "kinds": {name: kind.value for name, kind in self.schema.kinds.items()},
            "order_by": self.schema.order_by,
            "rows": self.rows,
            "scales": [asdict(s.scale) for s in self.measures],
            "rounded": sorted(self.rounded),
            "refined": isinstance(self.membership, Refined),
            "dictionaries": self.retained.dictionaries(),
        }

    def arrays(self) -> dict[str, Array]:
        """Return the part of the state that a checkpoint stores as arrays."""
        arrays: dict[str, Array] = {}
        for number, summaries in enumerate(self.measures):
            arrays[f"window {number}"] = summaries.window
            arrays[f"marginals {number}"] = summaries.marginals
            arrays[f"atoms {number}"] = summaries.atoms
        if isinstance(self.membership, Refined):
            arrays["live"] = self.membership.live
            arrays["truths"] = self.membership.refinement.truths[self.membership.live]
        arrays.update({f"row {name}": array for name, array in self.retained.arrays().items()})
        if self.sample is not None:
            arrays.update({f"sample {name}": array for name, array in self.sample.arrays().items()})
        return arrays

    def restore(
        self,
        facts: Mapping[str, Any],
        arrays: Mapping[str, Array],
        targets: Mapping[str, Expression],
    ) -> None:
        """Restore the state from ``facts`` and ``arrays``; ``targets`` are for ``Enumerated``."""
        self.rows, self.rounded = facts["rows"], frozenset(facts["rounded"])
        if facts["refined"]:
            refined = Refined(self.predicates)
            refined.preload(arrays["truths"].view(np.int8), arrays["live"].view(np.int64))
            self.membership = refined
        else:
            self.membership = Enumerated(targets)
        self.measures = [_summaries(n, scale, arrays) for n, scale in enumerate(facts["scales"])]
        if self.keeps_rows:
            rows = _part(arrays, "row ")
            self.retained.restore(facts["dictionaries"], rows, hashed=self._changelog)
            if self.index is not None:
                self.index.follow(self.retained)
        if self.sample is not None:
            self.sample.restore(facts["sample"], _part(arrays, "sample "))

    # --- one slide: rows are added and removed --------------------------------------------------

    def classify(self, batch: Batch) -> TaggedRows:
        """Compute the tags and digits for the rows of a batch."""
        digits, players = [_no_digits(batch.table.rows)], [_EVERYONE]
        for summaries, one in zip(self.measures[1:], batch.measures, strict=True):
            digits.append(summaries.cut(one.values))
            players.append(_EVERYONE if one.players is None else one.players)
        return TaggedRows(self.membership.assign(batch.table), digits, players)

    def tagged(self, rows: slice | Places = slice(None)) -> TaggedRows:
        """Return the atoms (tags) and the encoded values (digits) of retained rows."""
        tags = self.retained.tags[rows]
        each = [self.playing(m) for m in range(1, len(self.measures))]
        return TaggedRows(
            tags,
            [_no_digits(len(tags)), *(digits[rows] for digits, _ in each)],
            [_EVERYONE, *(players[rows] for _, players in each)],
        )

    def playing(self, number: int) -> tuple[Words, Bools]:
        """Return one measure's digits and players for all retained rows."""
        if not number or not len(self.retained):  # before the first row there are no columns yet
            return _no_digits(len(self.retained)), _EVERYONE
        return self.retained.digits(number), self.retained.players(number)

    def _deltas(self, rows: TaggedRows, sign: int, into: list[Words] | None = None) -> list[Words]:
        """Sum signed rows into one delta per measure, added to ``into`` if given."""
        return [
            self.membership.tally(
                summaries, rows.tags, rows.digits[m], rows.players[m], sign,
                None if into is None else into[m],
            )
            for m, summaries in enumerate(self.measures)
        ]  # fmt: skip

    def refuse_too_many(self, coming: int) -> None:
        """Raise if the window would have more rows than can be summed exactly."""
        if self.rows + coming > MAX_ROWS:
            raise StateError(
                f"a window of more than {MAX_ROWS:,} rows cannot be summed exactly; "
                "choose a shorter window. Nothing changed"
            )

    def block(self, batch: Batch, rows: TaggedRows) -> RowBlock:
        """Convert rows to the form in which they are stored; raise if that is impossible."""
        if not self.keeps_rows:
            return RowBlock({}, rows.tags)
        block = self.retained.block(
            batch.table, rows.tags, rows.digits[1:], rows.players[1:], batch.times,
            hashed=self._changelog,
        )  # fmt: skip
        if self.sample is not None:
            self.sample.refuse(batch.table, batch.times)
        return block

    def insert(
        self, batch: Batch, rows: TaggedRows, block: RowBlock, into: list[Words] | None = None
    ) -> list[Words]:
        """Insert rows; return their deltas, which ``commit`` adds."""
        if self.sample is not None:
            sequence, stratum = self.sample.number(batch.table)
            block = replace(block, sequence=sequence, stratum=stratum)
            self.sample.insert(batch.table, batch.measures, batch.times, sequence, stratum)
        if self.keeps_rows:
            moved = self.retained.insert(block)
            if self.index is not None:
                self.index.forget_from(moved)
        for provisional in self.provisional.values():
            provisional.add(self, batch.table, rows, 1)
        self.rows += batch.table.rows
        return self._deltas(rows, 1, into)

    def commit(self, deltas: list[Words] | None, newest: int | None) -> None:
        """Complete a slide: add the deltas and expire the rows that have left the window.

        ``newest`` is the latest event time seen.
        """
        self.slides += 1
        expire = self._count_expired(newest)
        if expire:
            deltas = self._leaving(slice(0, expire), deltas)
            self._expire(expire)
        if deltas is not None:
            self.membership.commit(self.measures, deltas)
        if self.keeps_rows:
            self.retained.forget()  # not before: the new rows were encoded with these codes
            if self.index is not None:
                self.index.follow(self.retained)
        for number in sorted(self.rounded & self._relieved):
            if not len(self.retained) or not self.retained.digits(number)[:, 0].any():
                self._refit(number, np.zeros(0))  # values that were rounded become exact again
        self._relieved.clear()

    def _count_expired(self, newest: int | None) -> int:
        """Return how many of the oldest rows have left the window.

        A time window without a slide ends at the newest row. With a slide, it ends at the next
        multiple of the slide.
        """
        window, times = self._window, self.retained.times
        if isinstance(window, CountWindow):
            return max(0, self.rows - window.size)
        if isinstance(window, TimeWindow) and newest is not None and times is not None:
            now = newest if window.slide is None else -(-newest // window.slide) * window.slide
            return int(np.searchsorted(times, now - window.duration, side="right"))
        return 0

    def _expire(self, count: int) -> None:
        self.rows -= count
        if self.sample is None:
            self.retained.expire(count)
            return
        left = self.retained.stratum[:count].copy()
        self.retained.expire(count)
        oldest, sequence, times = None, self.retained.sequence, self.retained.times
        if sequence is not None and len(sequence):
            oldest = 0 if times is None else int(times[0]), int(sequence[0])
        self.sample.expire(oldest, left)

    def _leaving(self, rows: slice | Places, into: list[Words] | None = None) -> list[Words]:
        """Return the deltas for retained rows that leave the window."""
        gone = self.tagged(rows)
        for provisional in self.provisional.values():
            provisional.add(self, self.retained.table().take(rows), gone, -1)
        self._relieved |= {n for n in self.rounded if gone.digits[n][:, 0].any()}
        return self._deltas(gone, -1, into)

    # --- deletes of a changelog -------------------------------------------------------------------

    def find_deleted(
        self, going: Batch, coming: Batch | None, where: Callable[[int], str]
    ) -> Deleted:
        """Find each deleted row in the window or among the inserts of the same call.

        Rows match if the values of their columns are equal. If several rows match, the oldest is
        deleted. Raises StateError if no row matches; ``where`` describes the position of a deleted
        row for the error message. The state does not change.
        """
        if not self.keeps_rows:
            return self._trusted(going, coming)
        if not self.has_raw:
            raise StateError(
                "this engine does not retain its rows, so it cannot find the row to delete; "
                "create it with retain=True"
            )
        places = self.retained.locate(going.table)
        missing = np.flatnonzero(places < 0)
        undone = _NO_PLACES
        if len(missing):
            undone = self._find_among(going.table.take(missing), coming)
            if (undone < 0).any():
                row = int(missing[np.flatnonzero(undone < 0)[0]])
                raise StateError(
                    f"deleted {where(row)} ({_shown(going.table, row)}) is not in the window; "
                    "the batch was rejected, nothing changed"
                )
        found = places >= 0
        return Deleted(going.take(np.flatnonzero(found)), places[found], undone)

    def _find_among(self, table: Table, coming: Batch | None) -> Places:
        """Find equal rows among the inserts of the same call; return positions, or -1 if none."""
        if coming is None or not coming.table.rows:
            return np.full(table.rows, -1, np.int64)
        scratch = Retained(self.schema.kinds)
        scratch.insert(scratch.block(coming.table, np.zeros(coming.table.rows, np.uint32)))
        return scratch.locate(table)

    def _trusted(self, going: Batch, coming: Batch | None) -> Deleted:
        """Accept deletes without retained rows if the remaining sums are possible."""
        if self._can_lose(going):
            return Deleted(going, None, _NO_PLACES)
        undone = self._find_among(going.table, coming)
        rest = going.take(np.flatnonzero(undone < 0))
        if rest.table.rows == going.table.rows or not self._can_lose(rest):
            raise StateError(
                "a deleted row is not in the window; the batch was rejected, nothing changed. "
                "Create the engine with retain=True to see which row"
            )
        return Deleted(rest, None, undone[undone >= 0])

    def _can_lose(self, going: Batch) -> bool:
        """Return whether the sums would still be possible after removing these rows.

        Removing a row that was never inserted can leave impossible sums, such as a negative count.
        Its value may also not be representable in the scale.
        """
        if not going.table.rows:
            return True
        if going.table.rows > self.rows:
            return False
        for summaries, one in zip(self.measures[1:], going.measures, strict=True):
            scale = summaries.scale
            if scale.digits and not scale.holds(one.values, one.largest):
                return False
        deltas = self._deltas(self.classify(going), -1)
        refined = isinstance(self.membership, Refined)
        after = [s.added(d, atoms=refined) for s, d in zip(self.measures, deltas, strict=True)]
        if isinstance(self.membership, Refined):
            self.membership.reclaim(self.measures[0])  # drop atoms that classify() added
            touched = touched_rows(deltas[0])
            after = [sums[touched] for sums in after]
        rows = after[0][:, 0]
        return all(s.possible(sums, rows) for s, sums in zip(self.measures, after, strict=True))

    def delete(self, going: Batch, places: Places | None) -> list[Words]:
        """Delete the rows at these positions; return their deltas.

        If ``places`` is None, no rows are retained, and the deltas are computed from ``going``.
        """
        self.rows -= going.table.rows
        if places is None:
            return self._deltas(self.classify(going), -1)
        deltas = self._leaving(places)
        ordered = not self._changelog or self.retained.times is not None
        self.retained.delete(places, ordered=ordered)
        if len(places) and self.index is not None:
            self.index.forget_from(int(places.min()))
        if self.sample is not None:
            self._redraw(self.sample)
        return deltas

    def _redraw(self, sample: WindowSample) -> None:
        """Rebuild the sample from the retained rows, which keep their arrival numbers."""
        sample.clear()
        sequence = self.retained.sequence
        if sequence is not None and len(sequence):
            table = self.retained.table()
            measures, strata = self.schema.evaluate(table), sample.strata_of(table)
            sample.insert(table, measures, self.retained.times, sequence, strata)

    # --- predicates are registered and dropped ----------------------------------------------------

    def refuse_unless_raw(self) -> None:
        """Raise if a new predicate cannot be evaluated on the rows in the window."""
        if not self.has_raw:
            raise StateError(
                "registering a predicate after rows have arrived requires retained rows; register "
                "it before the first batch, or create the engine with retain=True"
            )

    def refine(self, predicates: Mapping[str, Expression]) -> None:
        """Compute the atoms of these predicates exactly, evaluating each retained row once.

        If one predicate was added at the end, the existing atoms are split.
        """
        old = self.membership
        if isinstance(old, Refined) and list(predicates)[:-1] == [*self.predicates]:
            self._divide(old, predicates)
        else:
            fresh = Refined(predicates)
            if len(self.retained):
                self.retained.retag(fresh.assign(self.retained.table()))
            self.membership = fresh
            self._recount()
        self.predicates = dict(predicates)

    def _recount(self) -> None:
        """Sum the retained rows from scratch."""
        width = len(self.membership.names)
        self.measures = [Summaries(s.scale, width) for s in self.measures]
        if len(self.retained):
            self.membership.commit(self.measures, self._deltas(self.tagged(), 1))

    def _divide(self, old: Refined, predicates: Mapping[str, Expression]) -> None:
        """Split the atoms by the last of the predicates.

        Only the rows with the two rarer outcomes of the predicate are summed. Subtracting them from
        their atoms leaves the sums for the most frequent outcome. Sums are exact, so the result is
        bit-identical to a recount.
        """
        fresh = Refined(predicates)
        division = self._division(old, list(predicates.values())[-1])
        if len(division.parts):
            atoms, outcomes = np.divmod(division.parts, OUTCOMES)
            last = (outcomes - 1).astype(np.int8)
            truths = np.concatenate([old.refinement.truths[atoms], last[:, None]], axis=1)
            fresh.preload(truths, np.arange(len(truths)))
            self.retained.retag(division.number[division.part])
        self.measures = [self._parted(m, old, fresh, division) for m in range(len(self.measures))]
        self.membership = fresh

    def _division(self, old: Refined, condition: Expression) -> _Division:
        truths, atoms = np.zeros(0, np.int8), np.zeros(0, np.uint32)
        if len(self.retained):  # the tags of an empty window may belong to another membership
            truths = truth(condition, self.retained.table(set(columns_of(condition))))
            atoms = self.retained.tags.view(np.uint32)
        outcome = truths.astype(np.int64) + 1
        part = atoms * np.int64(OUTCOMES) + outcome
        counts = np.bincount(part, minlength=OUTCOMES * max(1, old.width))
        parts = np.flatnonzero(counts)
        number = np.zeros(len(counts), np.uint32)
        number[parts] = np.arange(len(parts), dtype=np.uint32)
        common = int(np.bincount(outcome, minlength=OUTCOMES).argmax())
        return _Division(part, parts, number, common)

    def _parted(self, number: int, old: Refined, fresh: Refined, division: _Division) -> Summaries:
        """Return the sums of one measure after the atoms are split by the new predicate."""
        before = self.measures[number]
        before.reserve(old.width)
        after = Summaries(before.scale, len(fresh.names), fresh.width)
        rare = division.part % OUTCOMES != division.common
        digits, players = self.playing(number)
        playing = rare & players if len(players) else rare
        tags = division.number[division.part]
        sums = after.tally(max(1, fresh.width), tags, digits, playing, 1)
        lost = after.tally(max(1, old.width), (division.part // OUTCOMES).astype(np.uint32),
                           digits, playing, -1)  # fmt: skip
        for place in np.flatnonzero(division.parts % OUTCOMES == division.common):
            atom = int(division.parts[place]) // OUTCOMES
            row = sums[place : place + 1]
            add_rows(row, before.atoms[atom : atom + 1], before.scale.layout)
            add_rows(row, lost[atom : atom + 1], before.scale.layout)
        after.add(sums[: fresh.width], np.arange(fresh.width), fresh.holds())
        return after

    def drop(self, name: str, targets: Collection[str]) -> None:
        """Drop a predicate, merging atoms that differ only in it; no rows are read.

        If the atoms were abandoned, they are rebuilt from the retained rows. Without raw columns,
        only ``targets`` are kept.
        """
        predicates = {n: e for n, e in self.predicates.items() if n != name}
        old = self.membership
        if isinstance(old, Refined):
            fresh, mapping = old.without(name, predicates)
            if len(self.retained):
                self.retained.retag(mapping[self.retained.tags.view(np.uint32)])
            groups, held = mapping[old.live], fresh.holds()
            for summaries in self.measures:
                summaries.reserve(old.width)
            self.measures = [s.regrouped(old.live, groups, held) for s in self.measures]
            self.membership = fresh
        elif self.has_raw or not self.rows:
            self.refine(predicates)
        else:
            kept = [t for t, each in enumerate(old.names) if each in targets]
            fewer = Enumerated({old.names[t]: old.targets[t] for t in kept})
            if len(self.retained):
                self.retained.retag(fewer.pack(old.unpack(self.retained.tags)[:, kept]))
            for summaries in self.measures:
                summaries.keep_marginals(kept)
            self.membership = fewer
        self.predicates = predicates

    def enumerate(
        self, bound: Mapping[str, Expression], over_names: Mapping[str, Expression]
    ) -> None:
        """Abandon the atoms, keeping only the sums of the targets, computed from the atoms.

        bound       each target as a condition over the table's columns
        over_names  the same targets as conditions over the registered names
        """
        old = self.membership
        if not isinstance(old, Refined):
            return
        targets = Enumerated(bound)
        held = old.judge(list(over_names.values()))
        if len(self.retained):
            packed = targets.pack(held)
            self.retained.retag(packed[self.retained.tags.view(np.uint32)])
        live = old.refinement.live()
        for summaries in self.measures:
            summaries.reserve(old.width)
            summaries.give_up_atoms([live[held[live, t]] for t in range(len(bound))])
        self.membership = targets

    def add_provisional(self, provisional: Provisional) -> None:
        """Add a provisional predicate, whose sums are updated on every slide from now on."""
        self.provisional[provisional.name] = provisional

    def remove_provisional(self, name: str) -> bool:
        """Remove a provisional predicate; return whether one with that name existed."""
        return self.provisional.pop(name, None) is not None

    # --- scales are adapted to the data -----------------------------------------------------------

    def fit(self, batch: Batch) -> None:
        """Widen each measure's scale so that the rows of a batch can be summed exactly.

        If no scale can represent both the largest value and the last bit of the smallest, what
        happens depends on the raw rows. If they are retained, small values are rounded in the sums
        until the large values have left the window, and until then answers are computed from the
        rows. Otherwise the batch is rejected, and the state does not change.
        """
        for number, one in enumerate(batch.measures, start=1):
            if number == len(self.measures):
                scale = self._fitted(number, one.values)
                first = self.measures[0]
                self.measures.append(Summaries(scale, len(first.marginals), len(first.atoms)))
                continue
            old = self.measures[number].scale
            if not old.digits:
                continue
            rounds = number in self.rounded
            lowest = old.grid if rounds else lowest_bit(one.values, old.grid)
            wider = old.widen(one.largest, lowest)
            if wider is None:
                self._refit(number, one.values)
            elif wider != old:
                self._widen(number, wider)

    def _widen(self, number: int, scale: Scale) -> None:
        """Change to a scale with more digits above or below the existing ones."""
        old = self.measures[number].scale
        self.measures[number].change_scale(scale)
        below = (old.grid - scale.grid) // DIGIT_BITS
        top = scale.digits - old.digits - below
        if len(self.retained):
            padded = np.pad(self.retained.digits(number), ((0, 0), (top, below)))
            self.retained.recut(number, padded)

    def _refit(self, number: int, coming: Floats) -> None:
        """Choose a new scale for the rows in the window and the rows of a batch."""
        old = self.measures[number]
        played = bool(old.window[0])
        kept = np.zeros(self.rows)
        if played:
            if not self.keeps_rows:
                raise _too_far_apart(coming)
            kept = self._values(number)
        scale = self._fitted(number, np.concatenate([kept, coming]))
        if scale == old.scale:
            return
        self.measures[number] = Summaries(scale, len(old.marginals), len(old.atoms))
        if len(self.retained):
            self.retained.recut(number, self.measures[number].cut(kept))
        if played:
            self._recount()

    def _values(self, number: int) -> Floats:
        """Return a measure's values on the retained rows, from raw columns or exact digits."""
        if not self.has_raw:
            return self.measures[number].scale.values_of(self.retained.digits(number))
        values, players = self._players(number)
        return np.where(players, values, 0.0)

    def _players(self, number: int) -> tuple[Floats, Bools]:
        """Evaluate a measure on the raw rows; return the values and which rows are players."""
        values, players = measure(self.schema.measures[number - 1], self.retained.table())
        return values, np.ones(len(values), np.bool_) if players is None else players

    def _fitted(self, number: int, values: Floats) -> Scale:
        """Return a scale for these values; record whether it rounds some of them."""
        largest = float(np.abs(values).max(initial=0.0))
        lowest = lowest_bit(values)
        scale = Scale.fit(values, largest, self._degree, margin=_MARGIN, lowest=lowest)
        rounds = bool(scale.digits and scale.grid > lowest)
        if rounds and not self.has_raw:
            raise _too_far_apart(values)
        self.rounded = self.rounded | {number} if rounds else self.rounded - {number}
        return scale

    # --- answers --------------------------------------------------------------------------------

    def worth(self, number: int, game: Game) -> float | None:
        """Return the aggregate of a measure, computed from the rows if the sums are rounded."""
        if number not in self.rounded:
            return self.measures[number].worth(game)
        values, players = self._players(number)
        window = sum_powers(values[players], unit_of(values[players]), game.degree)
        return None if window.rows[0] < game.nulls else float(big_worth(game, window)[0])

    def answer_rounded(self, number: int, game: Game, condition: Expression) -> Triple:
        """Compute (value, share, lift) from the rows, for a measure with rounded sums. O(rows)."""
        values, players = self._players(number)
        unit = unit_of(values[players])
        held = players & holds(condition, self.retained.table())
        window, item = (sum_powers(values[rows], unit, game.degree) for rows in (players, held))
        value, share, lift = (float(part[0]) for part in big_attribution(game, window, item))
        return value, share, lift


class _Division(NamedTuple):
    """How a new predicate splits the atoms.

    A part is the set of rows of an old atom on which the new predicate has the same outcome.

    part    int64[n]  the part of each row, 3 · atom + outcome
    parts   int64[p]  the parts that contain a row, ascending
    number  uint32[…] the new atom of each part, which is its position in ``parts``
    common  the most frequent outcome
    """

    part: Words
    parts: Words
    number: npt.NDArray[np.uint32]
    common: int


def _no_digits(rows: int) -> Words:
    """Return the digits of measure 0, which only counts rows."""
    return np.zeros((rows, 1), np.int64)


def _too_far_apart(values: Floats) -> StateError:
    largest = float(np.abs(values).max(initial=0.0))
    return StateError(
        f"values up to {largest:g} are too far from others in magnitude to be summed exactly; "
        "filter them upstream, or create the engine with retain=True. Nothing changed"
    )


def _part(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def _summaries(number: int, scale: dict[str, Any], arrays: Mapping[str, Array]) -> Summaries:
    window, marginals, atoms = (
        arrays[f"{name} {number}"].astype(np.int64) for name in ("window", "marginals", "atoms")
    )
    own = Scale(**{**scale, "centre": tuple(scale["centre"])})
    return Summaries.restored(own, window, marginals, atoms)


def _shown(table: Table, row: int) -> str:
    """Format the first columns of a row as text."""
    names = list(table.columns)
    shown = [f"{name} = {_value(table.columns[name], row)}" for name in names[:_SHOWN]]
    return ", ".join([*shown, "…"] if len(names) > _SHOWN else shown)


def _value(column: ColumnData, row: int) -> str:
    if column.valid is not None and not column.valid[row]:
        return "NULL"
    value = column.values[row].item()
    if column.dictionary is not None:
        return repr(column.dictionary[value])
    return str(np.datetime64(value, "us")) if column.kind is Kind.TIME else str(value)
