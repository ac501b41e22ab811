"""Do bounds hold, how tight are they, and how fast does the error fall with the sample?

Real taxi fares, N = 200,000; every figure is over many samples of the same window, each drawn anew.
Compared with the paper's Eq. 5, which bounds counts, sums and squares apart, by range alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.fares import Window, repeated
from benchmarks.record import describe, write
from benchmarks.strata import against_uniform
from ids.estimates import Drawn, Estimates, Parts, Whole, estimate, paper_bound
from ids.games import GAMES
from ids.model.sampling import extremes_of

__all__ = ["main"]

ROWS = 200_000
TRIALS = 2_000
BLOCK = 250  # trials estimated in one call
SIZES = (500, 1_000, 2_000, 5_000, 10_000)
CONTROLLED = 2_000
CONFIDENCE = 0.95
NAMES = ("COUNT", "SUM", "AVG", "VAR_POP", "VAR_SAMP")

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
Members = tuple[Booleans, Booleans]


class Way(NamedTuple):
    """A way to draw, and to bound: the first is what the engine does unless told otherwise."""

    label: str
    bound: str = "bernstein"
    replacement: bool = False
    control_variate: bool = False
    extremes: bool = True


WAYS = (
    Way("bernstein-serfling, extremes whole"),
    Way("hoeffding-serfling, extremes whole", "hoeffding"),
    Way("bernstein-serfling, no extremes", extremes=False),
    Way("bernstein, with replacement", replacement=True, extremes=False),
    Way("hoeffding, with replacement", "hoeffding", True, extremes=False),
    Way("bernstein-serfling, control variate", control_variate=True),
)
DEFAULT, PLAIN, CONTROL = WAYS[0], WAYS[3], WAYS[5]


def main() -> None:
    """Measure, keep, show."""
    started = perf_counter()
    window = Window.of_taxi(ROWS)
    rng = np.random.default_rng(20)
    found = [one for way in WAYS for one in _runs(window, way, rng)]
    record: dict[str, Any] = {
        "name": "bounds",
        "rows": ROWS,
        "trials": TRIALS,
        "confidence": CONFIDENCE,
        "predicates": {name: float(holds.mean()) for name, holds in window.holds.items()},
        "coverage": {way.label: _coverage(found, way) for way in WAYS},
        "bias": {way.label: _bias(found, way) for way in WAYS},
        "against_paper": _ratios(found),
        "error_falls_as_r_to_the": {
            way.label: {of: _slope(found, way, of) for of in ("mae", "rmse")}
            for way in (DEFAULT, PLAIN)
        },
        "control_variate": _control(found),
        "strata": against_uniform(window, NAMES, rng),
    }
    record |= {"seconds": perf_counter() - started, **describe()}
    write(record)
    _show(record)


def _runs(window: Window, way: Way, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Every game and predicate at every size, each over all trials."""
    for r in (CONTROLLED,) if way.control_variate else SIZES:
        for games in (("COUNT",), NAMES[1:]):
            if way.control_variate and games == ("COUNT",):
                continue
            cells: dict[tuple[str, str], list[Estimates]] = {}
            for draws in _draws(window, way, r, _whole(way, games[0], r), rng):
                for name, holds in window.holds.items():
                    member = holds[draws.rows], np.tile(holds[draws.whole], BLOCK)
                    for game in games:
                        found = _estimate(window, way, game, member, draws)
                        cells.setdefault((game, name), []).append(found)
            for (game, name), blocks in cells.items():
                yield _judged(window, way, game, name, r, blocks)


class Draws(NamedTuple):
    """A block of trials: rows taken whole (in each trial) and rows drawn, with their values."""

    whole: Integers
    rows: Integers
    value: Floats
    population: int
    low: float
    high: float


