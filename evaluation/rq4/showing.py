"""RQ4 in words; every number comes from the rows."""

from __future__ import annotations

from statistics import median

from evaluation.chapter import Section, Tables
from evaluation.formatting import duration, number, percent, times
from evaluation.rq4.comparing import comparisons
from evaluation.rq4.findings import (
    BOUNDED,
    CONTENDERS,
    CONTROLLED,
    DEFAULT,
    PLAIN,
    Row,
    Spread,
    at,
    cells,
    control_gain,
    eager_over_lazy,
    inexact,
    ingest,
    middle,
    rms_z,
    slope,
    spread,
    strata_gain,
)
from evaluation.rq4.paper import AVG_ERROR, BOUND, TIMES_ROWS
from evaluation.rq4.tabulating import tabulated

__all__ = ["show"]

RARE = 0.1  # the share of rows below which a predicate is called rare here
FRACTION = 0.01
UNBIASED = 1.25  # the root mean square of z below which no bias is claimed; without any it is 1


def show(tables: Tables) -> Section:
    """What was found, as far as there are rows."""
    parts = (_rate, _errors, _bounds, _control, _engine, _strata, _ingest)
    said = [remark for say in parts if (remark := say(tables))]
    return Section(said, comparisons(tables), tabulated(tables))


def _rate(tables: Tables) -> str:
    """Bias, and how errors fall."""
    z = rms_z(cells(tables, way=DEFAULT, kind=None))
    slopes = [slope(tables, PLAIN, game, "rmse") for game in ("AVG", "VAR_POP")]
    ours = [slope(tables, DEFAULT, game) for game in ("AVG", "VAR_POP")]
    if z is None or None in slopes or None in ours:
        return ""
    subject = tables["rq4_error"][0]["subject"]
    other = "" if subject == "nyc" else f"No trips were given, so these are rows of {subject}. "
    bias = "is indistinguishable from zero" if z < UNBIASED else "may show"
    faster = all(each is not None and each < -0.5 for each in ours)
    return (
        f"{other}Bias {bias} (z of the mean error has a root mean square of "
        f"{number(z, 2)} where chance alone gives 1), "
        f"and the root mean square error of a plain sample falls as r to the "
        f"{number(slopes[0], 2)} for AVG and {number(slopes[1], 2)} for VAR_POP. With extremes "
        f"taken whole, the mean error falls as r to the {number(ours[0], 2)} and "
        f"{number(ours[1], 2)}"
        + (": more rows also take more of the tail whole." if faster else ".")
    )


def _errors(tables: Tables) -> str:
    found = spread(tables, DEFAULT, "AVG", FRACTION)
    ranges = spread(tables, DEFAULT, "AVG", FRACTION, kind="range")
    rows = [row for row in cells(tables, way=DEFAULT, game="AVG") if at(row, FRACTION)]
    rare = Spread.of(row["mae"] / row["worth"] for row in rows if row["selectivity"] < RARE)
    if found is None or ranges is None or rare is None:
        return ""
    said = (
        f"A sample of {percent(FRACTION)} of {rows[0]['n']:,} rows, {rows[0]['held']:,} with the "
        f"extremes, is off in AVG by {percent(found.least, 2)} – {percent(found.most, 2)} of the "
        f"aggregate in the mean, over conditions on the paper's attributes; by "
        f"{percent(rare.most, 2)} at most for those that hold on less than {percent(RARE)} of the "
        f"rows, and by {percent(ranges.most, 2)} at most for ranges of the measure itself."
    )
    if 100 * found.most <= AVG_ERROR[FRACTION][1]:
        return said
    return (
        f"{said} The error goes with the square root of a predicate's share of the rows, and the "
        f"paper does not say which predicates it took: where ours are common, our errors are above "
        f"its largest, {number(AVG_ERROR[FRACTION][1])} %."
    )


