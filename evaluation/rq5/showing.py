"""RQ5 in words and tables, with the paper's numbers beside."""

from __future__ import annotations

from typing import Any

from evaluation.chapter import Comparison, Section, Table, Tables
from evaluation.formatting import duration, interval, number, times
from evaluation.rq5.paper import (
    DEMOTION,
    PLACE,
    PROMOTION_A_TUPLE,
    QUESTIONS,
    REBUILD_SHARE,
    TABLE,
    TEXT,
    WINDOW,
)

__all__ = ["show"]

_ADAPTIVE = "adaptive, f = 10"
_DRAWN = (
    "the paper's is one trace over conditions it does not list, ours the mean of several drawn "
    "anew over other conditions"
)
_DEMOTION = (
    "the atoms merge in a time that depends on the atoms alone, but every retained row carries the "
    "number of its atom, which is written anew"
)


def show(tables: Tables) -> Section:
    """What the records say; whatever was left out is left out here, too."""
    traces, costs = tables["rq5_trace"], tables["rq5_costs"]
    traces.sort(key=lambda row: row["alpha"])
    costs.sort(key=lambda row: row["window"])
    short = tables["rq5_invariance"]
    return Section(
        remarks=[*_traced(traces), *_priced(costs), *_invariant(short)],
        comparisons=[*_table(traces), *_text(traces, costs, short)],
        tables=[
            *([_traces_shown(traces)] if traces else []),
            *([_costs_shown(costs)] if costs else []),
        ],
    )


def _total(row: dict[str, Any]) -> float:
    return float(row["adhoc"].mean + row["rebuild"].mean)


def _by_policy(traces: list[dict[str, Any]], alpha: int) -> dict[str, dict[str, Any]]:
    return {row["policy"]: row for row in traces if row["alpha"] == alpha}


def _traced(traces: list[dict[str, Any]]) -> list[str]:
    remarks = []
    for alpha in sorted({row["alpha"] for row in traces}):
        rows = _by_policy(traces, alpha)
        static, oracle, adaptive, ours = (
            rows[policy] for policy in ("static", "oracle", _ADAPTIVE, "ours")
        )
        remarks.append(
            f"At α = {alpha} a trace of {static['questions']:,} questions touches "
            f"{number(_total(static) / 1e6)} million tuples without promotion, "
            f"{number(_total(adaptive) / 1e6)} million by the paper's policy "
            f"({times(adaptive['gain'].mean)} fewer), {number(_total(ours) / 1e6)} million by ours "
            f"({times(ours['gain'].mean)}) and {number(_total(oracle) / 1e6)} million for an "
            f"oracle that knows the trace ({times(oracle['gain'].mean)})."
        )
        remarks.append(
            f"In time, the questions at α = {alpha} take {duration(static['seconds'].mean)} "
            f"without promotion, {duration(adaptive['seconds'].mean)} by the paper's policy and "
            f"{duration(ours['seconds'].mean)} by ours: {_in_time(static, ours)}."
        )
    if traces:
        row = traces[0]
        scanned = sum(r["scans"].mean for r in traces if r["policy"] in ("oracle", _ADAPTIVE))
        rows_each = row["window"] * scanned
        touched = sum(_total(r) for r in traces if r["policy"] in ("oracle", _ADAPTIVE))
        remarks.append(
            "A question that nobody registered does not always cost a look at the whole window "
            "here: what is registered decides some of the atoms. Counted as the paper does, "
            f"every one at {row['window']:,} tuples, the oracle and the paper's policy would have "
            f"touched {times(rows_each / touched)} as many."
        )
    return remarks


def _in_time(static: dict[str, Any], ours: dict[str, Any]) -> str:
    ratio = static["seconds"].over(ours["seconds"]).mean
    gain = f"a gain of {times(ratio)}" if ratio > 1.05 else f"no gain ({times(ratio)})"
    return (
        f"{gain}, as a question that looks at rows takes "
        f"{duration(static['scan_seconds'].median)} where nothing is registered and "
        f"{duration(ours['scan_seconds'].median)} where it is first held against what is, anew "
        "after every promotion"
    )


def _priced(costs: list[dict[str, Any]]) -> list[str]:
    if not costs:
        return []
    small, large = costs[0], costs[-1]
    return [
        f"A promotion takes {duration(large['promotion_a_tuple'].median)} a tuple at "
        f"{large['window']:,} rows, where the paper's takes about 1 µs. A demotion takes "
        f"{duration(small['demotion'].median)} at {small['window']:,} rows and "
        f"{duration(large['demotion'].median)} at {large['window']:,}"
        + (
            f": more than the paper's tens of microseconds, and not independent of N, as "
            f"{_DEMOTION}."
            if large["demotion"].median > DEMOTION
            else "."
        )
    ]


def _invariant(short: list[dict[str, Any]]) -> list[str]:
    if not short:
        return []
    one = short[0]
    constant = one["distinct_errors"] == 1
    return [
        f"A predicate promoted from a sample of {one['sample']:,} rows looked at "
        f"{one['touched']:,} of {one['window']:,}. Over {one['slides']:,} slides "
        f"({one['moved']:,} rows) the whole numbers that its sums missed were "
        + ("the same at every one, " if constant else f"{one['distinct_errors']} different ones, ")
        + ("and 0" if one["rebuilt_exact"] else "and not 0")
        + " after the exact rebuild. The bound on its answers "
        + ("held at every slide." if one["bounded"] else "did not hold at every slide.")
    ]