def _draws(window: Window, way: Way, r: int, k: int, rng: np.random.Generator) -> Iterator[Draws]:
    whole, rest = window.divided(k)
    low, high = window.value[rest[[0, -1]]]
    for _ in range(TRIALS // BLOCK):
        drawn = [rng.choice(len(rest), r, replace=way.replacement) for _ in range(BLOCK)]
        rows = rest[np.concatenate(drawn)]
        yield Draws(whole, rows, window.value[rows], len(rest), low, high)


def _estimate(window: Window, way: Way, game: str, member: Members, draws: Draws) -> Estimates:
    starts = np.arange(BLOCK + 1)
    parts = Parts(
        np.arange(BLOCK),
        np.full(BLOCK, draws.population),
        np.full(BLOCK, draws.low),
        np.full(BLOCK, draws.high),
    )
    return estimate(
        GAMES[game],
        repeated(window.moments, BLOCK),
        parts,
        Drawn(starts * (len(draws.rows) // BLOCK), draws.value, member[0]),
        Whole(starts * len(draws.whole), np.tile(window.value[draws.whole], BLOCK), member[1]),
        confidence=CONFIDENCE,
        bound=way.bound,
        replacement=way.replacement,
        control_variate=way.control_variate,
    )


def _judged(
    window: Window, way: Way, game: str, name: str, r: int, blocks: list[Estimates]
) -> dict[str, Any]:
    value = np.concatenate([block.value for block in blocks])
    error = np.concatenate([block.error for block in blocks])
    exact = window.exact(game, window.holds[name])
    off = np.abs(value - exact)
    k = _whole(way, game, r)
    expected = window.deviation(game, name, r, k, way.replacement)
    if way.control_variate:  # not known beforehand
        expected = float(np.std(value, ddof=1))
    typical = float(np.median(error))
    return {
        "way": way,
        "game": game,
        "predicate": name,
        "r": r,
        "coverage": float(np.mean(off <= error * (1 + 1e-12))),
        "z": float(np.mean(value - exact)) / (expected / TRIALS**0.5) if expected else 0.0,
        "mae": float(np.mean(off)),
        "rmse": float(np.sqrt(np.mean(off**2))),
        "ratio": _paper(window, game, r) / typical,
        "ratio_same_rows": _paper(window, game, r + 2 * k) / typical,
        "slack": typical / max(float(np.quantile(off, CONFIDENCE)), 1e-300),
    }


def _whole(way: Way, game: str, r: int) -> int:
    return extremes_of(r) if way.extremes and game != "COUNT" else 0


def _coverage(found: list[dict[str, Any]], way: Way) -> dict[str, float]:
    """The least coverage over predicates and sizes, for each game."""
    return {
        game: min(c["coverage"] for c in found if c["way"] == way and c["game"] == game)
        for game in NAMES
        if any(c["way"] == way and c["game"] == game for c in found)
    }


def _bias(found: list[dict[str, Any]], way: Way) -> dict[str, float]:
    z = np.array([c["z"] for c in found if c["way"] == way])
    return {"largest_z": float(np.abs(z).max()), "rms_z": float(np.sqrt(np.mean(z**2)))}


def _ratios(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Eq. 5 relative to the default bound, and that one relative to the error really made."""

    def middle(field: str, **only: Any) -> float:
        return median(
            float(c[field]) for c in found if c["way"] == DEFAULT and only.items() <= c.items()
        )

    return {
        "median": middle("ratio"),
        "median_same_rows": middle("ratio_same_rows"),
        "slack": middle("slack"),
        "by_game": {
            game: {
                f"r = {r}": {
                    field: middle(field, game=game, r=r)
                    for field in ("ratio", "ratio_same_rows", "slack")
                }
                for r in SIZES
            }
            for game in NAMES
        },
    }


def _slope(found: list[dict[str, Any]], way: Way, of: str) -> dict[str, float]:
    """The fitted slope of the logarithm of an error over log r: the median over predicates."""
    slopes: dict[str, float] = {}
    for game in NAMES:
        fitted = []
        for name in {c["predicate"] for c in found}:
            mae = [
                c[of] for r in SIZES for c in found
                if (c["way"], c["game"], c["predicate"], c["r"]) == (way, game, name, r)
            ]  # fmt: skip
            if min(mae) > 0:
                fitted.append(float(np.polyfit(np.log(SIZES), np.log(mae), 1)[0]))
        slopes[game] = median(fitted)
    return slopes


def _control(found: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Variance with a control variate relative to without, for each game and predicate."""
    at = {(c["way"], c["game"], c["predicate"]): c for c in found if c["r"] == CONTROLLED}
    return {
        game: {
            name: at[CONTROL, game, name]["rmse"] ** 2 / at[DEFAULT, game, name]["rmse"] ** 2
            for way, each, name in at
            if way == CONTROL and each == game and at[DEFAULT, game, name]["rmse"] > 0
        }
        for game in NAMES[1:]
    }


def _paper(window: Window, game: str, rows: int) -> float:
    """The paper's bound for so many rows drawn without replacement."""
    return paper_bound(
        GAMES[game],
        len(window.value),
        float(window.moments.total),
        window.squares,
        largest=float(np.abs(window.value).max()),
        rows=rows,
        confidence=CONFIDENCE,
    )


def _show(record: dict[str, Any]) -> None:
    print(f"least coverage at {CONFIDENCE:.0%}, over {TRIALS:,} trials:")
    for label, games in record["coverage"].items():
        bias = record["bias"][label]
        print(f"  {label:38} " + "  ".join(f"{g} {c:.4f}" for g, c in games.items())
              + f"  bias: |z| <= {bias['largest_z']:.1f}, rms {bias['rms_z']:.2f}")  # fmt: skip
    against = record["against_paper"]
    print(f"Eq. 5 is wider by a median {against['median']:.1f} × "
          f"({against['median_same_rows']:.1f} × given as many rows as we hold)")  # fmt: skip
    for game, sizes in against["by_game"].items():
        print(f"  {game:8} " + "  ".join(
            f"{r}: {one['ratio']:.1f} ×, slack {one['slack']:.1f}" for r, one in sizes.items()
        ))  # fmt: skip
    for label, both in record["error_falls_as_r_to_the"].items():
        for of, slopes in both.items():
            shown = "  ".join(f"{game} {slope:.2f}" for game, slope in slopes.items())
            print(f"{of}, slope in r, {label}: {shown}")
    for game, ratios in record["control_variate"].items():
        print(f"variance with a control variate, {game}: {min(ratios.values()):.2f} to "
              f"{max(ratios.values()):.2f}, median {median(ratios.values()):.2f}")  # fmt: skip
    for one in record["strata"]:
        times = one["times_better"]
        print(f"{one['game']:8} {one['rows_a_stratum']} rows a stratum: "
              + ("exact" if times is None else f"{times:.1f} ×")
              + f" better than {one['rows']} uniform rows")  # fmt: skip
    print(f"{record['seconds']:.0f} s")
