"""The exact sums of a window, kept per measure for the window, each predicate and each atom.

``Summaries`` contains the sums of one measure and computes attributions from them. A summary is the
row count and the power sums of a set of rows; the summary of a predicate is called its *marginal*.
Rows whose value is not NULL are the *players* of a measure.
A *delta* is the change of the summaries caused by adding or removing rows. The *membership*
determines which summaries a row changes:

Refined     each row changes the summary of its atom; the summaries of the window and of the
            predicates are computed from the atoms
Enumerated  each row changes the summaries of all targets that hold on it; a target is a registered
            predicate or a named combination of predicates

An engine starts with ``Refined``. If the number of atoms exceeds the limit, it switches to
``Enumerated`` and abandons the sums of all other combinations. These can then be computed only from
the retained rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import fsum

import numpy as np
import numpy.typing as npt

from ids.games import Attributed, Game, Moments, attribute, find
from ids.kernels import (
    Centred,
    add_delta,
    add_rows,
    apply_signed,
    ask,
    centre_block,
    cut,
    merge_summaries,
    touched_rows,
)
from ids.model import BoundedCache, ColumnData, Expression, Kind, Scale, Table
from ids.predicates import Refinement, holds

Words = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Tags = npt.NDArray[np.generic]
Triple = tuple[float, float, float]

_LARGEST_UNIT = 960  # a larger power of two could overflow the sums of 2**26 rows as doubles
_MOST_CONDITIONS = 4096  # the number of conditions whose atoms are cached


def cut_column(values: npt.NDArray[np.float64], scale: Scale) -> Words:
    """Split the values of a column into digits of a scale, int64[n, max(1, D)]."""
    digits = np.zeros((len(values), max(1, scale.digits)), np.int64)
    if scale.digits:
        cut(values, 2.0**-scale.exponent, scale.layout, digits)
    return digits


class Summaries:
    """The sums of one measure: ``window`` = Σ ``atoms``, ``marginals[k]`` = Σ atoms where k holds.

    Adding a delta and later its negative restores the sums exactly, in any order and with any
    division into smaller deltas. A delta of n rows costs O(n), plus O(touched atoms · K) to update
    the marginals.
    """

    def __init__(self, scale: Scale, predicates: int, atoms: int = 0) -> None:
        self.scale = scale
        self.centre = _centre(scale)
        self.window: Words = np.zeros(scale.words, np.int64)
        self.marginals: Words = np.zeros((predicates, scale.words), np.int64)
        self.atoms: Words = np.zeros((atoms, scale.words), np.int64)

    @classmethod
    def restored(cls, scale: Scale, window: Words, marginals: Words, atoms: Words) -> Summaries:
        """Create summaries from the sums in a checkpoint."""
        made = cls(scale, 0)
        made.window, made.marginals, made.atoms = window, marginals, atoms
        return made

    # --- rows are added and removed -----------------------------------------------------------

    def cut(self, values: npt.NDArray[np.float64]) -> Words:
        """Split the values of a column into digits of this measure's scale."""
        return cut_column(values, self.scale)

    def reserve(self, atoms: int) -> None:
        """Allocate space for atom numbers below ``atoms``."""
        if atoms > len(self.atoms):
            grown = np.zeros((max(atoms, 2 * len(self.atoms)), self.scale.words), np.int64)
            grown[: len(self.atoms)] = self.atoms
            self.atoms = grown

    def tally(
        self, atoms: int, tag: npt.NDArray[np.uint32], digits: Words, players: Bools, sign: int,
        into: Words | None = None,
    ) -> Words:  # fmt: skip
        """Sum signed rows into a delta with one summary per atom number below ``atoms``."""
        delta = np.zeros((atoms, self.scale.words), np.int64) if into is None else into
        apply_signed(delta, tag, digits, players, self.centre, self.scale.layout, sign)
        return delta

    def add(self, delta: Words, touched: Words, holds: Bools) -> None:
        """Add the ``touched`` rows of a delta to the atoms, the marginals and the window."""
        self.reserve(len(delta))
        add_delta(
            delta[touched], touched, holds, self.scale.layout, self.atoms, self.marginals,
            self.window,
        )  # fmt: skip

    def added(self, delta: Words, *, atoms: bool) -> Words:
        """Return the sums of the atoms, or of window and predicates, after adding a delta."""
        if atoms:
            self.reserve(len(delta))
            after = self.atoms[: len(delta)].copy()
        else:
            after = np.concatenate([self.window.reshape(1, -1), self.marginals])
        add_rows(after, delta, self.scale.layout)
        return after

    def possible(self, sums: Words, rows: Words) -> bool:
        """Return whether each summary could be the sums of at most ``rows`` rows.

        Without players all sums must be 0, and (Σ q)² must not exceed m · Σ q² (Cauchy-Schwarz).
        """
        players = sums[:, 0]
        if (players < 0).any() or (players > rows).any():
            return False
        for one in sums:
            count, powers = self.exact(one)
            if not count:
                if any(powers):
                    return False
            elif len(powers) > 1 and powers[0] ** 2 > count * powers[1]:
                return False
        return True

    def change_scale(self, scale: Scale) -> None:
        """Convert every sum exactly to a wider scale."""
        old = self.scale
        self.window = old.convert(self.window.reshape(1, -1), scale)[0]
        self.marginals = old.convert(self.marginals, scale)
        self.atoms = old.convert(self.atoms, scale)
        self.scale = scale
        self.centre = _centre(scale)

    # --- predicates are registered and dropped --------------------------------------------------

    def regrouped(self, atoms: Words, groups: npt.NDArray[np.uint32], holds: Bools) -> Summaries:
        """Return the same sums with ``atoms[i]`` counted as atom ``groups[i]``."""
        merged = Summaries(self.scale, holds.shape[1])
        delta = np.zeros((len(holds), self.scale.words), np.int64)
        for atom, group in zip(atoms, groups, strict=True):
            row = int(group)
            add_rows(delta[row : row + 1], self.atoms[atom : atom + 1], self.scale.layout)
        merged.add(delta, np.arange(len(holds)), holds)
        return merged

    def keep_marginals(self, kept: Sequence[int]) -> None:
        """Keep only these marginals."""
        self.marginals = self.marginals[kept]

    def give_up_atoms(self, targets: Sequence[Words]) -> None:
        """Replace the atoms and marginals by one marginal per target (a set of atoms)."""
        kept = [self.merged(atoms) for atoms in targets]
        self.marginals = np.array(kept, np.int64).reshape(len(targets), -1)
        self.atoms = np.zeros((0, self.scale.words), np.int64)

    # --- answers ----------------------------------------------------------------------------------

    def merged(self, chosen: Words) -> Words:
        """Return the combined summary of several atoms."""
        total = np.zeros(self.scale.words, np.int64)
        merge_summaries(self.atoms, chosen, self.scale.layout, total)
        return total

    def exact(self, summary: Words) -> tuple[int, list[int]]:
        """Convert a summary to integers; see ``Scale.decode``."""
        return self.scale.decode(summary)

    def answer(self, items: Words, row: int, game: Game) -> Triple:
        """Return (value, share, lift) for summary ``items[row]``; overflow yields infinity."""
        if not game.affine or abs(self.scale.exponent * game.power) > _LARGEST_UNIT:
            return self._total(self._attributed(items[row : row + 1], game), game)
        weights = _weights(game.name, int(self.window[0]), self.scale.exponent)
        found: Triple = ask(self.window, items, row, self.centre, self.scale.layout, weights)
        return found

    def answer_by_atoms(self, chosen: Words, game: Game) -> Triple:
        """Return the sum of the atoms' attributions, to cross-check ``answer``."""
        return self._total(self._attributed(self.atoms[chosen], game), game)

    def worth(self, game: Game) -> float | None:
        """Return the aggregate of the window, or None if it is NULL in SQL."""
        if int(self.window[0]) < game.nulls:
            return None
        value = game.worth(moments_of(self.window_alone()))
        return self.in_units(float(value[0]), game)

    def residual(self, live: Words, game: Game) -> float:
        """Return Σ attribution of the live atoms - v(W), which is 0 up to rounding (Efficiency)."""
        each = self._attributed(self.atoms[live], game)
        whole = game.worth(moments_of(self.window_alone()))
        missed = fsum(each.value[:, 0]) - (float(whole[0]) if self.window[0] else 0.0)
        return self.in_units(missed, game)

    def in_units(self, value: float, game: Game) -> float:
        """Convert a value to the measure's units; overflow yields infinity."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(value, self.scale.exponent * game.power))

    def window_alone(self) -> Centred:
        """Return the window as one emit without items."""
        return self._emit(self.atoms[:0])

    def _emit(self, rows: Words) -> Centred:
        """Return the window as one emit, with these summaries as its items."""
        taken = np.concatenate([self.window.reshape(1, -1), rows])[:, :, None]
        emits = empty_emits(self.scale, len(rows), 1)
        centre_block(np.ascontiguousarray(taken), self.centre, self.scale.layout, emits)
        return emits

    def _attributed(self, rows: Words, game: Game) -> Attributed:
        """Compute the attributions of some summaries, in units of 2**(exponent · power)."""
        emits = self._emit(rows)
        members = emits.members.astype(np.float64)
        return attribute(game, moments_of(emits), members, emits.item_total, emits.deviation)

    def _total(self, each: Attributed, game: Game) -> Triple:
        value, share, lift = (self.in_units(fsum(part[:, 0]), game) for part in each)
        return value, share, lift


def _centre(scale: Scale) -> Words:
    """Return the scale's centre as an array for the kernels."""
    return np.array(scale.centre or (0,), dtype=np.int64)


