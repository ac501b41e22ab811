"""Estimates: rows drawn from the window, put to a condition, and what they tell of all its rows.

Which rows are kept to be drawn, ``state/window_sample.py`` decides; the estimators and their bounds
are those of ``ids.games``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import numpy.typing as npt

from ids.engine.core import Core
from ids.errors import DataError
from ids.games import Drawn, Estimates, Game, Parts, Whole, estimate
from ids.model import (
    And,
    CountWindow,
    Expression,
    IsTrue,
    Not,
    Or,
    Sampling,
    Table,
    columns_of,
)
from ids.predicates import holds, kleene
from ids.state import Drawing, WindowSample, answer, moments_of, window_alone

Bools = npt.NDArray[np.bool_]


def draw_from(core: Core, sampling: Sampling, measure: int) -> Drawing:
    """A sample drawn on the spot from the rows inside, where none of that size is kept."""
    table, schema = core.retained.table(), core.schema
    once = replace(sampling, strata=(), replacement=False)
    window = CountWindow(max(1, table.rows))
    sample = WindowSample(schema.kinds, len(schema.measures), once, window)
    numbers, strata = sample.number(table)
    if core.retained.sequence is not None:
        numbers = core.retained.sequence
    if table.rows:
        sample.insert(table, schema.evaluate(table), None, numbers, strata)
    return sample.drawn(measure)


def estimate_drawn(
    core: Core, game: Game, measure: int, condition: Expression, drawing: Drawing,
    sampling: Sampling, confidence: float,
) -> Estimates:  # fmt: skip
    """Value, share, lift, error and standard error of one window, each float64[1].

    Where every row that the condition may hold on was drawn, the exact answer to the bit.
    """
    summaries = core.measures[measure]
    held = holds(condition, drawing.rows) if drawing.rows.rows else np.zeros(0, np.bool_)
    member = drawing.plays & held
    possible = _possible_parts(condition, drawing)
    if _all_drawn(drawing, possible):
        if measure in core.rounded:
            exact = core.answer_rounded(measure, game, condition)
        else:
            values, everyone = drawing.value[member], np.zeros(int(member.sum()), np.uint32)
            own = summaries.tally(1, everyone, summaries.cut(values), np.zeros(0, np.bool_), 1)
            exact = answer(summaries, own, 0, game)
        return Estimates(*(np.array([each]) for each in (*exact, 0.0, 0.0)))
    exponent = summaries.scale.exponent
    value = np.ldexp(drawing.value, -exponent)
    low, high = np.ldexp([drawing.low, drawing.high], -exponent)
    whole = drawing.whole
    drawn = Drawn(drawing.starts, value[whole:], member[whole:], drawing.plays[whole:])
    found = estimate(
        game,
        moments_of(window_alone(summaries)),
        parts_of(drawing, low, high, possible),
        _rows_of(possible, drawn),
        Whole(np.array([0, whole], np.int64), value[:whole], member[:whole], drawing.plays[:whole]),
        confidence=confidence,
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


def _possible_parts(condition: Expression, drawing: Drawing) -> Bools:
    """The parts where the condition may hold: a stratum may rule it out by itself."""
    if drawing.strata is not None:
        return _possible(condition, drawing.strata)
    return np.ones(len(drawing.population), np.bool_)


def _all_drawn(drawing: Drawing, possible: Bools) -> bool:
    """Whether every row of the parts where the condition may hold was drawn."""
    if drawing.complete:
        return True
    every = np.diff(drawing.starts) == drawing.population
    return not drawing.replacement and bool(every[possible].all())


def _rows_of(parts: Bools, drawn: Drawn) -> Drawn:
    """The rows of some parts alone."""
    if parts.all():
        return drawn
    sizes = np.diff(drawn.starts)
    rows = np.repeat(parts, sizes)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[parts])])
    return Drawn(starts, drawn.value[rows], drawn.member[rows])


def _possible(condition: Expression, strata: Table, truth: bool = True) -> Bools:
    """In which strata a condition may be TRUE (or FALSE), as far as their own columns tell."""
    if strata.columns.keys() >= set(columns_of(condition)):
        try:
            found = kleene(condition, strata) == (1 if truth else -1)
            return np.broadcast_to(found, strata.rows).copy()
        except DataError:  # integers that leave 64 bits, on rows that the rest may leave out
            pass
    match condition:
        case And(operands) | Or(operands):
            join = np.logical_and if isinstance(condition, And) is truth else np.logical_or
            each = [_possible(operand, strata, truth) for operand in operands]
            return cast(Bools, join.reduce(each))
        case Not(operand):
            return _possible(operand, strata, not truth)
        case IsTrue(operand, wanted) if truth:
            return _possible(operand, strata, wanted)
    return np.ones(strata.rows, np.bool_)
