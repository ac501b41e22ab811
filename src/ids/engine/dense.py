"""Queries that speak at every row: first-degree games, straight from rows to columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ids.engine.answers import Answers
from ids.engine.arrow import aligned_rows
from ids.engine.asked import Asked
from ids.games import Attributed, Game, Moments, find
from ids.kernels.dense import BLOCK, DENSE_ITEMS, DENSE_ROWS, Forms, dense
from ids.kernels.threads import THREADS, side_by_side
from ids.model.query import ItemKind
from ids.model.scale import Scale
from ids.window import CountEmits

__all__ = ["answer_dense"]

Bools = npt.NDArray[np.bool_]

_SHORTEST_KEY = 4 * BLOCK  # shorter keys would leave most lanes of a block idle
_STRETCH = 2**20 // BLOCK * BLOCK


def answer_dense(asked: Asked, scale: Scale) -> Answers | None:
    """Every item over one measure, or None where the general path must serve."""
    emits = asked.emits
    if not isinstance(emits, CountEmits) or len(asked.predicates) > DENSE_ITEMS:
        return None
    window, starts, rows = emits.window, emits.starts, len(asked.rows.atom)
    if scale.degree != 1 or scale.digits != 2 or window.slide > 1 or window.size > DENSE_ROWS:
        return None
    if rows < _SHORTEST_KEY * (len(starts) - 1):
        return None
    if not all(item.game.affine for item in asked.items):
        return None
    wanted = _Wanted(asked)
    forms = wanted.forms(min(window.size, rows))
    out = aligned_rows(wanted.columns, rows)
    member = _membership(asked.held)
    exponent = scale.exponent

    def run(stretch: tuple[int, int]) -> int:
        first, stop = stretch
        dense(asked.rows, member, window.size, starts, first, stop, exponent, forms, out)
        return stop - first

    done = 0
    for size in side_by_side(run, _stretches(rows, window.size)):
        done += size
        if asked.progress is not None:
            asked.progress(done, rows)
    return wanted.answers(out[:, :rows])


def _stretches(rows: int, window: int) -> list[tuple[int, int]]:
    """Emits in stretches long enough that summing the rows already inside is no matter."""
    even = -(-rows // THREADS // BLOCK) * BLOCK
    length = max(BLOCK, min(even, max(_STRETCH, 16 * window // BLOCK * BLOCK)))
    return [(at, min(at + length, rows)) for at in range(0, rows, length)]


def _membership(held: Bools) -> npt.NDArray[np.int64]:
    """A word for each atom: bit 0 for the window, bit k for item k - 1; one more for nobody."""
    member = np.ones(len(held) + 1, np.int64)
    member[-1] = 0
    for k in range(held.shape[1]):
        member[:-1] |= held[:, k].astype(np.int64) << (k + 1)
    return member


class _Wanted:
    """Which answers are asked for, and the output row of each."""

    def __init__(self, asked: Asked) -> None:
        self.number = asked.number
        self.predicates = asked.predicates
        self.games = {item.game.name: item.game for item in asked.items}
        if asked.gaps:
            self.games.setdefault("COUNT", find("COUNT"))
        self.worth = dict.fromkeys(self.games, -1)
        self.parts: dict[tuple[str, int], list[int]] = {}
        self.columns = 1  # the first output row is the number of rows in the window
        for item in asked.items:
            if item.kind is ItemKind.AGGREGATE:
                self._worth(item.game)
                if asked.gaps:
                    self._worth(self.games["COUNT"])
                continue
            assert item.predicate is not None
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
        """The games as the kernel takes them; a weight is the worth of that moment alone."""
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

    def answers(self, out: npt.NDArray[np.float64]) -> Answers:
        """The output rows under the names the items will ask for."""
        answers = Answers.empty()
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
