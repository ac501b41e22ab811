"""Numbers that the rows of this chapter's tables come to; None where a run has no such rows."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from evaluation.chapter import Tables
from evaluation.repeated import Repeated

__all__ = [
    "BOUNDED",
    "CONTENDERS",
    "CONTROLLED",
    "DEFAULT",
    "PLAIN",
    "REPLACED",
    "Row",
    "Spread",
    "at",
    "cells",
    "control_gain",
    "eager_over_lazy",
    "fractions",
    "inexact",
    "ingest",
    "middle",
    "replacement_gap",
    "rms_z",
    "slope",
    "spread",
    "strata_gain",
]

Row = dict[str, Any]

DEFAULT, PLAIN, REPLACED = "extremes whole", "without replacement", "with replacement"
CONTROLLED = "control variate, extremes whole"
BOUNDED = ("AVG", "VAR_POP")  # the games that the paper speaks of
SMALL = 0.1  # r/N up to which the paper compares, and up to which r^(-1/2) is all there is
CONTENDERS = (
    "lazy sweeps", "WindowSample", "chain-sample", "engine with a sample", "engine without",
    "priority-sample", "eager domination", "engine with strata",
)  # fmt: skip


class Spread(NamedTuple):
    """Over predicates, or over whatever else."""

    least: float
    median: float
    most: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread | None:
        """None of nothing."""
        found = list(values)
        return cls(min(found), median(found), max(found)) if found else None


def cells(tables: Tables, **equal: object) -> list[Row]:
    """Rows of trials by r, of conditions on the paper's own attributes unless ``kind`` is given."""
    wanted = {"kind": "equality", **equal}
    if wanted["kind"] is None:
        del wanted["kind"]
    return sorted(tables.where("rq4_error", **wanted), key=lambda row: row["r"])


def inexact(tables: Tables, *games: str, way: str) -> list[Row]:
    """The rows of these games by r, without those whose error is nothing but rounding.

    In those every row that counts was taken whole, and no bound can be held against the error.
    """
    found = [row for game in games for row in cells(tables, way=way, game=game)]
    return [row for row in found if row["observed"] > 1e-9 * abs(row["exact"])]


def middle(rows: Iterable[Row], of: str, over: str) -> float | None:
    """The median of one column over another."""
    found = Spread.of(row[of] / row[over] for row in rows)
    return None if found is None else found.median


def rms_z(rows: Iterable[Row]) -> float | None:
    """The root mean square of the biases, each in standard deviations; about 1 by chance alone."""
    squares = [row["z"] ** 2 for row in rows]
    return (sum(squares) / len(squares)) ** 0.5 if squares else None


def fractions(tables: Tables) -> list[float]:
    """r/N, ascending."""
    return sorted({row["r"] / row["n"] for row in tables["rq4_error"]})


def spread(
    tables: Tables, way: str, game: str, fraction: float, kind: str | None = "equality"
) -> Spread | None:
    """The mean error over predicates, as a part of the aggregate."""
    found = cells(tables, way=way, game=game, kind=kind)
    return Spread.of(row["mae"] / row["worth"] for row in found if at(row, fraction))


def slope(tables: Tables, way: str, game: str, of: str = "mae") -> float | None:
    """The power of r that an error falls with: fitted, the median over predicates.

    Up to r/N = 0.1: beyond, the rows left out are so few that errors fall faster.
    """
    found = [row for row in cells(tables, way=way, game=game) if row["r"] <= SMALL * row["n"]]
    fitted = []
    for name in {row["predicate"] for row in found}:
        mine = [row for row in found if row["predicate"] == name and row[of] > 0]
        if len(mine) > 1:
            logs = np.log([[row["r"], row[of]] for row in mine])
            fitted.append(float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0]))
    return median(fitted) if fitted else None


def control_gain(
    tables: Tables, way: str, beside: str, kind: str | None = "equality"
) -> Spread | None:
    """How many times less variance a control variate leaves, over games, predicates and r."""
    without = {_key(row): row["rmse"] for row in cells(tables, way=beside, kind=kind)}
    return Spread.of(
        (without[_key(row)] / row["rmse"]) ** 2
        for row in cells(tables, way=way, kind=kind)
        if row["rmse"] > 0 and _key(row) in without
    )


def replacement_gap(tables: Tables) -> float | None:
    """By how much errors with and without replacement differ, at most over games and r/N ≤ 0.1.

    Of a game and an r it is the median over predicates: one cell alone is mostly chance.
    """
    without = {_key(row): row["mae"] for row in cells(tables, way=PLAIN, kind=None)}
    ratios: dict[tuple[str, int], list[float]] = {}
    for row in cells(tables, way=REPLACED, kind=None):
        if row["r"] <= SMALL * row["n"] and without.get(_key(row)):
            ratios.setdefault((row["game"], row["r"]), []).append(row["mae"] / without[_key(row)])
    return max((abs(median(found) - 1.0) for found in ratios.values()), default=None)


def strata_gain(tables: Tables) -> Spread | None:
    """How many times less the error of AVG is by strata, over r."""
    found = tables.where("rq4_strata", game="AVG")
    return Spread.of(r["uniform_mae"] / r["stratified_mae"] for r in found if r["stratified_mae"])


def eager_over_lazy(tables: Tables, r: int) -> float | None:
    """How many times dearer eager domination is at a sample of r rows."""
    eager, lazy = (ingest(tables, name).get(r) for name in ("eager domination", "lazy sweeps"))
    return None if eager is None or lazy is None else eager.over(lazy).median


def ingest(tables: Tables, contender: str) -> dict[int, Repeated]:
    """Nanoseconds a tuple, by r, ascending."""
    found = tables.where("rq4_ingest", contender=contender)
    return {row["r"]: row["ns"] for row in sorted(found, key=lambda row: row["r"])}


def at(row: Row, fraction: float) -> bool:
    """Whether this is r/N of the row."""
    return bool(abs(row["r"] / row["n"] - fraction) < 1e-9)


def _key(row: Row) -> tuple[str, str, int]:
    return row["game"], row["predicate"], row["r"]
