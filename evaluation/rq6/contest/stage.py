"""Stage: one window as every contender finds it, and what it is asked for."""

from __future__ import annotations

from functools import cached_property, partial
from itertools import repeat

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import ids
from evaluation.asking import after_slides
from evaluation.baselines.coalitions import Aggregate, Floats, GroupGame
from evaluation.baselines.factor import lift_factors
from evaluation.bench import Bench
from evaluation.engines import registered
from evaluation.rq6.candidates import SIBLINGS, conditions_of
from evaluation.rq6.truth import truth
from evaluation.subject import REGIONS, SUBJECTS
from evaluation.values import plain, where

__all__ = ["AGGREGATES", "Groups", "Stage"]

AGGREGATES: tuple[Aggregate, ...] = ("AVG", "VAR_POP")
Groups = npt.NDArray[np.intp]

_ASKED = 201  # questions of which the median is one repetition's latency


class Stage:
    """The ``n`` rows before the onset.

    y        float64[n]   the measure
    masks    bool[n] by predicate
    atom     intp[n]      each row's atom, of ``ATOMS``: region × premium or not × checkout or not
    """

    ATOMS = 4 * len(REGIONS)

    def __init__(self, bench: Bench, n: int) -> None:
        subject = SUBJECTS["synthetic"]
        self.n = n
        self.rows: pa.Table = bench.events(subject, n, truth(bench).onset - n)
        self.y: Floats = self.rows[subject.value].to_numpy()
        self.masks = {candidate.name: candidate.mask(self.rows) for candidate in SIBLINGS}
        region = plain(self.rows["region"])
        premium = where(plain(self.rows["tier"]), "premium")
        codes = sum(k * where(region, name) for k, name in enumerate(REGIONS))
        self.atom: Groups = np.asarray(4 * codes + 2 * premium + self.masks["checkout"], np.intp)
        self._engine = registered(
            ids.Engine(window=ids.CountWindow(n), value=subject.value), conditions_of(SIBLINGS)
        )
        self._engine.ingest(self.rows)
        self._asked = {
            (aggregate, name): self._engine.attribute(aggregate, name).value
            for aggregate in AGGREGATES
            for name in self.masks
        }
        self._refuse_wrong_closed_form()

    @cached_property
    def atoms_of(self) -> dict[str, Groups]:
        """The atoms that each predicate is the union of."""
        return {name: np.unique(self.atom[mask]) for name, mask in self.masks.items()}

    def two(self, aggregate: Aggregate, name: str) -> GroupGame:
        """The game of two players: the predicate's rows, and the others."""
        return GroupGame.of_rows(aggregate, self.y, (~self.masks[name]).astype(np.intp), 2)

    def atoms(self, aggregate: Aggregate) -> GroupGame:
        """The game that the atoms play."""
        return GroupGame.of_rows(aggregate, self.y, self.atom, self.ATOMS)

    def estimands(self, aggregate: Aggregate) -> dict[str, dict[str, float]]:
        """What each kind of method is after, by kind and predicate; all exact."""
        atoms = self.atoms(aggregate).shapley()
        return {
            "tuples": {name: self._asked[aggregate, name] for name in self.masks},
            "two": {name: float(self.two(aggregate, name).shapley()[0]) for name in self.masks},
            "atoms": {name: float(atoms[of].sum()) for name, of in self.atoms_of.items()},
        }

    def ask(self, aggregate: Aggregate) -> float:
        """Seconds of a question to the engine, the median of many; each follows a slide."""
        asked = partial(self._engine.attribute, aggregate, "planted")
        return 1e-6 * after_slides(self._engine, repeat(self.rows.slice(0, 1)), asked, _ASKED).p50

    def _refuse_wrong_closed_form(self) -> None:
        """The yardstick itself, against the AVG formula written out."""
        mean = self.y.mean()
        slope = lift_factors(self.n)[self.n]
        for name, mask in self.masks.items():
            expected = mask.sum() / self.n * mean + slope * (self.y[mask] - mean).sum()
            if not np.isclose(self._asked["AVG", name], expected, rtol=1e-9):
                raise AssertionError(f"the engine and the formula differ on {name}")
