"""Many samples of one window, each drawn anew: how far off they are, and whether bounds hold."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from evaluation.baselines.estimators import paper_bound
from evaluation.bench import Bench
from evaluation.rq4.window import Window, aligned
from evaluation.step import Findings, Row
from ids.games import GAMES, Drawn, Estimates, Parts, Whole, estimate
from ids.model import extremes_of
from tests.oracles.moments import repeated

ASKED = ("COUNT", "SUM", "AVG", "VAR_POP", "VAR_SAMP")
N = 100_000  # the paper's
FRACTIONS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)  # of the window's rows
BUDGETS = (100, 200, 500, 1_000, 2_000)  # rows of both samples in all, where strata are compared
CONFIDENCE = 0.95
BLOCK = 2_500_000  # rows estimated in one call, at most


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


WAYS = {
    "default": Way("extremes whole"),
    "plain": Way("without replacement", extremes=False),
    "replaced": Way("with replacement", replacement=True, extremes=False),
    "control": Way("control variate", control_variate=True, extremes=False),
    "control-default": Way("control variate, extremes whole", control_variate=True),
    "hoeffding": Way("Hoeffding", "hoeffding", extremes=False),
    "hoeffding-default": Way("Hoeffding, extremes whole", "hoeffding"),
    "hoeffding-replaced": Way("Hoeffding, with replacement", "hoeffding", True, extremes=False),
}


class Samples:
    """So many samples of a window, each with some rows of every stratum; ``whole`` in all."""

    def __init__(
        self, window: Window, strata: Sequence[np.ndarray], sizes: Sequence[int], times: int,
        rng: np.random.Generator, way: Way = WAYS["plain"], whole: Sequence[int] | np.ndarray = (),
    ) -> None:  # fmt: skip
        self.window, self.times, self.way = window, times, way
        self.rows = np.concatenate([
            some[rng.choice(len(some), few, replace=way.replacement)]
            for _ in range(times) for some, few in zip(strata, sizes, strict=True)
        ])  # fmt: skip
        low, high = ([pick(window.value[some]) for some in strata] for pick in (np.min, np.max))
        known = [np.tile(each, times) for each in (list(map(len, strata)), low, high)]
        self.parts = Parts(np.repeat(np.arange(times), len(strata)), *known)
        self.starts = np.cumsum([0, *np.tile(sizes, times)])
        self.value = window.value[self.rows]
        self.whole = np.array(whole, np.int64)

    def estimates(self, games: Sequence[str], holds: np.ndarray) -> Iterator[Estimates]:
        """Each game's attribution of one predicate, estimated from every sample."""
        moments, taken = repeated(self.window.moments, self.times), np.tile(self.whole, self.times)
        drawn = Drawn(self.starts, self.value, holds[self.rows])
        ends = np.arange(self.times + 1) * len(self.whole)
        whole = Whole(ends, self.window.value[taken], holds[taken])
        for game in games:
            yield estimate(
                GAMES[game], moments, self.parts, drawn, whole, confidence=CONFIDENCE,
                bound=self.way.bound, replacement=self.way.replacement,
                control_variate=self.way.control_variate,
            )  # fmt: skip


