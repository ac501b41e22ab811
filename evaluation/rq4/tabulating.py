"""The chapter's tables, as they are read."""

from __future__ import annotations

from statistics import median

from evaluation.chapter import Table, Tables
from evaluation.formatting import duration, number, percent, times
from evaluation.rq4.findings import (
    CONTENDERS,
    CONTROLLED,
    DEFAULT,
    PLAIN,
    REPLACED,
    Spread,
    at,
    cells,
    fractions,
    inexact,
    ingest,
    middle,
    rms_z,
    slope,
    spread,
)
from evaluation.rq4.trials import GAMES_ASKED

__all__ = ["tabulated"]

HELD = 0.05  # r/N at which ways are compared
WAYS = (
    DEFAULT,
    PLAIN,
    REPLACED,
    CONTROLLED,
    "control variate",
)


def tabulated(tables: Tables) -> list[Table]:
    """All that this run has rows for."""
    found = []
    if tables.filled(["rq4_error"]):
        found += [_errors(tables), _ways(tables), _bounds(tables)]
    if tables.filled(["rq4_strata"]):
        found.append(_strata(tables))
    if tables.filled(["rq4_engine"]):
        found.append(_engine(tables))
    if tables.filled(["rq4_ingest"]):
        found.append(_ingest(tables))
    return found


def _errors(tables: Tables) -> Table:
    shown = fractions(tables)
    rows = [
        [
            game,
            *(_spelled(spread(tables, DEFAULT, game, fraction)) for fraction in shown),
            number(slope(tables, DEFAULT, game)),
            number(slope(tables, PLAIN, game, "rmse")),
        ]
        for game in GAMES_ASKED
    ]
    asked = {row["predicate"]: row["selectivity"] for row in cells(tables, kind=None)}
    common = sorted(asked.items(), key=lambda one: -one[1])
    return Table(
        "Mean error in % of the aggregate: the median over predicates (least – largest)",
        [
            "game",
            *(f"r/N = {percent(fraction, 1)}" for fraction in shown),
            "slope in r",
            "of RMSE, plain",
        ],
        rows,
        "Extremes taken whole, as the engine does by itself: r/8 rows of either end beside r drawn "
        "ones. Slopes are fitted up to r/N = 10 %. "
        "Asked of all games, with the share of rows: "
        + "; ".join(f"{name} ({percent(share)})" for name, share in common)
        + ". The rows above, and all that stands beside the paper's numbers, are of conditions on "
        "the paper's own attributes; ranges of the measure itself stand in the records.",
    )


def _ways(tables: Tables) -> Table:
    rows = []
    for way in WAYS:
        drawn = cells(tables, way=way, kind=None)
        if not drawn:
            continue
        rows.append(
            [
                way,
                *(_relative(tables, way, game) for game in ("SUM", "AVG", "VAR_POP")),
                number(max(abs(row["z"]) for row in drawn), 2),
                number(rms_z(drawn), 2),
            ]
        )
    return Table(
        f"Ways to draw at r/N = {percent(HELD)}: error relative to a plain sample, and bias",
        ["way", "SUM", "AVG", "VAR_POP", "largest |z|", "rms z"],
        rows,
        "Ratios of mean errors, the median over all predicates. z is the mean error in standard "
        "deviations of that mean, over every game, predicate and r: without bias its root mean "
        "square is about 1; of rare predicates it has heavy tails.",
    )


def _relative(tables: Tables, way: str, game: str) -> str:
    def errors(which: str) -> dict[str, float]:
        found = cells(tables, way=which, game=game, kind=None)
        return {row["predicate"]: row["mae"] for row in found if at(row, HELD) and row["mae"] > 0}

    plain, mine = errors(PLAIN), errors(way)
    ratios = [mine[name] / plain[name] for name in mine if name in plain]
    return times(median(ratios) if ratios else None)