@lru_cache(maxsize=4096)
def _weights(name: str, players: int, exponent: int) -> npt.NDArray[np.float64]:
    """Return the weight of each moment in the worth of N = ``players`` players, then the slopes.

    An affine game is linear in (N, Σ y, mean, Σ (y - mean)²), so each weight is the worth of a
    window in which only that moment is non-zero. The last weight is a divisor, as in the definition
    of a variance, so that engines and queries round in the same way.
    """
    game = find(name)
    unit = 2.0 ** (exponent * game.power)
    window = Moments.of(players, 0.0, 0.0, [players, 0.0, 0.0])
    base = float(game.worth(window))
    probes = (
        window._replace(total=np.array(1.0)),
        window._replace(mean=np.array(1.0)),
        window._replace(central=np.array([players, 0.0, 1.0])),
    )
    slopes = [float(s) * unit for s in game.slopes(window)] + [0.0, 0.0]
    total, mean, spread = (float(game.worth(p)) - base for p in probes)
    divisor = round(1.0 / spread) / unit if spread else 0.0
    own = unit if game.additive else 0.0
    return np.array([base / max(players, 1), total * unit, mean * unit, divisor, *slopes[:2], own])


def moments_of(emits: Centred) -> Moments:
    """Convert a block of emits to the moments that games expect."""
    players = emits.players.astype(np.float64)
    return Moments(players, emits.total, emits.mean, emits.central, emits.rest)