def _bounds(tables: Tables) -> str:
    ours, plain = (inexact(tables, *BOUNDED, way=way) for way in (DEFAULT, PLAIN))
    if not ours or not plain:
        return ""
    gains = [median(row["eq6_held"] / row["bound"] for row in rows) for rows in (plain, ours)]
    said = (
        f"Over AVG and VAR_POP the paper's Eq. 6 is {_slack(plain, 'eq6')} what 95 % needed "
        f"(median), the empirical Bernstein–Serfling bound {_slack(plain, 'bound')}, and ours, "
        f"which takes r/8 rows of the largest and as many of the smallest values whole, "
        f"{_slack(ours, 'bound')}. The least coverage of ours is "
        f"{number(min(row['coverage'] for row in ours))} at a nominal 0.95, that of Eq. 6 "
        f"{number(min(row['eq6_coverage'] for row in plain))}."
    )
    if gains[0] >= BOUND["times"]:
        return said
    return (
        f"{said} On these rows Bernstein–Serfling by itself gains less over Eq. 6 "
        f"({times(gains[0])}) than the paper reports; with extremes whole, and as many rows for "
        f"both, it is {times(gains[1])}."
    )


def _control(tables: Tables) -> str:
    gain = control_gain(tables, CONTROLLED, DEFAULT)
    every = control_gain(tables, CONTROLLED, DEFAULT, kind=None)
    bare = control_gain(tables, "control variate", PLAIN, kind=None)
    if gain is None or every is None or bare is None:
        return ""
    said = (
        f"A control variate divides the variance by {number(gain.median)} in the median "
        f"({number(gain.least, 2)} to {number(gain.most, 2)} over conditions on attributes, up to "
        f"{number(every.most, 2)} over ranges of the measure)."
    )
    if gain.least >= 1:
        return said
    return (
        f"{said} Below 1 it does harm: half a small sample is too few rows to learn from, above "
        f"all where tails are heavy. Without extremes whole the median is "
        f"{number(bare.median, 2)}, and the least {number(bare.least, 2)}."
    )


def _engine(tables: Tables) -> str:
    rows = tables["rq4_engine"]
    ratios = [row["rmse"] / row["expected"] for row in rows if row["expected"]]
    if not ratios:
        return ""
    return (
        f"What the engine itself keeps while rows come and leave is as good as rows drawn by "
        f"NumPy's generator: over {rows[0]['trials']} seeds its root mean square error is "
        f"{number(median(ratios))} times what theory says of random rows (median), and its bounds "
        f"held in {percent(min(row['coverage'] for row in rows))} of the samples, at worst."
    )


def _strata(tables: Tables) -> str:
    rows = tables.where("rq4_strata", game="AVG")
    gains = strata_gain(tables)
    if gains is None:
        return ""
    few = min(rows, key=lambda row: row["budget"])
    return (
        f"For {few['predicate']} ({percent(few['selectivity'], 2)} of the rows) a sample of every "
        f"{few['by']} divides the error of AVG by {number(gains.least)} to {number(gains.most)}, "
        f"beside a uniform one of as many rows; of samples of {few['budget']} rows, "
        f"{percent(few['uniform_empty'], 2)} hold none of its rows when drawn uniformly, "
        f"{percent(few['stratified_empty'], 2)} by strata."
    )


def _ingest(tables: Tables) -> str:
    by = {name: ingest(tables, name) for name in CONTENDERS}
    dearer = eager_over_lazy(tables, TIMES_ROWS)
    if not all(by.values()) or dearer is None:
        return ""
    spent = {name: [one.mean * 1e-9 for one in found.values()] for name, found in by.items()}
    chain, priority = spent["chain-sample"], spent["priority-sample"]
    return (
        f"Amortised sweeps cost {duration(min(spent['lazy sweeps']))} to "
        f"{duration(max(spent['lazy sweeps']))} a tuple in a bare loop, whatever r is, and "
        f"{duration(max(spent['WindowSample']))} at most as the engine keeps a sample, raw columns "
        f"and extremes included. Eager domination, compiled and vectorised as well and keeping the "
        f"very same rows, is {times(dearer)} as dear at r = {TIMES_ROWS:,}. Of the "
        f"two with replacement, chain-sample skips ahead and goes from {duration(chain[0])} to "
        f"{duration(chain[-1])} over r; priority-sample, for time windows, goes from "
        f"{duration(priority[0])} to {duration(priority[-1])}: it looks at each of r samples for "
        f"every tuple, so large samples of time windows are better drawn without replacement."
    )


def _slack(rows: list[Row], bound: str) -> str:
    return times(middle(rows, bound, "observed"))
