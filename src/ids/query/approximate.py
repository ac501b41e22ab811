"""APPROXIMATE items, which are estimated at each emit from a sample of the window's rows.

    rows in the window ─▶ the rows with the k largest and k smallest values
                       └▶ the first r of the other rows by priority ─▶ estimate ± bound

A window of at most r + 2·k rows is not sampled; the result is exact, and its error is 0. Items with
the same measure and sample size share a sample.

Estimates use the exact moments of the window, which are added to the query as aggregates. The
moments, and therefore the estimates, are bit-identical in process and on Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ids.games import Drawn, Estimates, Game, Moments, Parts, Whole, estimate, find
from ids.kernels import THREADS, Keys, Taken, draw, side_by_side
from ids.model import MAX_DEGREE, ItemKind
from ids.plan import PlannedItem, SelectPlan
from ids.predicates import Measure
from ids.query.replay import Answers
from ids.state import tie_breaks

Floats = npt.NDArray[np.float64]


def _mean_power(degree: int) -> Game:
    """Return a game whose worth is Σ (y - mean)**degree / N; its attributions are not used."""

    def worth(window: Moments) -> Floats:
        mean: Floats = window.central[degree] / np.maximum(window.players, 1.0)
        return mean

    def slopes(window: Moments) -> list[Floats]:
        return [np.zeros_like(window.players)] * degree

    return Game(f"POWER_{degree}", degree, degree, worth, slopes)


_COUNT, _SUM, _AVG = find("COUNT"), find("SUM"), find("AVG")
# A game whose worth is the rounding error of the mean. Samples are centred at mean + error.
_REST = Game("MEAN_REST", 1, 1, lambda w: w.rest, lambda w: [np.zeros_like(w.players)])
_POWERS = {degree: _mean_power(degree) for degree in range(2, MAX_DEGREE + 1)}


def with_moments(plan: SelectPlan) -> SelectPlan:
    """Add the moments of sampled measures to the items of a plan."""
    return replace(plan, items=(*plan.items, *moment_items(plan)))


def moment_items(plan: SelectPlan) -> tuple[PlannedItem, ...]:
    """Return items, named ``ids_…``, that compute the moments of every sampled measure."""
    degrees: dict[int, int] = {}
    for item in plan.sampled:
        degrees[item.measure] = max(degrees.get(item.measure, 0), item.game.degree)
    return tuple(
        PlannedItem(
            ItemKind.AGGREGATE, game, measure, None, f"ids_{game.name}_{measure}", (), "aggregate"
        )
        for measure, degree in degrees.items()
        for game in _games(degree)
    )


def _games(degree: int) -> tuple[Game, ...]:
    """Return games whose worths are the moments up to a degree."""
    first = (_SUM, _AVG, _REST) if degree else ()
    return (_COUNT, *first, *(_POWERS[d] for d in range(2, degree + 1)))


def moments_at(
    answers: Answers, item: PlannedItem, emits: npt.NDArray[np.int64], exponent: int
) -> Moments:
    """Return the moments of an item's measure at some emits, in units of 2**exponent."""

    def worth(game: Game) -> Floats:
        values, missing = answers.worths[game.name, item.measure]
        return np.ldexp(np.where(missing[emits], 0.0, values[emits]), -exponent * game.power)

    degree = item.game.degree
    players = worth(_COUNT)
    nothing = np.zeros_like(players)
    total, mean, rest = (worth(g) if degree else nothing for g in (_SUM, _AVG, _REST))
    central = [players, nothing][: degree + 1]
    central += [players * worth(_POWERS[d]) for d in range(2, degree + 1)]
    return Moments(players, total, mean, np.array(central), rest)


Integers = npt.NDArray[np.int64]

_BLOCK_ROWS = 2**19  # sampled rows per block of emits
_NO_ROWS = np.zeros(0, np.int64)


class Population(NamedTuple):
    """The rows in window order, grouped by key, and the windows to sample.

    priority  int64[n]    each row's priority in samples
    atoms     uint32[n]   the atom of each row
    held      bool[a, K]  whether predicate k holds on atom i
    measures  the values of each measure; None for COUNT(*)
    arrived, expired  int64[e]  end and start of each window
    sizes     int64[e]    the number of rows in each window; this exceeds ``arrived - expired`` if
                          rows that cannot be sampled were removed
    """

    priority: Integers
    atoms: npt.NDArray[np.uint32]
    held: npt.NDArray[np.bool_]
    measures: Sequence[Measure | None]
    arrived: Integers
    expired: Integers
    sizes: Integers


class _Drawing(NamedTuple):
    """A sample that several items share.

    measure  the number of the measure; None if the items do not depend on values
    size     the number of rows sampled per window
    whole    the number of largest (and of smallest) values that are included exactly
    """

    measure: int | None
    size: int
    whole: int


class _Block(NamedTuple):
    """The sampled rows and the rows with extreme values of some emits, grouped by emit."""

    emits: Integers
    sample: Integers
    sample_starts: Integers
    whole: Integers
    whole_starts: Integers
    parts: Parts


def estimate_items(plan: SelectPlan, rows: Population, answers: Answers) -> dict[str, Estimates]:
    """Estimate every APPROXIMATE item; ``answers`` contains exact results and moments."""
    drawings: dict[_Drawing, list[PlannedItem]] = {}
    found = {}
    for item in plan.sampled:
        measure = item.measure if item.game.degree else None
        size = item.approximate.size if item.approximate is not None else 0
        drawings.setdefault(_Drawing(measure, size, item.extremes), []).append(item)
        found[item.name] = _exact(answers, item, len(rows.sizes))
    for drawing, items in drawings.items():
        _estimate_drawing(drawing, items, rows, answers, found)
    return found


