"""Summaries: the exact sums of one measure, for the window, each predicate and each atom.

Answers from the state: one attribution now, or every live atom's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import fsum
from typing import Any

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
    merge_summaries,
)
from ids.model import Scale
from ids.state.rescale import cut_column, decode, rescale

Words = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Summaries:
    """One measure's state: ``window`` = Σ ``atoms``, ``marginals[k]`` = Σ atoms where k holds.

    Algebra: adding a delta and adding its negative is the identity, in any order and any split.
    Cost: a delta of n rows is O(n), plus O(touched atoms · K) to carry it to the marginals.
    """

    def __init__(self, scale: Scale, predicates: int, atoms: int = 0) -> None:
        self.scale = scale
        self.centre = _centre(scale)
        self.window: Words = np.zeros(scale.words, np.int64)
        self.marginals: Words = np.zeros((predicates, scale.words), np.int64)
        self.atoms: Words = np.zeros((atoms, scale.words), np.int64)

    @classmethod
    def restored(cls, scale: Scale, window: Words, marginals: Words, atoms: Words) -> Summaries:
        """The summaries of a checkpoint."""
        made = cls(scale, 0)
        made.window, made.marginals, made.atoms = window, marginals, atoms
        return made

    def cut(self, values: npt.NDArray[np.float64]) -> Words:
        """A column's digits under this measure's scale."""
        return cut_column(values, self.scale)

    def reserve(self, atoms: int) -> None:
        """Make room for atom numbers below ``atoms``."""
        if atoms > len(self.atoms):
            grown = np.zeros((max(atoms, 2 * len(self.atoms)), self.scale.words), np.int64)
            grown[: len(self.atoms)] = self.atoms
            self.atoms = grown

    def tally(
        self, atoms: int, tag: npt.NDArray[np.uint32], digits: Words, players: Bools, sign: int,
        into: Words | None = None,
    ) -> Words:  # fmt: skip
        """Signed rows as a delta: a summary for each atom number below ``atoms``."""
        delta = np.zeros((atoms, self.scale.words), np.int64) if into is None else into
        apply_signed(delta, tag, digits, players, self.centre, self.scale.layout, sign)
        return delta

    def add(self, delta: Words, touched: Words, holds: Bools) -> None:
        """Take a delta in: rows ``touched`` of it, to atoms, marginals and the window."""
        self.reserve(len(delta))
        add_delta(
            delta[touched], touched, holds, self.scale.layout, self.atoms, self.marginals,
            self.window,
        )  # fmt: skip

    def added(self, delta: Words, *, atoms: bool) -> Words:
        """The sums as a delta would leave them: of each atom, or of the window and predicates."""
        if atoms:
            self.reserve(len(delta))
            after = self.atoms[: len(delta)].copy()
        else:
            after = np.concatenate([self.window.reshape(1, -1), self.marginals])
        add_rows(after, delta, self.scale.layout)
        return after

    def possible(self, sums: Words, rows: Words) -> bool:
        """Whether each of these could be the sums of some of so many rows.

        No players have no sums, and (Σ q)² is at most m · Σ q² (Cauchy and Schwarz).
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

    def regrouped(self, atoms: Words, groups: npt.NDArray[np.uint32], holds: Bools) -> Summaries:
        """The same sums where ``atoms[i]`` is counted as atom ``groups[i]``."""
        merged = Summaries(self.scale, holds.shape[1])
        delta = np.zeros((len(holds), self.scale.words), np.int64)
        for atom, group in zip(atoms, groups, strict=True):
            row = int(group)
            add_rows(delta[row : row + 1], self.atoms[atom : atom + 1], self.scale.layout)
        merged.add(delta, np.arange(len(holds)), holds)
        return merged

    def keep_marginals(self, kept: Sequence[int]) -> None:
        """Of the marginals, these alone."""
        self.marginals = self.marginals[kept]

    def give_up_atoms(self, targets: Sequence[Words]) -> None:
        """Keep the window and the sums of these sets of atoms alone."""
        kept = [self.merged(atoms) for atoms in targets]
        self.marginals = np.array(kept, np.int64).reshape(len(targets), -1)
        self.atoms = np.zeros((0, self.scale.words), np.int64)

    def merged(self, chosen: Words) -> Words:
        """Merge before evaluating: the summary of several atoms together."""
        total = np.zeros(self.scale.words, np.int64)
        merge_summaries(self.atoms, chosen, self.scale.layout, total)
        return total

    def exact(self, summary: Words) -> tuple[int, list[int]]:
        """A summary as plain integers (m, Σ q, Σ q², …): equal state means equal integers."""
        return decode(summary, self.scale)

    def change_scale(self, scale: Scale) -> None:
        """Carry every sum over to a scale with digits added on either side: exact."""
        old = self.scale
        self.window = rescale(self.window.reshape(1, -1), old, scale)[0]
        self.marginals = rescale(self.marginals, old, scale)
        self.atoms = rescale(self.atoms, old, scale)
        self.scale = scale
        self.centre = _centre(scale)


