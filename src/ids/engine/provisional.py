"""A provisional predicate: sums that begin with an estimate and go on with exact deltas.

What the estimate missed stays missed: every row that comes or goes changes the estimate and the
truth alike, so the error is the same integers until the rows inside are counted exactly.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Polynomial

from ids.engine.answering import answer, in_units, moments_of, window_alone
from ids.engine.core import Core, Signed
from ids.engine.estimating import parts_of
from ids.errors import StateError
from ids.estimates import Drawn, Whole, estimate
from ids.games import Game, Moments, find
from ids.kernels.scatter import add_rows
from ids.model.attribution import Attribution
from ids.model.expression import Expression, Name
from ids.model.scale import Scale
from ids.model.table import Table
from ids.plan.question import Path, named_in
from ids.predicates.truth import holds
from ids.state.power_sums import mean_of, power_sums, summary_of
from ids.state.sample import Drawing
from ids.state.summaries import Summaries

__all__ = [
    "Provisional",
    "provisional_meant",
    "provisional_named",
    "refuse_provisional_parts",
]

Words = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_CONFIDENCE = 0.95
_WHY = "promoted from the sample: the exact rebuild is on its way"


class Provisional:
    """One predicate's sums over every measure, and bounds on what the estimate missed.

    sums       int64[1, words] for each measure
    missed     float64[2, degree + 1] for each measure: bounds on the error of Σ_P (y - centre)**d
               that hold all together, then standard errors; in units of 2**(exponent · d)
    looked_at  rows drawn
    """

    def __init__(self, name: str, key: str, condition: Expression, core: Core) -> None:
        assert core.sampler is not None
        self.name = name
        self.key = key
        self.condition = condition
        self.size = core.sampler.sampling.size
        self.seed = core.sampler.sampling.seed
        self.scales: list[Scale] = [s.scale for s in core.measures]
        self.sums: list[Words] = []
        self.missed: list[npt.NDArray[np.float64]] = []
        self.centres: list[float] = []
        self.looked_at = 0
        for measure, summaries in enumerate(core.measures):
            drawing = core.sampler.sample.drawn(measure)
            self.looked_at = max(self.looked_at, len(drawing.value))
            member = drawing.plays & holds(condition, drawing.rows)
            self.sums.append(_estimated(summaries, drawing, member))
            centre = float(window_alone(summaries).mean[0]) if summaries.scale.digits else 0.0
            self.centres.append(centre)
            self.missed.append(_missed(summaries, drawing, member, centre))

    def fits(self, core: Core) -> bool:
        """Whether the sums are still in the units of the core's own."""
        return self.scales == [s.scale for s in core.measures]

    def add(self, core: Core, table: Table, signed: Signed, sign: int) -> None:
        """Rows come (1) or go (-1): counted exactly."""
        held = holds(self.condition, table)
        everyone = np.zeros(table.rows, np.uint32)
        for m, summaries in enumerate(core.measures):
            players = signed.players[m]
            taking = held & players if len(players) else held
            delta = summaries.tally(1, everyone, signed.digits[m], taking, sign)
            add_rows(self.sums[m], delta, summaries.scale.layout)

    def attribution(self, core: Core, game: Game, measure: int) -> Attribution:
        """An answer that says it is provisional, and how far off it may be."""
        summaries = core.measures[measure]
        found = answer(summaries, self.sums[measure], 0, game)
        error, standard_error = self._errors(summaries, game, measure)
        return Attribution(
            *found, "provisional", error, core.rows, _WHY, confidence=_CONFIDENCE,
            standard_error=standard_error, sample_size=self.size, seed=self.seed,
        )  # fmt: skip

    def _errors(self, summaries: Summaries, game: Game, measure: int) -> tuple[float, float]:
        """The errors of the sums, carried through the closed form of the window as it is now.

        The standard error is the largest it can be: as if those of the sums went together.
        """
        window = moments_of(window_alone(summaries))
        players = float(window.players[0])
        if not players:
            return 0.0, 0.0
        slopes = [float(np.ravel(s)[0]) for s in game.slopes(window)]
        terms = [float(game.worth(window)[0]) / players, *slopes]
        terms[0] -= sum(s * window.central[d, 0] / players for d, s in enumerate(slopes, 1))
        mean = float(window.mean[0]) if slopes else 0.0
        apart = (self.centres[measure] - mean) - float(window.rest[0])
        around = Polynomial(terms)(Polynomial([apart, 1.0]))
        weights = np.abs(np.atleast_1d(around.coef))
        error, standard = self.missed[measure][:, : len(weights)] @ weights
        return in_units(float(error), summaries, game), in_units(float(standard), summaries, game)