def empty_emits(scale: Scale, items: int, size: int) -> Centred:
    """Return a block of ``size`` emits, all zeros, for a kernel to fill."""
    return Centred(
        np.zeros(size, np.int64),
        np.zeros(size),
        np.zeros(size),
        np.zeros((scale.degree + 1, size)),
        np.zeros((items, size), np.int64),
        np.zeros((items, size)),
        np.zeros((scale.degree, items, size)),
        np.zeros(size),
    )


class Refined:
    """Membership by atom; a row's tag is the number of its atom, uint32.

    predicates  the registered conditions, bound, keyed by name; signatures have the same order

    ``live`` contains the atoms that had rows after the last slide. A new atom is added to it only
    when its delta is committed, so a reader never sees a slide that is only partly applied.
    """

    def __init__(self, predicates: Mapping[str, Expression]) -> None:
        self.names = tuple(predicates)
        self.refinement = Refinement(list(predicates.values()))
        self.live: Words = np.zeros(0, np.int64)
        self._members = BoundedCache[Expression, Words](_MOST_CONDITIONS)

    @property
    def width(self) -> int:
        """An upper bound; all atom numbers in use are below it."""
        return self.refinement.atoms

    @property
    def met(self) -> int:
        """The number of atoms in use, including those not committed yet."""
        return self.refinement.met

    @property
    def nbytes(self) -> int:
        """The size of the signatures and look-up tables in bytes."""
        return self.refinement.nbytes

    def assign(self, table: Table) -> Tags:
        """Return the atom of each row."""
        return self.refinement.assign(table)

    def tally(
        self, summaries: Summaries, tags: Tags, digits: Words, players: Bools, sign: int,
        into: Words | None,
    ) -> Words:  # fmt: skip
        """Sum signed rows of one measure into a delta over the atoms."""
        return summaries.tally(self.width, tags.view(np.uint32), digits, players, sign, into)

    def holds(self) -> Bools:
        """Return which predicates hold on each atom, as bool[width, K]."""
        return self.refinement.holds(np.arange(self.width))

    def commit(self, measures: Sequence[Summaries], deltas: Sequence[Words]) -> None:
        """Add the deltas, and release the atoms that no longer contain a row."""
        touched = touched_rows(deltas[0])
        for delta in deltas[1:]:
            touched = np.union1d(touched, touched_rows(delta))
        holds = self.refinement.holds(touched)
        for summaries, delta in zip(measures, deltas, strict=True):
            summaries.add(delta, touched, holds)
        self._update_live(measures[0], touched)

    def _update_live(self, rows: Summaries, touched: Words) -> None:
        """Update ``live``, checking only touched atoms, as only these gained or lost rows.

        All atoms are checked only if some were assigned but never committed.
        """
        lives = np.zeros(self.width, np.bool_)
        lives[self.live] = True
        before, after = lives[touched], rows.atoms[touched, 0] != 0
        if len(self.live) + int((after & ~before).sum()) != self.met:
            self.reclaim(rows)
        elif not np.array_equal(before, after):
            self.refinement.release(touched[before & ~after])
            lives[touched] = after
            self.live = np.flatnonzero(lives)
            self._members.clear()

    def reclaim(self, rows: Summaries) -> None:
        """Release the atoms that have no rows; ``rows`` is the measure that counts rows."""
        met = self.refinement.live()
        rows.reserve(self.width)
        full = rows.atoms[met, 0] != 0
        if not full.all():
            self.refinement.release(met[~full])
        if not np.array_equal(met[full], self.live):
            self.live = met[full]
            self._members.clear()

    def preload(self, truths: npt.NDArray[np.int8], atoms: Words) -> None:
        """Assign signatures to the given atom numbers; each of these atoms has rows."""
        self.refinement.preload(truths, atoms)
        self.live = np.sort(atoms)

    def without(
        self, name: str, predicates: Mapping[str, Expression]
    ) -> tuple[Refined, npt.NDArray[np.uint32]]:
        """Return the refinement without one predicate, and the new number of each old atom."""
        gone = self.names.index(name)
        kept = np.delete(self.refinement.truths[self.live], gone, axis=1)
        distinct, new = np.unique(kept, axis=0, return_inverse=True)
        fresh = Refined(predicates)
        fresh.preload(distinct, np.arange(len(distinct)))
        mapping = np.zeros(max(1, self.width), np.uint32)
        mapping[self.live] = new.ravel()
        return fresh, mapping

    def judge(self, conditions: Sequence[Expression]) -> Bools:
        """Return which conditions over the names hold on each atom, bool[width, conditions]."""
        table = self._atoms_as_rows(np.arange(self.width))
        return np.stack([holds(c, table) for c in conditions], axis=1)

    def _atoms_as_rows(self, atoms: Words) -> Table:
        truths = self.refinement.truths[atoms]
        columns = {
            name: ColumnData(Kind.BOOLEAN, truths[:, k] == 1, truths[:, k] >= 0)
            for k, name in enumerate(self.names)
        }
        return Table(columns, len(atoms))

    def holding(self, condition: Expression) -> Words:
        """Return the live atoms on which a condition is TRUE.

        The columns in ``condition`` are registered names. The result is cached until ``live``
        changes.
        """
        known = self._members.get(condition)
        if known is None:
            held = holds(condition, self._atoms_as_rows(self.live))
            known = self._members[condition] = self.live[held]
        return known