def errors(bench: Bench, name: str) -> Findings:
    """Every game and predicate from samples of every size, drawn in one way."""
    window = Window.of_events(bench.events(bench.real, N), bench.real)
    rng = bench.rng(f"rq4-error-{name}")
    sizes = [round(fraction * len(window.value)) for fraction in FRACTIONS]
    least, most, rows = bench.size.of(quick=(60, 400, 600_000), full=(1_000, 4_000, 10_000_000))
    times = [min(most, max(least, rows // r)) for r in sizes]  # more where a sample is cheap
    drawn = np.multiply(sizes, times)  # a step's time goes with the rows drawn
    found: list[Row] = []
    for k, r in enumerate(sizes):
        for row in trials(window, WAYS[name], r, times[k], rng):
            # the paper asks about attributes; ranges of the measure itself are ours
            kind = "range" if bench.real.value in row["predicate"] else "equality"
            found.append({"subject": bench.real.workload, "kind": kind, **row})
        bench.said(float(drawn[: k + 1].sum() / drawn.sum()))
    return {"rq4_error": found}


def trials(
    window: Window, way: Way, r: int, times: int, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Every game and predicate, put to the same ``times`` samples of r rows."""
    # a control variate has nothing to lean on for COUNT
    for games in (ASKED[1:],) if way.control_variate else (ASKED[1:], ASKED[:1]):
        whole, rest = window.divided(way.whole(games[0], r))
        block = max(1, BLOCK // (r + len(whole)))
        cells: dict[tuple[str, str], list[np.ndarray]] = {}
        for first in range(0, times, block):
            drawn = Samples(window, [rest], [r], min(block, times - first), rng, way, whole)
            for name, holds in window.holds.items():
                for game, one in zip(games, drawn.estimates(games, holds), strict=True):
                    cells.setdefault((game, name), []).append(np.stack([one.value, one.error]))
        for (game, name), blocks in cells.items():
            yield judged(window, way, game, name, r, *np.hstack(blocks))


def judged(
    window: Window, way: Way, game: str, name: str, r: int, value: np.ndarray, error: np.ndarray
) -> dict[str, Any]:
    """Estimates from many samples beside the exact value.

    held        rows at hand: r, and those taken whole
    expected    the deviation that rows at random must have; of a control variate, what they had
    observed    the 95th percentile of |error|; ``bound`` the median of the bounds beside it
    coverage    how often the exact value lay within its bound
    eq6         the paper's bound (its Eq. 6) for r rows; ``eq6_held`` for as many as are held
    z           the mean error in standard deviations of that mean: bias shows as a large one
    """
    exact, whole, y = window.exact(game, name), way.whole(game, r), window.value
    off, held = np.abs(value - exact), r + 2 * whole
    expected = window.deviation(game, name, r, whole, way.replacement)
    if way.control_variate:
        expected = float(np.std(value, ddof=1))
    eq6, eq6_held = (
        paper_bound(
            GAMES[game], len(y), float(window.moments.total), float(np.sum(y**2)),
            largest=float(np.abs(y).max()), rows=rows, confidence=CONFIDENCE,
            replacement=way.replacement,
        ) for rows in (r, held)
    )  # fmt: skip
    return {
        "n": len(y), "way": way.label, "game": game, "predicate": name,
        "selectivity": float(window.holds[name].mean()), "r": r, "held": held,
        "trials": len(off), "worth": window.worth(game), "exact": exact,
        "mae": float(np.mean(off)), "rmse": float(np.sqrt(np.mean(off**2))), "expected": expected,
        "observed": float(np.quantile(off, CONFIDENCE)), "bound": float(np.median(error)),
        "coverage": float(np.mean(off <= error * (1 + 1e-12))),
        "eq6": eq6, "eq6_coverage": float(np.mean(off <= eq6)), "eq6_held": eq6_held,
        "z": float(np.mean(value - exact)) / (expected / len(off) ** 0.5) if expected else 0.0,
    }  # fmt: skip


def strata(bench: Bench, times: int) -> Findings:
    """A sample of each stratum beside a uniform one of as many rows, for a rare predicate."""
    events, by = bench.events(bench.real, N), bench.real.attributes[0]
    name, holds = aligned(events, bench.real)
    window = Window.of_events(events, bench.real, **{name: holds})
    rng = bench.rng("rq4-strata")
    found: list[Row] = []
    for budget in BUDGETS:
        size = size_for([len(rows) for rows in window.strata], budget)
        facts: Row = {"subject": bench.real.workload, "by": by, "budget": budget}
        found += [{**facts, **one} for one in beside_uniform(window, name, size, times, rng)]
        bench.said(sum(b for b in BUDGETS if b <= budget) / sum(BUDGETS))
    return {"rq4_strata": found}


def size_for(counts: Sequence[int], rows: int) -> int:
    """The largest size of each stratum's sample with which all have ``rows`` rows, or fewer.

    >>> size_for([2, 12, 5_000, 90_000], 100)
    43
    """
    sizes = range(1, max(counts) + 1)
    return max(1, bisect_right(sizes, rows, key=lambda size: int(np.minimum(counts, size).sum())))


def beside_uniform(
    window: Window, name: str, size: int, times: int, rng: np.random.Generator
) -> Iterator[Row]:
    """``size`` rows of each of the window's strata, against a uniform sample of as many in all."""
    holds, sizes = window.holds[name], [min(len(rows), size) for rows in window.strata]
    total, everyone = sum(sizes), np.arange(len(window.value))
    drawn = {
        "stratified": Samples(window, window.strata, sizes, times, rng),
        "uniform": Samples(window, [everyone], [total], times, rng),
    }
    found = {way: one.estimates(ASKED, holds) for way, one in drawn.items()}
    # which trials have a row of the predicate in their sample at all
    hit = {way: holds[one.rows].reshape(times, total).any(axis=1) for way, one in drawn.items()}
    for game in ASKED:
        exact = window.exact(game, name)
        off = {way: np.abs(next(made).value - exact) for way, made in found.items()}
        yield {
            "n": len(holds), "predicate": name, "selectivity": float(holds.mean()), "game": game,
            "worth": window.worth(game), "exact": exact, "size": size, "rows": total,
            "strata": len(sizes), "trials": times,
            **{f"{way}_mae": float(some.mean()) for way, some in off.items()},
            **{f"{way}_empty": float(np.mean(~some)) for way, some in hit.items()},
        }  # fmt: skip
