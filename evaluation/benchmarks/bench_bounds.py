"""Do bounds hold, how tight are they, and how fast does the error fall with the sample?

Real taxi fares, N = 200,000; every figure is over many samples of the same window, each drawn anew.
Compared with the paper's Eq. 6, which bounds counts, sums and squares apart, by range alone.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from evaluation.benchmarks.fares import fares
from evaluation.benchmarks.record import describe, write
from evaluation.benchmarks.strata import against_uniform
from evaluation.rq4.trials import CONFIDENCE, GAMES_ASKED, Judged, Way, trials

__all__ = ["main"]

ROWS = 200_000
TRIALS = 2_000
SIZES = (500, 1_000, 2_000, 5_000, 10_000)
CONTROLLED = 2_000

WAYS = (
    Way("bernstein-serfling, extremes whole"),
    Way("hoeffding-serfling, extremes whole", "hoeffding"),
    Way("bernstein-serfling, no extremes", extremes=False),
    Way("bernstein, with replacement", replacement=True, extremes=False),
    Way("hoeffding, with replacement", "hoeffding", True, extremes=False),
    Way("bernstein-serfling, control variate", control_variate=True),
)
DEFAULT, PLAIN, CONTROL = WAYS[0].label, WAYS[3].label, WAYS[5].label


def main() -> None:
    """Measure, keep, show."""
    started = perf_counter()
    window = fares(ROWS)
    rng = np.random.default_rng(20)
    found = [
        one
        for way in WAYS
        for r in ((CONTROLLED,) if way.control_variate else SIZES)
        for one in trials(window, way, r, TRIALS, rng)
    ]
    record: dict[str, Any] = {
        "name": "bounds",
        "rows": ROWS,
        "trials": TRIALS,
        "confidence": CONFIDENCE,
        "predicates": {name: float(holds.mean()) for name, holds in window.holds.items()},
        "coverage": {way.label: _coverage(found, way.label) for way in WAYS},
        "bias": {way.label: _bias(found, way.label) for way in WAYS},
        "against_paper": _ratios(found),
        "error_falls_as_r_to_the": {
            way: {of: _slope(found, way, of) for of in ("mae", "rmse")} for way in (DEFAULT, PLAIN)
        },
        "control_variate": _control(found),
        "strata": against_uniform(window, GAMES_ASKED, rng),
    }
    record |= {"seconds": perf_counter() - started, **describe()}
    write(record)
    _show(record)


def _coverage(found: list[Judged], way: str) -> dict[str, float]:
    """The least coverage over predicates and sizes, for each game."""
    return {
        game: min(c.coverage for c in found if (c.way, c.game) == (way, game))
        for game in GAMES_ASKED
        if any((c.way, c.game) == (way, game) for c in found)
    }


def _bias(found: list[Judged], way: str) -> dict[str, float]:
    z = np.array([c.z for c in found if c.way == way])
    return {"largest_z": float(np.abs(z).max()), "rms_z": float(np.sqrt(np.mean(z**2)))}


def _ratios(found: list[Judged]) -> dict[str, Any]:
    """Eq. 6 relative to the default bound, and that one relative to the error really made."""
    default = [c for c in found if c.way == DEFAULT]
    ratio, same_rows, slack = _middles(default)
    by_game = {
        game: {
            f"r = {r}": dict(
                zip(
                    ("ratio", "ratio_same_rows", "slack"),
                    _middles([c for c in default if (c.game, c.r) == (game, r)]),
                    strict=True,
                )
            )
            for r in SIZES
        }
        for game in GAMES_ASKED
    }
    return {"median": ratio, "median_same_rows": same_rows, "slack": slack, "by_game": by_game}


def _middles(found: list[Judged]) -> tuple[float, float, float]:
    return (
        median(c.eq6 / c.bound for c in found),
        median(c.eq6_held / c.bound for c in found),
        median(c.slack for c in found if c.slack is not None),
    )


def _slope(found: list[Judged], way: str, of: str) -> dict[str, float]:
    """The fitted slope of the logarithm of an error over log r: the median over predicates."""
    slopes: dict[str, float] = {}
    for game in GAMES_ASKED:
        fitted = []
        for name in {c.predicate for c in found}:
            errors = [
                getattr(c, of) for r in SIZES for c in found
                if (c.way, c.game, c.predicate, c.r) == (way, game, name, r)
            ]  # fmt: skip
            if min(errors) > 0:
                fitted.append(float(np.polyfit(np.log(SIZES), np.log(errors), 1)[0]))
        slopes[game] = median(fitted)
    return slopes


def _control(found: list[Judged]) -> dict[str, dict[str, float]]:
    """Variance with a control variate relative to without, for each game and predicate."""
    at = {(c.way, c.game, c.predicate): c for c in found if c.r == CONTROLLED}
    return {
        game: {
            name: at[CONTROL, game, name].rmse ** 2 / at[DEFAULT, game, name].rmse ** 2
            for way, each, name in at
            if way == CONTROL and each == game and at[DEFAULT, game, name].rmse > 0
        }
        for game in GAMES_ASKED[1:]
    }


def _show(record: dict[str, Any]) -> None:
    print(f"least coverage at {CONFIDENCE:.0%}, over {TRIALS:,} trials:")
    for label, games in record["coverage"].items():
        bias = record["bias"][label]
        print(f"  {label:38} " + "  ".join(f"{g} {c:.4f}" for g, c in games.items())
              + f"  bias: |z| <= {bias['largest_z']:.1f}, rms {bias['rms_z']:.2f}")  # fmt: skip
    against = record["against_paper"]
    print(f"Eq. 6 is wider by a median {against['median']:.1f} × "
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