def _centre(scale: Scale) -> Words:
    """The scale's centre as the kernels take it."""
    return np.array(scale.centre or (0,), dtype=np.int64)


Triple = tuple[float, float, float]

_LARGEST_UNIT = 960  # a power of two that leaves the doubles room for sums of 2**26 rows


@lru_cache(maxsize=4096)
def _weights(name: str, players: int, exponent: int) -> npt.NDArray[np.float64]:
    """What each moment weighs in the worth of a window of N = ``players``, then the slopes.

    An affine game is linear in (N, Σ y, mean, Σ (y - mean)²): a weight is the worth of a window
    that has that moment alone. The last is given as a divisor, as the variances have it, so that
    an engine rounds as a query does.
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


def answer(summaries: Summaries, items: Words, row: int, game: Game) -> Triple:
    """(value, share, lift) of one summary; what no double holds comes out infinite."""
    scale = summaries.scale
    if not game.affine or abs(scale.exponent * game.power) > _LARGEST_UNIT:
        return _total(summaries, _attributed(summaries, items[row : row + 1], game), game)
    weights = _weights(game.name, int(summaries.window[0]), scale.exponent)
    found: Triple = ask(summaries.window, items, row, summaries.centre, scale.layout, weights)
    return found


def answer_by_atoms(summaries: Summaries, chosen: Words, game: Game) -> Triple:
    """The cross-check: evaluate each atom by itself and add the results."""
    return _total(summaries, _attributed(summaries, summaries.atoms[chosen], game), game)


def worth(summaries: Summaries, game: Game) -> float | None:
    """The aggregate itself; None where SQL says NULL."""
    if int(summaries.window[0]) < game.nulls:
        return None
    value = game.worth(moments_of(window_alone(summaries)))
    return in_units(float(value[0]), summaries, game)


def residual(summaries: Summaries, live: npt.NDArray[Any], game: Game) -> float:
    """Efficiency over the live atoms, Σ attribution - v(W): 0 up to rounding, or a fault."""
    each = _attributed(summaries, summaries.atoms[live], game)
    whole = game.worth(moments_of(window_alone(summaries)))
    players = int(summaries.window[0])
    missed = fsum(each.value[:, 0]) - (float(whole[0]) if players else 0.0)
    return in_units(missed, summaries, game)


def _attributed(summaries: Summaries, rows: Words, game: Game) -> Attributed:
    """Attributions of some summaries, in units of 2**(exponent · power)."""
    emits = _centred(summaries, rows)
    return attribute(
        game, moments_of(emits), emits.members.astype(np.float64), emits.item_total, emits.deviation
    )


def _total(summaries: Summaries, each: Attributed, game: Game) -> Triple:
    value, share, lift = (in_units(fsum(part[:, 0]), summaries, game) for part in each)
    return value, share, lift


def in_units(value: float, summaries: Summaries, game: Game) -> float:
    """Back in the measure's own units; infinite where no double holds it."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.ldexp(value, summaries.scale.exponent * game.power))


def moments_of(emits: Centred) -> Moments:
    """A block of emits as the games take it."""
    players = emits.players.astype(np.float64)
    return Moments(players, emits.total, emits.mean, emits.central, emits.rest)


def window_alone(summaries: Summaries) -> Centred:
    """One emit: the window, and no summary beside it."""
    return _centred(summaries, summaries.atoms[:0])


def _centred(summaries: Summaries, rows: Words) -> Centred:
    """One emit: the window and the given summaries."""
    scale = summaries.scale
    taken = np.concatenate([summaries.window.reshape(1, -1), rows])[:, :, None]
    emits = empty_emits(scale, len(rows), 1)
    centre_block(np.ascontiguousarray(taken), summaries.centre, scale.layout, emits)
    return emits


def empty_emits(scale: Scale, items: int, size: int) -> Centred:
    """Room for a block of emits."""
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
