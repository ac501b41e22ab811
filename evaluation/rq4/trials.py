"""Many samples of one window, each drawn anew: how far off they are, and whether bounds hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluation.rq4.window import Window
from ids.estimates import Drawn, Estimates, Parts, Whole, estimate, paper_bound
from ids.games import GAMES
from ids.model.sampling import extremes_of
from tests.oracles.moments import repeated

__all__ = ["CONFIDENCE", "GAMES_ASKED", "Judged", "Way", "trials"]

CONFIDENCE = 0.95
GAMES_ASKED = ("COUNT", "SUM", "AVG", "VAR_POP", "VAR_SAMP")
BLOCK = 2_500_000  # rows estimated in one call, at most

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
Members = tuple[Booleans, Booleans]


class Way(NamedTuple):
    """A way to draw, and to bound; with no more than a label, what the engine does by itself."""

    label: str
    bound: str = "bernstein"
    replacement: bool = False
    control_variate: bool = False
    extremes: bool = True

    def whole(self, game: str, r: int) -> int:
        """The rows taken whole on either side; COUNT needs none."""
        return extremes_of(r) if self.extremes and game != "COUNT" else 0


class Judged(NamedTuple):
    """One game, one predicate, one r: what the trials show.

    held        rows at hand: r, and those taken whole
    mae, rmse   mean of |error|, root of the mean of its square
    observed    the 95th percentile of |error|
    bound       the median of the bounds that came with the estimates
    coverage    how often the exact value lay within its bound
    eq6         the paper's bound (its Eq. 6) for r rows, and how often it held
    eq6_held    the same for as many rows as are held
    z           the mean error in standard deviations of that mean: bias shows as a large one
    """

    way: str
    game: str
    predicate: str
    selectivity: float
    r: int
    held: int
    trials: int
    worth: float
    exact: float
    mae: float
    rmse: float
    observed: float
    bound: float
    coverage: float
    eq6: float
    eq6_coverage: float
    eq6_held: float
    z: float

    @property
    def slack(self) -> float | None:
        """The bound over the error that it had to cover; None where that is rounding alone."""
        return self.bound / self.observed if self.observed > 1e-9 * abs(self.exact) else None


class Draws(NamedTuple):
    """A block of trials: rows taken whole (in each trial) and rows drawn, with their values."""

    trials: int
    whole: Integers
    rows: Integers
    value: Floats
    population: int
    low: float
    high: float


def trials(
    window: Window,
    way: Way,
    r: int,
    times: int,
    rng: np.random.Generator,
    said: Callable[[float], None] = lambda _: None,
) -> Iterator[Judged]:
    """Every game and predicate from samples of r rows, ``times`` of them.

    Games and predicates are put to the same samples. A control variate has nothing to lean on for
    COUNT, so that one is left out.
    """
    groups: list[Sequence[str]] = [GAMES_ASKED[1:]]
    if not way.control_variate:
        groups.append(GAMES_ASKED[:1])
    for k, games in enumerate(groups):
        cells: dict[tuple[str, str], list[Estimates]] = {}
        done = 0
        for draws in _draws(window, way, r, way.whole(games[0], r), times, rng):
            for name, holds in window.holds.items():
                member = holds[draws.rows], np.tile(holds[draws.whole], draws.trials)
                for game in games:
                    found = _estimate(window, way, game, member, draws)
                    cells.setdefault((game, name), []).append(found)
            done += draws.trials
            said((k + done / times) / len(groups))
        for (game, name), blocks in cells.items():
            yield _judged(window, way, game, name, r, blocks)


def _draws(
    window: Window, way: Way, r: int, k: int, times: int, rng: np.random.Generator
) -> Iterator[Draws]:
    whole, rest = window.divided(k)
    low, high = window.value[rest[[0, -1]]]
    block = max(1, BLOCK // (r + len(whole)))
    for first in range(0, times, block):
        count = min(block, times - first)
        drawn = [rng.choice(len(rest), r, replace=way.replacement) for _ in range(count)]
        rows = rest[np.concatenate(drawn)]
        yield Draws(count, whole, rows, window.value[rows], len(rest), low, high)


def _estimate(window: Window, way: Way, game: str, member: Members, draws: Draws) -> Estimates:
    count = draws.trials
    starts = np.arange(count + 1)
    parts = Parts(
        np.arange(count),
        np.full(count, draws.population),
        np.full(count, draws.low),
        np.full(count, draws.high),
    )
    return estimate(
        GAMES[game],
        repeated(window.moments, count),
        parts,
        Drawn(starts * (len(draws.rows) // count), draws.value, member[0]),
        Whole(starts * len(draws.whole), np.tile(window.value[draws.whole], count), member[1]),
        confidence=CONFIDENCE,
        bound=way.bound,
        replacement=way.replacement,
        control_variate=way.control_variate,
    )


def _judged(
    window: Window, way: Way, game: str, name: str, r: int, blocks: list[Estimates]
) -> Judged:
    value = np.concatenate([block.value for block in blocks])
    error = np.concatenate([block.error for block in blocks])
    exact = window.exact(game, window.holds[name])
    off = np.abs(value - exact)
    k = way.whole(game, r)
    expected = window.deviation(game, name, r, k, way.replacement)
    if way.control_variate:  # not known beforehand
        expected = float(np.std(value, ddof=1))
    eq6 = _eq6(window, way, game, r)
    return Judged(
        way=way.label,
        game=game,
        predicate=name,
        selectivity=float(window.holds[name].mean()),
        r=r,
        held=r + 2 * k,
        trials=len(value),
        worth=window.worth(game),
        exact=exact,
        mae=float(np.mean(off)),
        rmse=float(np.sqrt(np.mean(off**2))),
        observed=float(np.quantile(off, CONFIDENCE)),
        bound=float(np.median(error)),
        coverage=float(np.mean(off <= error * (1 + 1e-12))),
        eq6=eq6,
        eq6_coverage=float(np.mean(off <= eq6)),
        eq6_held=_eq6(window, way, game, r + 2 * k),
        z=float(np.mean(value - exact)) / (expected / len(value) ** 0.5) if expected else 0.0,
    )


def _eq6(window: Window, way: Way, game: str, rows: int) -> float:
    """The paper's bound for so many rows."""
    return paper_bound(
        GAMES[game],
        len(window.value),
        float(window.moments.total),
        window.squares,
        largest=window.largest,
        rows=rows,
        confidence=CONFIDENCE,
        replacement=way.replacement,
    )