def _table(traces: list[dict[str, Any]]) -> list[Comparison]:
    """The paper's Table 6, number by number; ours only where the trace is as long as its."""
    found = []
    for (alpha, policy), paper in TABLE.items():
        row = _by_policy(traces, alpha).get(policy)
        if row is not None and (row["window"], row["questions"]) != (WINDOW, QUESTIONS):
            row = None
        label = f"α = {alpha}, {policy}"
        reference = policy != _ADAPTIVE  # what both are held against, no policy of either

        def ours(name: str, scale: float = 1.0, row: dict[str, Any] | None = row) -> float | None:
            return None if row is None else float(row[name].mean) * scale

        if not reference:  # of the others both are 0 by definition
            found += [
                Comparison(f"{label}: promotions", "", paper.promotions, ours("promotions"),
                           "same", PLACE, _DRAWN),
                Comparison(f"{label}: rebuild tuples touched", "million", paper.rebuild,
                           ours("rebuild", 1e-6), "lower", PLACE, _DRAWN),
            ]  # fmt: skip
        found += [
            Comparison(f"{label}: ad hoc tuples touched", "million", paper.adhoc,
                       ours("adhoc", 1e-6), "neither" if reference else "lower", PLACE, _DRAWN),
        ]  # fmt: skip
        if policy != "static":  # of which it is 1 by definition
            found += [
                Comparison(f"{label}: times fewer than static", "×", paper.gain, ours("gain"),
                           "neither" if reference else "higher", PLACE, _DRAWN),
            ]  # fmt: skip
    return found


def _text(
    traces: list[dict[str, Any]], costs: list[dict[str, Any]], short: list[dict[str, Any]]
) -> list[Comparison]:
    found = []
    full = [r for r in traces if (r["window"], r["questions"]) == (WINDOW, QUESTIONS)]
    for alpha in (1, 2):
        paper, rows = TABLE[alpha, _ADAPTIVE], _by_policy(full, alpha)
        own = _total(rows["ours"]) / 1e6 if rows else None
        share = rows[_ADAPTIVE]["rebuild"].mean / _total(rows[_ADAPTIVE]) if rows else None
        found += [
            Comparison(f"α = {alpha}: touched in all, the paper's policy there, our own here",
                       "million", paper.adhoc + paper.rebuild, own, "lower", PLACE, _DRAWN),
            Comparison(f"α = {alpha}: rebuild in the adaptive total (the paper: under 5 %)", "%",
                       100 * REBUILD_SHARE, None if share is None else 100 * share, "lower", TEXT,
                       "the fewer tuples the questions touch, the more the same rebuilds are of "
                       "them"),
        ]  # fmt: skip
    large = costs[-1] if costs else None
    found += [
        Comparison("promotion, a tuple", "µs", 1e6 * PROMOTION_A_TUPLE,
                   1e6 * large["promotion_a_tuple"].median if large else None, "lower", TEXT),
        Comparison(f"demotion at N = {WINDOW:,} (the paper: tens of µs)", "µs",
                   1e6 * DEMOTION,
                   next((1e6 * row["demotion"].median for row in costs
                         if row["window"] == WINDOW), None), "lower", TEXT, _DEMOTION),
        Comparison("different values of a provisional error under exact deltas", "", 1.0,
                   float(short[0]["distinct_errors"]) if short else None, "same", TEXT),
        Comparison("provisional error after the exact rebuild", "", 0.0,
                   float(not short[0]["rebuilt_exact"]) if short else None, "lower", TEXT),
    ]  # fmt: skip
    return found


def _traces_shown(traces: list[dict[str, Any]]) -> Table:
    rows = []
    for row in traces:
        paper = TABLE.get((row["alpha"], row["policy"]))
        printed = ["–"] * 4 if paper is None else [
            f"{paper.promotions}", f"{paper.adhoc:.2f}", f"{paper.rebuild:.2f}",
            f"{paper.gain:.2f} ×",
        ]  # fmt: skip
        rows.append([
            str(row["alpha"]), row["policy"], number(row["promotions"].mean), printed[0],
            interval(row["adhoc"].scaled(1e-6)), printed[1],
            interval(row["rebuild"].scaled(1e-6)), printed[2],
            f"{interval(row['gain'])} ×", printed[3],
            number(row["scans"].mean), duration(row["seconds"].mean),
        ])  # fmt: skip
    first = traces[0]
    return Table(
        "Tuples touched by a Zipfian trace",
        ["α", "policy", "prom.", "paper", "ad hoc (10⁶)", "paper", "rebuild (10⁶)", "paper",
         "vs. static", "paper", "questions that look at rows", "time of all questions"],
        rows,
        f"{first['workload']}, N = {first['window']:,}, {first['questions']:,} questions about 40 "
        f"conditions, at most eight promoted at a time; means over "
        f"{len(first['gain'].samples)} traces with 95 % intervals. The paper's columns are for "
        f"N = {WINDOW:,} and {QUESTIONS:,} questions. A promotion answers the question that caused "
        "it: its tuples are the rebuild's alone. Prom.: promotions; ours replaces what is asked "
        "about least, so there may be more than eight.",
    )  # fmt: skip


def _costs_shown(costs: list[dict[str, Any]]) -> Table:
    return Table(
        "One promotion and one demotion",
        ["N", "atoms", "promotion", "a tuple", "demotion"],
        [
            [f"{row['window']:,}", str(row["atoms"]), duration(row["promotion"].median),
             duration(row["promotion_a_tuple"].median), duration(row["demotion"].median)]
            for row in costs
        ],
        f"{costs[0]['workload']}, {costs[0]['predicates']} predicates registered, one more "
        f"promoted: {costs[0]['condition']}. Medians.",
    )  # fmt: skip
