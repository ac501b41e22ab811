"""Promotion: registers conditions that are queried often, and drops them when they are no longer.

With ``bootstrap="sample"`` a promoted predicate is *provisional* at first: its sums start as an
estimate from the sample. When a row is added or removed, the exact sums and the estimated sums
change by the same amount, so the error of each sum stays constant. A *rebuild* later replaces the
estimate by exact sums over the retained rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import pairwise
from math import comb
from threading import TIMEOUT_MAX, Timer
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Polynomial

from ids.engine.core import Core, TaggedRows
from ids.engine.questions import parts_of
from ids.engine.registrations import Registrations
from ids.errors import UnknownNameError
from ids.games import Drawn, Game, Moments, Whole, estimate, find
from ids.kernels import add_rows
from ids.model import (
    DIGIT_BITS,
    Attribution,
    Expression,
    Name,
    Promotion,
    Scale,
    Table,
    columns_of,
)
from ids.plan import Path, Policy, Question
from ids.predicates import holds
from ids.state import Drawing, Summaries, WindowSample, moments_of

Words = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# A query that reads at least a quarter of the rows has the same weight as one that reads them all.
_FULL_WEIGHT = 4.0
_CONFIDENCE = 0.95
_WHY = "promoted from the sample: the exact rebuild is pending"


class Promoter:
    """Promotes and demotes conditions according to ``policy``.

    Each query is counted immediately. Predicates are added and dropped only while no slide is
    running: either during the query, or after the current slide (``catch_up``).
    """

    def __init__(
        self, promotion: Promotion, registrations: Registrations, rebuild: Callable[[], object]
    ) -> None:
        self.promotion = promotion
        self.policy = Policy(promotion)
        self.names: dict[str, str] = {}  # by key
        self.weights: dict[str, float] = {}  # by key: the weight of a query before promotion
        self._registrations = registrations
        self._rebuild_engine = rebuild
        self._serial = 0
        self._due: dict[str, tuple[Expression, float]] = {}  # conditions and weights, by key
        self._overdue = False  # whether the exact rebuild is overdue

    def ask(self, core: Core, question: Question, touched: int, *, may_change: bool) -> int:
        """Count a query that would read ``touched`` rows, and promote its condition if it is due.

        Return the number of rows read by the promotion. The promotion also yields the answer to the
        query, so it reads no more rows than the scan that it replaces. If ``may_change`` is False,
        the query is counted but nothing is promoted.
        """
        if may_change:
            self._demote_stale(core)
        for key in self._used(question.path):
            self.policy.ask(key, self.weights[key])
        path = question.path
        if path.mechanism == "rows":
            weight = min(1.0, _FULL_WEIGHT * touched / max(1, core.rows))
            if self.policy.ask(path.key, weight) is not None and path.condition is not None:
                self._due[path.key] = path.condition, weight
        return self._promote_due(core).get(path.key, 0) if may_change else 0

    def catch_up(self, core: Core) -> None:
        """Perform the promotions and rebuilds that were requested while a slide was running."""
        if self._overdue:
            self.rebuild(core)
        self._demote_stale(core)
        self._promote_due(core)

    def _demote_stale(self, core: Core) -> None:
        for key in self.policy.stale():
            self._demote(core, key)

    def _promote_due(self, core: Core) -> dict[str, int]:
        """Promote the conditions that still qualify; return how many rows were read for each."""
        due, self._due = self._due, {}
        looked_at = {}
        for key, (condition, weight) in due.items():
            verdict = self.policy.verdict(key)
            if verdict is None or not core.has_room:
                continue
            if verdict.demoted is not None:
                self._demote(core, verdict.demoted)
            self.weights[key] = weight
            looked_at[key] = self._promote(core, key, condition)
        return looked_at

    def _used(self, path: Path) -> list[str]:
        """Return the keys of the promoted conditions that are used to answer a query."""
        used = {path.name} if path.name else set(columns_of(path.condition or Name("")))
        return [key for key, name in self.names.items() if name in used]

    def _promote(self, core: Core, key: str, condition: Expression) -> int:
        """Promote a condition; return how many rows were read."""
        taken = {*self._registrations.conditions, *core.provisional, *core.schema.kinds}
        name = self._free_name({each.lower() for each in taken})
        if self.promotion.bootstrap == "sample" and core.rows and core.sample is not None:
            core.add_provisional(Provisional(name, key, condition, core, core.sample))
            self._registrations.changed()
            if self.promotion.rebuild_after <= TIMEOUT_MAX:  # else only the user can request it
                timer = Timer(self.promotion.rebuild_after, self._rebuild_when_due)
                timer.daemon = True
                timer.start()
        else:
            self._registrations.register(core, name, condition)
        self.names[key] = name
        self.policy.promote(key)
        provisional = core.provisional.get(name)
        return core.rows if provisional is None else provisional.looked_at

    def _demote(self, core: Core, key: str) -> None:
        name = self.names.pop(key)
        del self.weights[key]
        self.policy.demote(key)
        # a condition that one of the user's predicates depends on stays registered
        with suppress(UnknownNameError):
            self._registrations.drop(core, name)

    def _rebuild_when_due(self) -> None:
        """Rebuild now, or after the current slide if one is running."""
        self._overdue = True
        self._rebuild_engine()

    def rebuild(self, core: Core) -> list[str]:
        """Compute the exact sums of every provisional predicate, and return their names."""
        self._overdue = False
        provisional = list(core.provisional.values())
        for one in provisional:
            core.remove_provisional(one.name)
        for one in provisional:
            self._registrations.register(core, one.name, one.condition)
        return [one.name for one in provisional]

    def forget(self, name: str) -> None:
        """Stop tracking a predicate that the user has dropped."""
        for key in [k for k, n in self.names.items() if n == name]:
            del self.names[key], self.weights[key]
            self.policy.demote(key)

    def _free_name(self, taken: set[str]) -> str:
        while True:
            self._serial += 1
            name = f"promoted_{self._serial}"
            if name not in taken:
                return name

    def facts(self) -> dict[str, Any]:
        """Return the state as a dict for a checkpoint, which has no provisional predicates."""
        return {
            "names": self.names,
            "weights": self.weights,
            "serial": self._serial,
            "policy": self.policy.facts(),
        }

    def restore(self, facts: Mapping[str, Any]) -> None:
        """Restore the state that ``facts`` returned."""
        self.names, self.weights = dict(facts["names"]), dict(facts["weights"])
        self._serial = facts["serial"]
        self.policy.restore(facts["policy"])


class Provisional:
    """The sums of a provisional predicate for every measure, with bounds on their errors.

    sums       int64[1, words] for each measure
    missed     float64[2, degree + 1] for each measure, in units of 2**(exponent · d): row 0
               contains bounds on the error of Σ_P (y - centre)**d that hold jointly, row 1 the
               standard errors
    looked_at  the number of rows drawn
    """

    def __init__(
        self, name: str, key: str, condition: Expression, core: Core, sample: WindowSample
    ) -> None:
        self.name = name
        self.key = key
        self.condition = condition
        self.size = sample.sampling.size
        self.seed = sample.sampling.seed
        self.scales: list[Scale] = [s.scale for s in core.measures]
        self.sums: list[Words] = []
        self.missed: list[npt.NDArray[np.float64]] = []
        self.centres: list[float] = []
        self.looked_at = 0
        for measure, summaries in enumerate(core.measures):
            drawing = sample.drawn(measure)
            self.looked_at = max(self.looked_at, len(drawing.value))
            member = drawing.plays & holds(condition, drawing.rows)
            self.sums.append(_estimated(summaries, drawing, member))
            centre = float(summaries.window_alone().mean[0]) if summaries.scale.digits else 0.0
            self.centres.append(centre)
            self.missed.append(_missed(summaries, drawing, member, centre))

    def fits(self, core: Core) -> bool:
        """Return whether the sums have the same scales as the core."""
        return self.scales == [s.scale for s in core.measures]

    def add(self, core: Core, table: Table, signed: TaggedRows, sign: int) -> None:
        """Add rows (sign 1) or remove them (sign -1), exactly."""
        held = holds(self.condition, table)
        everyone = np.zeros(table.rows, np.uint32)
        for m, summaries in enumerate(core.measures):
            players = signed.players[m]
            taking = held & players if len(players) else held
            delta = summaries.tally(1, everyone, signed.digits[m], taking, sign)
            add_rows(self.sums[m], delta, summaries.scale.layout)

    def attribution(self, core: Core, game: Game, measure: int) -> Attribution:
        """Return the attribution, marked as provisional, with its error bound."""
        summaries = core.measures[measure]
        found = summaries.answer(self.sums[measure], 0, game)
        error, standard_error = self._errors(summaries, game, measure)
        return Attribution(
            *found, "provisional", error, core.rows, _WHY, confidence=_CONFIDENCE,
            standard_error=standard_error, sample_size=self.size, seed=self.seed,
        )  # fmt: skip

    def _errors(self, summaries: Summaries, game: Game, measure: int) -> tuple[float, float]:
        """Derive the error bound and the standard error of an answer from those of the sums.

        The standard error is an upper bound, because the sums are assumed to be fully correlated.
        """
        window = moments_of(summaries.window_alone())
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
        return summaries.in_units(float(error), game), summaries.in_units(float(standard), game)


def _estimated(summaries: Summaries, drawing: Drawing, member: Bools) -> Words:
    """Estimate the summary: sampled rows are weighted, and rows included exactly have weight 1.

    Sums about the window's mean are computed as fractions and rounded once, to whole numbers.
    """
    scale = summaries.scale
    digits = summaries.cut(drawing.value)
    everyone = np.zeros(len(member), np.uint32)
    centre = _mean_of(summaries.window, scale)
    total = [Fraction(0)] * (scale.degree + 1)
    ends = [0, drawing.whole, *(drawing.whole + drawing.starts[1:]).tolist()]
    stands_for = [drawing.whole, *drawing.population.tolist()]
    for (first, last), population in zip(pairwise(ends), stands_for, strict=True):
        if last > first:
            rows = slice(first, last)
            part = summaries.tally(1, everyone[rows], digits[rows], member[rows], 1)
            times = Fraction(population, last - first)
            own = _power_sums(part[0], scale, centre)
            total = [whole + times * each for whole, each in zip(total, own, strict=True)]
    return _summary_of([round(each) for each in total], scale, centre).reshape(1, -1)


def _missed(
    summaries: Summaries, drawing: Drawing, member: Bools, centre: float
) -> npt.NDArray[np.float64]:
    """Return joint error bounds for the count and each power sum, and their standard errors."""
    powers = summaries.scale.degree + 1 if summaries.scale.digits else 1
    confidence = 1.0 - (1.0 - _CONFIDENCE) / powers
    exponent = -summaries.scale.exponent
    value = np.ldexp(drawing.value, exponent) - centre
    limits = np.ldexp([drawing.low, drawing.high], exponent) - centre
    unit = Moments.of(1.0, 0.0, 0.0, [1.0, 0.0])  # with these moments SUM is Σ y itself
    bounds = np.zeros((2, powers))
    for power in range(powers):
        raised = np.where(drawing.plays, value**power, 0.0)
        ends = sorted(limits**power)
        if power and power % 2 == 0 and limits[0] < 0 < limits[1]:
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
        bounds[0, 0] += 0.5  # the count was rounded to a whole number
    return bounds


def _mean_of(summary: Words, scale: Scale) -> int:
    """Return the mean in grid units, rounded down, or 0 if there are no rows."""
    count, sums = scale.decode(summary)
    return sums[0] // count if count and sums else 0


def _power_sums(summary: Words, scale: Scale, centre: int) -> list[int]:
    """Return Σ (q - centre)**d for d = 0 … degree, in grid units."""
    count, sums = scale.decode(summary)
    own = _centre(scale)
    about_own = [*_moved([count, *sums[:2]], own), *sums[2:]]
    return _moved(about_own, centre - own)


def _summary_of(sums: Sequence[int], scale: Scale, centre: int) -> Words:
    """Return the summary that has these power sums about ``centre`` (inverse of ``_power_sums``).

    A summary stores Σ q and Σ q² about 0, and the higher powers about the scale's centre. Sums
    about 0 must not be multiplied by a fraction and rounded: an excess of half a row at y = 10**9
    is a small error in the count, but an error of 5·10**8 in the sum. Therefore the rounded sums
    are sums about the mean.
    """
    own = _centre(scale)
    about_own = _moved(sums, own - centre)
    return scale.encode(sums[0], [*_moved(about_own[:3], -own)[1:], *about_own[3:]])


def _moved(sums: Sequence[int], by: int) -> list[int]:
    """Return Σ (x - by)**d, computed from ``sums`` = Σ x**d."""
    return [
        sum(comb(d, i) * (-by) ** (d - i) * sums[i] for i in range(d + 1)) for d in range(len(sums))
    ]


def _centre(scale: Scale) -> int:
    """Return the scale's centre in grid units."""
    whole = 0
    for digit in scale.centre:
        whole = (whole << DIGIT_BITS) + digit
    return whole