def _bounds(tables: Tables) -> Table:
    rows = []
    for game in GAMES_ASKED:
        default = inexact(tables, game, way=DEFAULT)
        if not default:
            continue
        rows.append(
            [
                game,
                times(middle(default, "eq6", "bound")),
                times(middle(default, "eq6_held", "bound")),
                _slack(tables, game, PLAIN, "eq6"),
                *(_slack(tables, game, way) for way in ("Hoeffding", PLAIN, REPLACED, DEFAULT)),
                number(min(row["coverage"] for row in default)),
            ]
        )
    return Table(
        "Bounds at confidence 0.95: how wide, over the error they had to cover",
        [
            "game", "Eq. 6 ÷ ours", "for as many rows", "slack: Eq. 6", "Hoeffding–Serfling",
            "Bernstein–Serfling", "with replacement", "ours (extremes whole)", "least coverage",
        ],
        rows,
        "Slack is a bound over the observed 95th percentile of the error; medians over predicates "
        "and r. Eq. 6 is the paper's, for r rows and, in the third column, for as many as we hold. "
        "The least coverage is that of our bound, over predicates and r.",
    )  # fmt: skip


def _slack(tables: Tables, game: str, way: str, bound: str = "bound") -> str:
    return times(middle(inexact(tables, game, way=way), bound, "observed"))


def _strata(tables: Tables) -> Table:
    found = sorted(
        (row for row in tables["rq4_strata"] if row["game"] in ("AVG", "VAR_POP")),
        key=lambda row: (row["game"], row["budget"]),
    )
    rows = [
        [
            row["game"],
            number(row["budget"]),
            number(row["size"]),
            percent(row["uniform_mae"] / row["worth"]),
            percent(row["stratified_mae"] / row["worth"]),
            times(row["uniform_mae"] / row["stratified_mae"] if row["stratified_mae"] else None),
            percent(row["uniform_empty"]),
            percent(row["stratified_empty"]),
        ]
        for row in found
    ]
    one = found[0]
    return Table(
        f"{one['predicate']} ({percent(one['selectivity'])} of the rows), strata by {one['by']}",
        [
            "game", "r", "rows a stratum", "uniform, MAE", "stratified, MAE", "times better",
            "uniform, none of its rows", "stratified, none of its rows",
        ],
        rows,
        "The same r in all: as many rows of every stratum as that allows, and a uniform sample of "
        f"as many in all. MAE in % of the aggregate, over {one['trials']:,} trials.",
    )  # fmt: skip


def _engine(tables: Tables) -> Table:
    groups: dict[tuple[str, int], list[dict[str, float]]] = {}
    for row in tables["rq4_engine"]:
        groups.setdefault((row["game"], row["r"]), []).append(row)
    rows = [
        [
            game,
            number(r),
            number(median(one["rmse"] / one["expected"] for one in found if one["expected"])),
            number(max(abs(one["z"]) for one in found), 2),
            number(min(one["coverage"] for one in found)),
        ]
        for (game, r), found in sorted(groups.items())
    ]
    one = tables["rq4_engine"][0]
    return Table(
        f"The engine's own samples of a window of {one['n']:,} rows, by {one['trials']} seeds",
        ["game", "r", "RMSE ÷ expected", "largest |z|", "least coverage"],
        rows,
        "Rows came and left before the question. Expected is the standard deviation that the whole "
        "window says r rows at random must have.",
    )


def _ingest(tables: Tables) -> Table:
    by = {name: ingest(tables, name) for name in CONTENDERS}
    sizes = sorted({r for found in by.values() for r in found})
    rows = [
        [name, *(duration(found[r].mean * 1e-9 if r in found else None) for r in sizes)]
        for name, found in by.items()
        if found
    ]
    n = tables["rq4_ingest"][0]["n"]
    return Table(
        f"Ingest cost of a tuple while a sample of r rows is kept, N = {n:,}",
        ["sampler", *(f"r = {r:,}" for r in sizes)],
        rows,
        "Means of five turns, side by side. Lazy sweeps and eager domination are bare compiled "
        "loops that keep the same rows; WindowSample and the two with replacement take raw rows in "
        "batches of 1,000, extremes included; the engine takes Arrow batches of 10,000 rows, with "
        "its summaries and its retained window; with strata, r rows in all. A control variate "
        "costs nothing here: it is of the estimate alone.",
    )


def _spelled(found: Spread | None) -> str:
    if found is None:
        return "–"
    least, middle, most = (number(100 * each, 2) for each in found)
    return f"{middle} ({least} – {most})"
