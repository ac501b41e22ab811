"""The state of a live engine, and everything that changes it.

insert, delete ─▶ deltas ─▶ commit, with the expiry of the oldest rows: one slide
refine, drop, enumerate     predicates come and go; atoms divide, merge, or are given up
fit                         scales follow the data, sums are carried over exactly
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ids.engine.batches import Batch, Schema
from ids.engine.settings import Settings, Window
from ids.errors import ScriptError, StateError, UnknownNameError
from ids.exact import big_attribution, big_worth, sum_powers, unit_of
from ids.games import Game
from ids.kernels import add_rows, touched_rows
from ids.model import (
    DIGIT_BITS,
    MAX_ROWS,
    Changelog,
    CountWindow,
    Expression,
    Kind,
    Name,
    Scale,
    TimeWindow,
    columns_of,
)
from ids.plan import named_in, over_names
from ids.predicates import bind_predicate, holds, measure, refuse_constant_tests, truth
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
    fit,
    grid,
    lowest_bit,
    uncut,
    widen,
    within,
    worth,
)

if TYPE_CHECKING:
    from ids.engine.promotion import Provisional

Words = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]

_EVERYONE = np.zeros(0, np.bool_)
_MARGIN = 8  # bits of head-room over the largest value
_OUTCOMES = 3  # of a predicate: NULL, FALSE, TRUE


class TaggedRows(NamedTuple):
    """Rows ready to be added or taken away: tags, and each measure's digits and players.

    Measure 0 counts rows: its digits are zeros, and everyone plays (``players`` is empty).
    """

    tags: Array
    digits: Sequence[Words]
    players: Sequence[Bools]


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of each component, in the paper's own categories; room to spare included.

    summaries  the window's and the predicates' sums
    atoms      the atoms' sums and signatures
    retained   the rows inside (0 when summaries are all there is)
    index      inverted indexes over the rows inside
    sampler    sliding-window samples
    """

    summaries: int
    atoms: int
    retained: int
    index: int = 0
    sampler: int = 0

    @property
    def total(self) -> int:
        """All of it."""
        return sum(astuple(self))


