"""An estimate: the rows drawn, put to a condition, and what they tell of the whole window."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ids.engine.answering import Triple, answer, moments_of, window_alone
from ids.engine.core import Core
from ids.engine.rescaling import answer_rounded
from ids.errors import DataError
from ids.estimates import Drawn, Estimates, Parts, Whole, estimate
from ids.model.expression import Expression, columns_of
from ids.model.query import Approximate
from ids.model.sampling import Sampling
from ids.model.table import Table
from ids.plan.question import Question
from ids.predicates.deciding import decide
from ids.predicates.truth import holds, kleene
from ids.predicates.vector import Kleene
from ids.state.sample import Drawing

__all__ = ["estimate_drawn", "parts_of"]

Bools = npt.NDArray[np.bool_]


def estimate_drawn(
    core: Core, question: Question, drawing: Drawing, asked: Approximate, sampling: Sampling
) -> Estimates:
    """Value, share, lift, error and standard error of one window, each float64[1].

    Where every row that the condition may hold on was drawn, the exact answer to the bit.
    """
    game, condition = question.game, question.path.condition
    assert condition is not None
    summaries = core.measures[question.measure]
    member = drawing.plays & _held(condition, drawing.rows)
    open_ = _open_parts(condition, drawing)
    if _all_drawn(drawing, open_):
        exact = _exact(core, question, drawing.value[member])
        return Estimates(*(np.array([each]) for each in (*exact, 0.0, 0.0)))
    exponent = summaries.scale.exponent
    value = np.ldexp(drawing.value, -exponent)
    low, high = np.ldexp([drawing.low, drawing.high], -exponent)
    whole = drawing.whole
    drawn = Drawn(drawing.starts, value[whole:], member[whole:], drawing.plays[whole:])
    drawn = _rows_of(open_, drawn)
    found = estimate(
        game,
        moments_of(window_alone(summaries)),
        parts_of(drawing, low, high, open_),
        drawn,
        Whole(np.array([0, whole], np.int64), value[:whole], member[:whole], drawing.plays[:whole]),
        confidence=asked.confidence,
        bound=sampling.bound,
        replacement=drawing.replacement,
        control_variate=sampling.control_variate and drawing.strata is None,
    )
    with np.errstate(over="ignore", under="ignore"):
        return Estimates(*(np.ldexp(each, exponent * game.power) for each in found))


def parts_of(
    drawing: Drawing, low: float, high: float, which: Bools | slice = slice(None)
) -> Parts:
    """The parts of one window (or some), whose values all lie between ``low`` and ``high``."""
    population = drawing.population[which]
    count = len(population)
    return Parts(np.zeros(count, np.int64), population, np.full(count, low), np.full(count, high))


def _open_parts(condition: Expression, drawing: Drawing) -> Bools:
    """The parts where the condition may hold: a stratum may rule it out by itself."""
    if drawing.strata is not None:
        return _possible(condition, drawing.strata)
    return np.ones(len(drawing.population), np.bool_)


def _all_drawn(drawing: Drawing, open_: Bools) -> bool:
    """Whether every row of the open parts was drawn."""
    if drawing.complete:
        return True
    every = np.diff(drawing.starts) == drawing.population
    return not drawing.replacement and bool(every[open_].all())


def _exact(core: Core, question: Question, members: npt.NDArray[np.float64]) -> Triple:
    """The answer for these values, in the steps of any exact answer."""
    game, number, path, _ = question
    if number in core.rounded:
        assert path.condition is not None
        return answer_rounded(core, number, game, path.condition)
    summaries, everyone = core.measures[number], np.zeros(len(members), np.uint32)
    own = summaries.tally(1, everyone, summaries.cut(members), np.zeros(0, np.bool_), 1)
    return answer(summaries, own, 0, game)


def _rows_of(open_: Bools, drawn: Drawn) -> Drawn:
    """The rows of the open parts alone."""
    if open_.all():
        return drawn
    sizes = np.diff(drawn.starts)
    rows = np.repeat(open_, sizes)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[open_])])
    return Drawn(starts, drawn.value[rows], drawn.member[rows])


def _possible(condition: Expression, strata: Table) -> Bools:
    """In which strata the condition may hold, as far as their own columns tell."""

    def known(node: Expression) -> Kleene | None:
        read = set(columns_of(node))
        if not read or not read.issubset(strata.columns):
            return None
        try:
            return kleene(node, strata)
        except DataError:  # of integers that leave 64 bits, on rows that the rest may leave out
            return None

    highest = decide(condition, known)[1]
    return np.broadcast_to(highest == 1, strata.rows).copy()


def _held(condition: Expression, rows: Table) -> Bools:
    return holds(condition, rows) if rows.rows else np.zeros(0, np.bool_)