def _exact(answers: Answers, item: PlannedItem, emits: int) -> Estimates:
    """Return the exact results with error 0; estimates later replace some of them."""
    value, share, lift = (
        part.copy() if len(part) == emits else np.zeros(emits) for part in answers.attributed(item)
    )
    return Estimates(value, share, lift, np.zeros(emits), np.zeros(emits))


def _estimate_drawing(
    drawing: _Drawing, items: Sequence[PlannedItem], rows: Population, answers: Answers,
    found: Mapping[str, Estimates],
) -> None:  # fmt: skip
    """Sample the windows that are larger than the sample, and estimate the items there."""
    wide = np.flatnonzero(rows.sizes > drawing.size + 2 * drawing.whole)
    measure = None if drawing.measure is None else rows.measures[drawing.measure]
    keys = Keys(rows.priority, _NO_ROWS if measure is None else _ranks(rows.priority, measure))

    def run(part: tuple[int, int]) -> None:
        for block in _blocks(drawing, keys, rows, wide[slice(*part)], answers):
            for item in items:
                new = _estimate(item, block, rows, answers)
                for every, some in zip(found[item.name], new, strict=True):
                    every[block.emits] = some

    cuts = [len(wide) * k // THREADS for k in range(THREADS + 1)]
    for _ in side_by_side(run, [(a, b) for a, b in pairwise(cuts) if b > a]):
        pass


def _ranks(priority: Integers, measure: Measure) -> Integers:
    """Return each player's rank by value, with ties broken by priority; -1 for other rows."""
    ties = tie_breaks(priority)
    ranks = np.full(len(ties), -1, np.int64)
    if measure.players is None:
        order = np.lexsort((ties, measure.values))
    else:
        players = np.flatnonzero(measure.players)
        order = players[np.lexsort((ties[players], measure.values[players]))]
    ranks[order] = np.arange(len(order))
    return ranks


def _blocks(
    drawing: _Drawing, keys: Keys, rows: Population, emits: Integers, answers: Answers
) -> Iterator[_Block]:
    """Sample the given emits, block by block."""
    _, size, whole = drawing
    block = max(1, _BLOCK_ROWS // (size + 2 * whole))
    lists = tuple(np.empty(1024, np.int64) for _ in range(3))
    states = np.zeros((3, 3), np.int64)
    for at in range(0, len(emits), block):
        here = emits[at : at + block]
        count = len(here)
        taken = Taken(
            np.empty((count, size), np.int64),
            np.empty((count, 2 * whole), np.int64),
            *(np.empty(count, np.int64) for _ in range(3)),
        )
        lists = draw(keys, rows.arrived[here], rows.expired[here], whole, lists, states, taken)
        low, high = _range(drawing.measure, here, taken, rows, answers)
        yield _Block(
            here,
            taken.sample.reshape(-1),
            np.arange(count + 1) * size,
            taken.whole[np.arange(2 * whole) < taken.held[:, None]],
            np.concatenate([[0], np.cumsum(taken.held)]),
            Parts(np.arange(count), rows.sizes[here] - taken.held, low, high),
        )


def _range(
    number: int | None, emits: Integers, taken: Taken, rows: Population, answers: Answers
) -> tuple[Floats, Floats]:
    """Return bounds on the values of the players that are not among the extremes."""
    measure = None if number is None else rows.measures[number]
    if number is None or measure is None:
        return np.zeros(len(emits)), np.zeros(len(emits))
    players, _ = answers.worths["COUNT", number]
    # if all players are among the extremes, there are no bounds, which low > high indicates
    all_whole = players[emits] <= taken.held
    low = np.where(all_whole, 1.0, measure.values[taken.low])
    return low, np.where(all_whole, 0.0, measure.values[taken.high])


@np.errstate(over="ignore", invalid="ignore")
def _estimate(item: PlannedItem, block: _Block, rows: Population, answers: Answers) -> Estimates:
    """Estimate an item in units of 2**exponent, so that squares of values do not overflow.

    If a third or fourth moment is infinite, the estimate is NaN and its error is infinite.
    """
    assert item.predicate is not None
    measure = rows.measures[item.measure]
    if item.game.degree == 0 or measure is None:
        exponent, values = 0, np.zeros(len(rows.atoms))
    else:
        exponent, values = _exponent(block, measure.values), measure.values
    member = rows.held[:, item.predicate]

    def drawn(places: Integers) -> tuple[Floats, npt.NDArray[np.bool_]]:
        plays = member[rows.atoms[places]]
        if measure is not None and measure.players is not None:
            plays &= measure.players[places]
        return np.ldexp(values[places], -exponent), plays

    window, population, low, high = block.parts
    found = estimate(
        item.game,
        moments_at(answers, item, block.emits, exponent),
        Parts(window, population, np.ldexp(low, -exponent), np.ldexp(high, -exponent)),
        Drawn(block.sample_starts, *drawn(block.sample)),
        Whole(block.whole_starts, *drawn(block.whole)),
        confidence=item.confidence,
    )
    return Estimates(*(np.ldexp(each, exponent * item.game.power) for each in found))


def _exponent(block: _Block, values: Floats) -> int:
    """Return the exponent of the largest magnitude of any player at these emits."""
    bounds = block.parts.low, block.parts.high
    known = [values[block.sample], values[block.whole], *bounds]
    return int(np.frexp(max(np.abs(each).max(initial=0.0) for each in known))[1])