def _estimated(summaries: Summaries, drawing: Drawing, member: Bools) -> Words:
    """Rows taken whole as they are, rows drawn for as many times as each stands for.

    Sums about the window's mean are rounded to whole numbers, once.
    """
    scale = summaries.scale
    digits = summaries.cut(drawing.value)
    everyone = np.zeros(len(member), np.uint32)
    centre = mean_of(summaries.window, scale)
    total = [Fraction(0)] * (scale.degree + 1)
    ends = [0, drawing.whole, *(drawing.whole + drawing.starts[1:]).tolist()]
    stands_for = [drawing.whole, *drawing.population.tolist()]
    for (first, last), population in zip(pairwise(ends), stands_for, strict=True):
        if last > first:
            rows = slice(first, last)
            part = summaries.tally(1, everyone[rows], digits[rows], member[rows], 1)
            times = Fraction(population, last - first)
            own = power_sums(part[0], scale, centre)
            total = [whole + times * each for whole, each in zip(total, own, strict=True)]
    return summary_of([round(each) for each in total], scale, centre).reshape(1, -1)


def _missed(
    summaries: Summaries, drawing: Drawing, member: Bools, centre: float
) -> npt.NDArray[np.float64]:
    """Bounds on the error of the count and of each power sum, that hold all together, and each
    one's standard error.
    """
    powers = summaries.scale.degree + 1 if summaries.scale.digits else 1
    confidence = 1.0 - (1.0 - _CONFIDENCE) / powers
    exponent = -summaries.scale.exponent
    value = np.ldexp(drawing.value, exponent) - centre
    reach = np.ldexp([drawing.low, drawing.high], exponent) - centre
    unit = Moments.of(1.0, 0.0, 0.0, [1.0, 0.0])  # Σ y itself: no mean is taken off
    bounds = np.zeros((2, powers))
    for power in range(powers):
        raised = np.where(drawing.plays, value**power, 0.0)
        ends = sorted(reach**power)
        if power and power % 2 == 0 and reach[0] < 0 < reach[1]:
            ends[0] = 0.0
        whole = drawing.whole
        found = estimate(
            find("SUM"), unit, parts_of(drawing, *ends),
            Drawn(drawing.starts, raised[whole:], member[whole:]),
            Whole(np.array([0, whole], np.int64), raised[:whole], member[:whole]),
            confidence=confidence, replacement=drawing.replacement,
        )  # fmt: skip
        bounds[:, power] = found.error[0], found.standard_error[0]
    if bounds[0].any():
        bounds[0, 0] += 0.5  # rows are counted whole
    return bounds


def provisional_named(predicate: Expression, core: Core) -> Path | None:
    """The provisional predicate that a question names, if it does."""
    name = _provisional(predicate, core) if isinstance(predicate, Name) else None
    return None if name is None else Path("provisional", "", name)


def provisional_meant(path: Path, core: Core) -> Path:
    """The provisional predicate that a question means which would be put to the rows, if any."""
    if path.mechanism == "rows":
        for name, one in core.provisional.items():
            if one.key == path.key:
                return Path("provisional", "", name)
    return path


def _provisional(name: Name, core: Core) -> str | None:
    """The provisional predicate of a name, whatever the case."""
    return next((n for n in core.provisional if n.lower() == name.name.lower()), None)


def refuse_provisional_parts(predicate: Expression, core: Core) -> None:
    """A provisional predicate has no atoms yet: nothing joint can be asked of it."""
    for name in named_in(predicate):
        if _provisional(name, core) is not None and name is not predicate:
            raise StateError(
                f"{name.name} is provisional: it can be asked about alone until its exact rebuild; "
                "call engine.rebuild() for that now"
            )