class Core:
    """Summaries of every measure (the first counts rows), one membership, one retained window.

    A changelog with ``retain=False`` keeps no row, so its ``retained`` stays empty; raw columns are
    there only with ``retain=True`` (``has_raw``). ``index``, ``sample`` and the sums of
    ``provisional`` predicates follow the rows inside. ``slides`` counts commits. ``rounded`` are
    the measures whose scale rounds some row inside. Where an upstream says what leaves (a
    changelog), retained rows carry a hash of their contents, and stand in no order but that of
    their times, if they have any.

    Other objects read a Core; it alone changes itself.
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
        self.index = Index(settings.index, schema.kinds)
        self.sample: WindowSample | None = None
        if settings.sampling is not None and not isinstance(window, Changelog):
            count = len(schema.measures)
            self.sample = WindowSample(schema.kinds, count, settings.sampling, window)
        self.provisional: dict[str, Provisional] = {}
        self.rows = 0
        self.slides = 0
        self.rounded: frozenset[int] = frozenset()
        self._relieved: set[int] = set()  # rounded, and a row that needed the top digit has left
        self._changelog = isinstance(window, Changelog) and self.has_raw

    def restore(
        self,
        rows: int,
        rounded: Iterable[int],
        measures: Sequence[Summaries],
        membership: Refined | Enumerated,
        dictionaries: Mapping[str, Sequence[str]],
        arrays: Mapping[str, Array],
    ) -> None:
        """Take the place of a core that was written to a checkpoint."""
        self.rows, self.rounded = rows, frozenset(rounded)
        self.measures, self.membership = list(measures), membership
        if self.keeps_rows:
            self.retained.restore(dictionaries, arrays, hashed=self._changelog)
            self.index.follow(self.retained)

    @property
    def has_raw(self) -> bool:
        """Whether a condition nobody registered can still be put to the rows inside."""
        return bool(self.retained.kinds)

    def memory(self) -> Memory:
        """What is held now."""
        return Memory(
            sum(s.window.nbytes + s.marginals.nbytes for s in self.measures),
            sum(s.atoms.nbytes for s in self.measures) + self.membership.nbytes,
            self.retained.nbytes,
            self.index.nbytes,
            0 if self.sample is None else self.sample.nbytes,
        )

    # --- one slide: rows come, rows go ------------------------------------------------------

    def classify(self, batch: Batch) -> TaggedRows:
        """The rows of a batch, ready to be added."""
        digits, players = [_no_digits(batch.table.rows)], [_EVERYONE]
        for summaries, one in zip(self.measures[1:], batch.measures, strict=True):
            digits.append(summaries.cut(one.values))
            players.append(_EVERYONE if one.players is None else one.players)
        return TaggedRows(self.membership.assign(batch.table), digits, players)

    def inside(self, rows: slice | Places = slice(None)) -> TaggedRows:
        """Rows of the retained window, ready to be taken away or counted again."""
        tags = self.retained.tags[rows]
        each = [self.playing(m) for m in range(1, len(self.measures))]
        return TaggedRows(
            tags,
            [_no_digits(len(tags)), *(digits[rows] for digits, _ in each)],
            [_EVERYONE, *(players[rows] for _, players in each)],
        )

    def playing(self, number: int) -> tuple[Words, Bools]:
        """The digits of one measure on every row inside, and which rows take part."""
        if not number or not len(self.retained):  # before the first row there are no columns yet
            return _no_digits(len(self.retained)), _EVERYONE
        return self.retained.digits(number), self.retained.players(number)

    def _deltas(self, rows: TaggedRows, sign: int, into: list[Words] | None = None) -> list[Words]:
        """Signed rows as one delta a measure, added to ``into`` where given."""
        return [
            self.membership.tally(
                summaries, rows.tags, rows.digits[m], rows.players[m], sign,
                None if into is None else into[m],
            )
            for m, summaries in enumerate(self.measures)
        ]  # fmt: skip

    def refuse_too_many(self, coming: int) -> None:
        """Before anything changes: so many rows more must still be summed exactly."""
        if self.rows + coming > MAX_ROWS:
            raise StateError(
                f"a window of more than {MAX_ROWS:,} rows cannot be summed exactly; "
                "choose a shorter window. Nothing changed"
            )

    def block(self, batch: Batch, rows: TaggedRows) -> RowBlock:
        """Rows as the retained window will keep them; refuses what it cannot keep."""
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
        """Rows come in; returns their deltas, to be committed once expiry is known."""
        if self.sample is not None:
            sequence, stratum = self.sample.number(batch.table)
            block = replace(block, sequence=sequence, stratum=stratum)
            self.sample.insert(batch.table, batch.measures, batch.times, sequence, stratum)
        if self.keeps_rows:
            self.index.forget_from(self.retained.insert(block))
        for provisional in self.provisional.values():
            provisional.add(self, batch.table, rows, 1)
        self.rows += batch.table.rows
        return self._deltas(rows, 1, into)

    def delete(self, going: Batch, places: Places | None) -> list[Words]:
        """Rows that an upstream deletes, which stand at these places; returns their deltas.

        Without places no row is kept, and the rows are taken for what they say they are.
        """
        self.rows -= going.table.rows
        if places is None:
            return self._deltas(self.classify(going), -1)
        deltas = self._leaving(places)
        ordered = not self._changelog or self.retained.times is not None
        self.retained.delete(places, ordered=ordered)
        if len(places):
            self.index.forget_from(int(places.min()))
        if self.sample is not None:
            self._redraw(self.sample)
        return deltas

    def _redraw(self, sample: WindowSample) -> None:
        """Rows left from the middle: draw anew from those inside, under the numbers they have."""
        sample.clear()
        sequence = self.retained.sequence
        if sequence is not None and len(sequence):
            table = self.retained.table()
            measures, strata = self.schema.evaluate(table), sample.strata_of(table)
            sample.insert(table, measures, self.retained.times, sequence, strata)

    def commit(self, deltas: list[Words] | None, expire: int = 0) -> None:
        """Take deltas in, together with the expiry of the oldest ``expire`` rows: one slide."""
        self.slides += 1
        if expire:
            deltas = self._leaving(slice(0, expire), deltas)
            self._expire(expire)
        if deltas is not None:
            self.membership.commit(self.measures, deltas)
        if self.keeps_rows:
            self.retained.forget()  # not before: codes of words hold for rows on their way in
            self.index.follow(self.retained)
        for number in sorted(self.rounded & self._relieved):
            if not len(self.retained) or not self.retained.digits(number)[:, 0].any():
                self._refit(number, np.zeros(0))  # rounded rows get their bits back
        self._relieved.clear()

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
        """Deltas of rows inside that leave."""
        gone = self.inside(rows)
        for provisional in self.provisional.values():
            provisional.add(self, self.retained.table().take(rows), gone, -1)
        self._relieved |= {n for n in self.rounded if gone.digits[n][:, 0].any()}
        return self._deltas(gone, -1, into)

    def can_lose(self, going: Batch) -> bool:
        """Whether the sums without these rows are still those of some rows.

        A row that was never there may show as a value that no scale has had to hold, or as sums
        that no rows have.
        """
        if not going.table.rows:
            return True
        if going.table.rows > self.rows:
            return False
        for summaries, one in zip(self.measures[1:], going.measures, strict=True):
            scale = summaries.scale
            if scale.digits and not within(one.values, one.largest, scale):
                return False
        deltas = self._deltas(self.classify(going), -1)
        refined = isinstance(self.membership, Refined)
        after = [s.added(d, atoms=refined) for s, d in zip(self.measures, deltas, strict=True)]
        if isinstance(self.membership, Refined):
            self.membership.reclaim(self.measures[0])  # atoms that none but these rows would be in
            touched = touched_rows(deltas[0])
            after = [sums[touched] for sums in after]
        rows = after[0][:, 0]
        return all(s.possible(sums, rows) for s, sums in zip(self.measures, after, strict=True))

    # --- predicates come and go ---------------------------------------------------------------

    def refuse_unless_raw(self) -> None:
        """A new predicate must be put to the rows inside; refused where they are not retained."""
        if not self.has_raw:
            raise StateError(
                "a predicate registered mid-stream needs the rows inside, and this engine retains "
                "none; register it before the stream starts, or make the engine with retain=True"
            )

    def refine(self, predicates: Mapping[str, Expression]) -> None:
        """Refine by these predicates: every row inside is looked at once, exactly.

        One predicate more than before divides the atoms that there are.
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
        """Sum the rows inside from scratch: the slow, obvious state."""
        width = len(self.membership.names)
        self.measures = [Summaries(s.scale, width) for s in self.measures]
        if len(self.retained):
            self.membership.commit(self.measures, self._deltas(self.inside(), 1))

    def _divide(self, old: Refined, predicates: Mapping[str, Expression]) -> None:
        """Refine by the last of the predicates.

        The rows of the rarer outcomes are summed; what is left of an atom is its rows of the
        common one. Sums are exact, so this is the state of a recount, to the bit.
        """
        fresh = Refined(predicates)
        division = self._division(old, list(predicates.values())[-1])
        if len(division.parts):
            atoms, outcomes = np.divmod(division.parts, _OUTCOMES)
            said = (outcomes - 1).astype(np.int8)
            truths = np.concatenate([old.refinement.truths[atoms], said[:, None]], axis=1)
            fresh.preload(truths, np.arange(len(truths)))
            self.retained.retag(division.number[division.part])
        self.measures = [self._parted(m, old, fresh, division) for m in range(len(self.measures))]
        self.membership = fresh

    def _division(self, old: Refined, condition: Expression) -> _Division:
        said, atoms = np.zeros(0, np.int8), np.zeros(0, np.uint32)
        if len(self.retained):  # an empty window's tags may still be those of another membership
            said = truth(condition, self.retained.table(set(columns_of(condition))))
            atoms = self.retained.tags.view(np.uint32)
        outcome = said.astype(np.int64) + 1
        part = atoms * np.int64(_OUTCOMES) + outcome
        counts = np.bincount(part, minlength=_OUTCOMES * max(1, old.width))
        parts = np.flatnonzero(counts)
        number = np.zeros(len(counts), np.uint32)
        number[parts] = np.arange(len(parts), dtype=np.uint32)
        common = int(np.bincount(outcome, minlength=_OUTCOMES).argmax())
        return _Division(part, parts, number, common)

    def _parted(self, number: int, old: Refined, fresh: Refined, division: _Division) -> Summaries:
        """One measure's sums, atom by atom, under the refinement with the new predicate."""
        before = self.measures[number]
        before.reserve(old.width)
        after = Summaries(before.scale, len(fresh.names), fresh.width)
        rare = division.part % _OUTCOMES != division.common
        digits, players = self.playing(number)
        playing = rare & players if len(players) else rare
        tags = division.number[division.part]
        sums = after.tally(max(1, fresh.width), tags, digits, playing, 1)
        lost = after.tally(max(1, old.width), (division.part // _OUTCOMES).astype(np.uint32),
                           digits, playing, -1)  # fmt: skip
        for place in np.flatnonzero(division.parts % _OUTCOMES == division.common):
            atom = int(division.parts[place]) // _OUTCOMES
            row = sums[place : place + 1]
            add_rows(row, before.atoms[atom : atom + 1], before.scale.layout)
            add_rows(row, lost[atom : atom + 1], before.scale.layout)
        after.add(sums[: fresh.width], np.arange(fresh.width), fresh.holds())
        return after

    def drop(self, name: str, targets: Collection[str]) -> None:
        """Drop a predicate: atoms that differed only in it become one; no row is looked at.

        Where the atoms were given up they come back if the rows can be asked, and else only
        ``targets`` stay.
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
        """Give up the atoms and keep the named targets alone; the atoms still tell their sums.

        bound       each target over the table's columns
        over_names  the same targets over the registered names
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
        """Keep the sums of a provisional predicate, which follow every slide from now on."""
        self.provisional[provisional.name] = provisional

    def remove_provisional(self, name: str) -> bool:
        """Let go of a provisional predicate; whether there was one of that name."""
        return self.provisional.pop(name, None) is not None

    # --- scales that follow the data ----------------------------------------------------------

    def fit(self, batch: Batch, degree: int) -> None:
        """Make every measure's scale fit the rows that are coming, so that each is summed exactly.

        Where no scale holds both the largest value and the last bit of the smallest, a window that
        retains its raw rows rounds the small ones in its sums until the large ones have left, and
        answers from the rows meanwhile; one that does not refuses the batch, and nothing changes.
        """
        for number, one in enumerate(batch.measures, start=1):
            if number == len(self.measures):
                scale = self._fitted(number, one.values, degree)
                first = self.measures[0]
                self.measures.append(Summaries(scale, len(first.marginals), len(first.atoms)))
                continue
            old = self.measures[number].scale
            if not old.digits:
                continue
            rounds = number in self.rounded
            lowest = grid(old) if rounds else lowest_bit(one.values, grid(old))
            wider = widen(old, one.largest, lowest)
            if wider is None:
                self._refit(number, one.values)
            elif wider != old:
                self._widen(number, wider)

    def _widen(self, number: int, scale: Scale) -> None:
        """Add digits on either side."""
        old = self.measures[number].scale
        self.measures[number].change_scale(scale)
        below = (grid(old) - grid(scale)) // DIGIT_BITS
        top = scale.digits - old.digits - below
        if len(self.retained):
            padded = np.pad(self.retained.digits(number), ((0, 0), (top, below)))
            self.retained.recut(number, padded)

    def _refit(self, number: int, coming: Floats) -> None:
        """No digit left to add: choose a scale for the rows inside and those coming, cut anew."""
        old = self.measures[number]
        played = bool(old.window[0])
        inside = np.zeros(self.rows)
        if played:
            if not self.keeps_rows:
                raise _too_far_apart(coming)
            inside = self._values_inside(number)
        scale = self._fitted(number, np.concatenate([inside, coming]), old.scale.degree)
        if scale == old.scale:
            return
        self.measures[number] = Summaries(scale, len(old.marginals), len(old.atoms))
        if len(self.retained):
            self.retained.recut(number, self.measures[number].cut(inside))
        if played:
            self._recount()

    def _values_inside(self, number: int) -> Floats:
        """The values of the rows inside; without raw columns no digit was ever rounded."""
        if not self.has_raw:
            return uncut(self.retained.digits(number), self.measures[number].scale)
        values, players = self._players(number)
        return np.where(players, values, 0.0)

    def _players(self, number: int) -> tuple[Floats, Bools]:
        """A measure on the raw rows inside, and which of them take part."""
        values, players = measure(self.schema.measures[number - 1], self.retained.table())
        return values, np.ones(len(values), np.bool_) if players is None else players

    def _fitted(self, number: int, values: Floats, degree: int) -> Scale:
        """A scale for these values alone; notes whether it rounds some of them."""
        largest = float(np.abs(values).max(initial=0.0))
        lowest = lowest_bit(values)
        scale = fit(values, largest, degree, margin=_MARGIN, lowest=lowest)
        rounds = bool(scale.digits and grid(scale) > lowest)
        if rounds and not self.has_raw:
            raise _too_far_apart(values)
        self.rounded = self.rounded | {number} if rounds else self.rounded - {number}
        return scale

    def worth(self, number: int, game: Game) -> float | None:
        """The aggregate of a measure; summed anew from the rows where some of them are rounded."""
        if number not in self.rounded:
            return worth(self.measures[number], game)
        values, players = self._players(number)
        window = sum_powers(values[players], unit_of(values[players]), game.degree)
        return None if window.rows[0] < game.nulls else float(big_worth(game, window)[0])

    def answer_rounded(self, number: int, game: Game, condition: Expression) -> Triple:
        """(value, share, lift) where some rows are rounded: summed anew from the rows. O(rows)."""
        values, players = self._players(number)
        unit = unit_of(values[players])
        held = players & holds(condition, self.retained.table())
        window, item = (sum_powers(values[rows], unit, game.degree) for rows in (players, held))
        value, share, lift = (float(part[0]) for part in big_attribution(game, window, item))
        return value, share, lift


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


def _no_digits(rows: int) -> Words:
    """The digits of the first measure, which only counts rows."""
    return np.zeros((rows, 1), np.int64)


def _too_far_apart(values: Floats) -> StateError:
    largest = float(np.abs(values).max(initial=0.0))
    return StateError(
        f"values up to {largest:g} are too far from others in magnitude to be summed exactly; "
        "filter them upstream, or make the engine with retain=True. Nothing changed"
    )


def bind_conditions(
    conditions: Mapping[str, Expression], kinds: Mapping[str, Kind | None]
) -> dict[str, Expression]:
    """Conditions over the columns; each may use those registered before it."""
    bound: dict[str, Expression] = {}
    for name, condition in conditions.items():
        bound[name] = bind_predicate(condition, kinds, bound, columns_first=True)
    return bound


class Registrations:
    """The registered conditions by name, in the order they came; names fold case.

    combinations  the intersections that stay when the atoms are given up, by their text
    changed       called when something that answers came or went
    """

    def __init__(
        self, combinations: Mapping[str, Expression], atom_limit: int, changed: Callable[[], None]
    ) -> None:
        self.conditions: dict[str, Expression] = {}
        self.changed = changed
        self._combinations = combinations
        self._atom_limit = atom_limit

    def restore(self, conditions: Mapping[str, Expression]) -> None:
        """Take the place of registrations that were written to a checkpoint."""
        self.conditions = dict(conditions)

    def register(self, core: Core | None, name: str, condition: Expression) -> None:
        """Register a predicate; the rows inside are divided by it, exactly."""
        if name.lower() in self._names(core):
            raise ScriptError(f"predicate {name!r} is already registered", hint="drop it first")
        conditions = {**self.conditions, name: condition}
        if core is None:
            refuse_constant_tests(condition)  # it is bound when rows tell the columns
        else:
            core.refuse_unless_raw()
            core.refine(bind_conditions(conditions, core.schema.kinds))
        self.conditions = conditions
        self.keep_to_limit(core)
        self.changed()

    def drop(self, core: Core | None, name: str) -> str:
        """Drop a predicate; atoms that differed only in it become one. Returns its exact name."""
        exact = self._names(core).get(name.lower())
        if exact is None:
            raise UnknownNameError("predicate", name, self.conditions)
        if core is not None and core.remove_provisional(exact):
            self.changed()
            return exact
        conditions = {n: c for n, c in self.conditions.items() if n != exact}
        if core is not None:
            # others may be written with it
            bind_conditions(conditions, core.schema.kinds)
            core.drop(exact, self._targets(conditions))
        self.conditions = conditions
        self.keep_to_limit(core)
        self.changed()
        return exact

    def _names(self, core: Core | None) -> dict[str, str]:
        """The names that are taken, provisional ones included, by their lower case."""
        provisional = () if core is None else core.provisional
        return {name.lower(): name for name in (*self.conditions, *provisional)}

    def has_room(self, core: Core) -> bool:
        """Whether one predicate more is sure to leave the atoms within their limit.

        Each live atom may divide in three; a question must not cost others their joint sums.
        """
        if not isinstance(core.membership, Refined):
            return True
        return _OUTCOMES * len(core.membership.live) <= self._atom_limit

    def keep_to_limit(self, core: Core | None) -> bool:
        """Give up the atoms where more than the limit were met; True if that happened."""
        if core is None or not isinstance(core.membership, Refined) or not core.predicates:
            return False  # without a predicate there is one atom, and nothing to keep in its place
        if core.membership.refinement.met <= self._atom_limit:
            return False
        targets = self._targets(core.predicates)
        named = {text: over_names(e, core.predicates) for text, e in targets.items()}
        core.enumerate(self.bind_targets(core), named)
        self.changed()
        return True

    def _targets(self, registered: Iterable[str]) -> dict[str, Expression]:
        """What stays when the atoms go: the registered names, and the combinations of them."""
        names = {name: Name(name) for name in registered}
        known = {name.lower() for name in names}
        usable = {
            text: expression
            for text, expression in self._combinations.items()
            if known.issuperset(part.name.lower() for part in named_in(expression))
        }
        return {**names, **usable}

    def bind_targets(self, core: Core) -> dict[str, Expression]:
        """The targets over the table's columns."""
        kinds, known = core.schema.kinds, core.predicates
        return {t: bind_predicate(e, kinds, known) for t, e in self._targets(known).items()}


def count_expired(window: Window, core: Core, newest: int | None) -> int:
    """How many of the oldest rows have left the window; ``newest`` is the latest time seen.

    A time window without a slide ends at the newest row, one with a slide at the next multiple.
    """
    if isinstance(window, CountWindow):
        return max(0, core.rows - window.size)
    times = core.retained.times
    if isinstance(window, TimeWindow) and newest is not None and times is not None:
        now = newest if window.slide is None else -(-newest // window.slide) * window.slide
        return int(np.searchsorted(times, now - window.duration, side="right"))
    return 0