class Enumerated:
    """Membership by target; a row's tag has one bit per target, packed as uint8[ceil(t / 8)].

    targets  the registered predicates, then the requested intersections, bound, keyed by name
    """

    nbytes = met = 0  # there are no atoms

    def __init__(self, targets: Mapping[str, Expression]) -> None:
        self.names = tuple(targets)
        self.targets = tuple(targets.values())

    def assign(self, table: Table) -> Tags:
        """Return which targets hold on each row. O(rows · targets)."""
        held = np.zeros((table.rows, len(self.targets)), np.bool_)
        for t, target in enumerate(self.targets):
            held[:, t] = holds(target, table)
        return self.pack(held)

    @staticmethod
    def pack(held: Bools) -> Tags:
        """Pack bool[n, t] into bits."""
        return np.packbits(held, axis=1)

    def unpack(self, tags: Tags) -> Bools:
        """Unpack tags to bool[n, t]."""
        bits = np.unpackbits(tags.view(np.uint8), axis=1, count=len(self.targets))
        return bits.astype(np.bool_)

    def tally(
        self, summaries: Summaries, tags: Tags, digits: Words, players: Bools, sign: int,
        into: Words | None,
    ) -> Words:  # fmt: skip
        """Sum signed rows of one measure into a delta: the window, then each target."""
        count = len(self.targets)
        bits = self.unpack(tags)
        delta = into
        if delta is None:
            delta = np.zeros((count + 1, summaries.scale.words), np.int64)
        tag = np.zeros(len(tags), np.uint32)
        summaries.tally(1, tag, digits, players, sign, delta[:1])
        for t in range(count):
            taking = bits[:, t] if not len(players) else bits[:, t] & players
            summaries.tally(1, tag, digits, taking, sign, delta[t + 1 : t + 2])
        return delta

    def commit(self, measures: Sequence[Summaries], deltas: Sequence[Words]) -> None:
        """Add the deltas."""
        for summaries, delta in zip(measures, deltas, strict=True):
            layout = summaries.scale.layout
            add_rows(summaries.window.reshape(1, -1), delta[:1], layout)
            add_rows(summaries.marginals, delta[1:], layout)
