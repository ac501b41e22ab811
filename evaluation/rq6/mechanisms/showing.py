"""The ad hoc mechanisms in words and in the paper's own table."""

from __future__ import annotations

from typing import Any

from evaluation.chapter import Comparison, Section, Table, Tables
from evaluation.formatting import duration, number, percent, times
from evaluation.rq6.mechanisms.contenders import EXACT, MECHANISMS
from evaluation.rq6.mechanisms.paper import (
    GAIN_BY_STRATA,
    PLACE,
    SELECTIVITIES,
    TABLE,
    TEXT,
    WINDOW,
)

__all__ = ["show"]

_MIB = 1 << 20
_QUERY = {
    "index assisted": "the newest rows, fewer than 1,024, are in no sorted block yet and are "
    "always looked at, and planning the question takes its time; another machine, too",
}
_KEPT = {
    "brute force scan": "the paper counts no cost, as rows are retained for expiry anyway; ours "
    "is what raw columns cost beyond the digits that expiry needs",
    "index assisted": "three columns are indexed, each sorted block by block; another machine, too",
    "uniform sample": "the rows with the largest and smallest values are followed as well, which "
    "tightens the bound; another machine, too",
    "stratified sample": "every stratum follows its own extremes as well; another machine, too",
}
_MEMORY = {
    "brute force scan": "beside the raw columns the digits of every value are kept, by which sums "
    "stay exact, and the atom of each row; room to spare for rows to come is counted, too",
    "index assisted": "three columns are indexed",
    "uniform sample": "r is not stated in the paper; ours keeps 2,000 rows, their candidates and "
    "the extremes with all their columns, room to spare included",
    "stratified sample": "every stratum keeps its own candidates and extremes, with all columns",
}
_ERROR = {
    "uniform sample": "the paper says neither its r nor over how many samples its error is taken",
    "stratified sample": "the paper says neither its r nor over how many samples its error is "
    "taken; with as many rows of every stratum, the commonest has fewer than in a uniform sample",
}


def show(tables: Tables) -> Section:
    """What the records say; a table that was left out is left out here, too."""
    names = ("rq6_mechanisms_questions", "rq6_mechanisms_maintenance", "rq6_mechanisms_errors")
    if not tables.filled(names):
        return Section(comparisons=_comparisons({}))
    rows = _joined(tables, *names)
    return Section(_remarks(rows), _comparisons(rows), [_table(rows)])


Rows = dict[tuple[str, str], dict[str, Any]]


def _joined(tables: Tables, questions: str, maintenance: str, errors: str) -> Rows:
    """One row for each case and mechanism, in the paper's order."""
    kept = {row["mechanism"]: row for row in tables[maintenance]}
    off = {(row["case"], row["mechanism"]): row for row in tables[errors]}
    found = {(row["case"], row["mechanism"]): row for row in tables[questions]}
    return {
        (case, name): {**kept[name], **found[case, name], **off.get((case, name), {})}
        for case in SELECTIVITIES
        for name in MECHANISMS
    }


def _remarks(rows: Rows) -> list[str]:
    def took(name: str, case: str) -> float:
        return float(rows[case, name]["query"].median)

    rare, most = rows["rare", "index assisted"], rows["most", "index assisted"]
    scans = [took("brute force scan", case) for case in SELECTIVITIES]
    samples = [
        took(name, case) for name in ("uniform sample", "stratified sample")
        for case in SELECTIVITIES
    ]  # fmt: skip
    uniform, strata = rows["rare", "uniform sample"], rows["rare", "stratified sample"]
    gain = _gain(rows)
    return [
        f"Asked right after a slide at N = {rare['window']:,}, a scan takes "
        f"{duration(scans[0])} at the rarest condition and {duration(scans[-1])} at the commonest: "
        "compiled loops over columns. The paper's takes 0.4 µs a row, and so seems to go from row "
        "to row in Python.",
        f"The index takes {duration(rare['query'].median)} where {rare['matches']:,} rows match "
        f"and {duration(most['query'].median)} where {percent(most['selectivity'])} do; there the "
        + ("planner scanned instead." if most["by"] == "scan" else "planner still took it."),
        f"Samples of {rare['sample']:,} rows take {duration(min(samples))} to "
        f"{duration(max(samples))}"
        + (": longer than the exact scan of all rows, which sampling therefore does not save here; "
           "it saves retaining raw columns." if min(samples) > max(scans) else "."),
        f"At the rarest condition the uniform sample has no matching row in "
        f"{percent(uniform['empty'])} of {uniform['trials']} samples (rows with the largest and "
        f"smallest values are always taken whole, and some may be among them), and is off by "
        f"{number(uniform['error'].mean)} of the attribution on average; strata by "
        f"{strata['stratum']} with as many rows are "
        + ("exact, as a stratum with no more rows than are drawn is taken whole: no factor can be "
           f"put beside the paper's {times(GAIN_BY_STRATA)}."
           if gain is None else f"off by {number(strata['error'].mean)}; the uniform sample's "
           f"error is {times(gain)} that."),
        f"Registered, the same condition takes {duration(took('registered', 'rare'))}; as a "
        f"combination of registered parts {duration(took('compositional', 'rare'))}.",
    ]  # fmt: skip


def _named(mechanism: str) -> str:
    return mechanism + (" (the paper's r is not stated)" if "sample" in mechanism else "")


def _unlike(mechanism: str, row: dict[str, Any]) -> str:
    """Our selectivity, and who answered where it was not the index that was asked."""
    other = mechanism == "index assisted" and row["by"] != "index"
    answered = f", by {row['by']}" if other else ""
    return f" (ours {number(row['selectivity'], 2)}{answered})"


def _off(row: dict[str, Any]) -> float:
    """The relative error of a sample; 0 where every row that counts was taken whole."""
    error = float(row["error"].mean)
    return error if error > 1e-9 else 0.0  # what is left is rounding


def _gain(rows: Rows) -> float | None:
    """A uniform sample's error over a stratified one's; None where the latter is exact."""
    uniform, strata = (_off(rows["rare", name]) for name in ("uniform sample", "stratified sample"))
    return uniform / strata if strata else None


def _comparisons(rows: Rows) -> list[Comparison]:
    """Number by number; ours only where the window is the paper's and the rows are trips."""
    first = next(iter(rows.values()), {})
    if (first.get("workload"), first.get("window")) != ("nyc", WINDOW):
        rows = {}
    found = []
    for (case, name), paper in TABLE.items():
        row = rows.get((case, name))
        label = f"{_named(name)}, selectivity {SELECTIVITIES[case]:.5f}"
        label += _unlike(name, row) if row else ""
        found.append(
            Comparison(f"{label}: query", "µs", paper.query,
                       1e6 * row["query"].median if row else None, "lower", PLACE,
                       _QUERY.get(name, "another machine"))
        )  # fmt: skip
        if paper.error:
            found.append(
                Comparison(f"{label}: relative error", "", paper.error,
                           _off(row) if row else None, "lower", PLACE, _ERROR[name])
            )  # fmt: skip
    for name in dict.fromkeys(name for _, name in TABLE):
        paper, row = TABLE["rare", name], rows.get(("rare", name))
        found += [
            Comparison(f"{_named(name)}: maintenance, a tuple", "µs", paper.maintenance,
                       1e6 * row["extra"].median if row else None, "lower", PLACE, _KEPT[name]),
            Comparison(f"{_named(name)}: memory", "MiB", paper.memory,
                       row["bytes"] / _MIB if row else None, "lower", PLACE, _MEMORY[name]),
        ]  # fmt: skip
    found.append(
        Comparison("at the rarest, error of the uniform over the stratified sample", "×",
                   GAIN_BY_STRATA, _gain(rows) if rows else None, "higher", TEXT,
                   _ERROR["uniform sample"])
    )  # fmt: skip
    return found


def _table(rows: Rows) -> Table:
    shown = []
    for (case, name), row in rows.items():
        paper = TABLE.get((case, name))
        error = "0 (exact)" if name in EXACT or not _off(row) else number(_off(row))
        printed = ["–"] * 4 if paper is None else [
            f"{paper.query:,.1f}", f"{paper.maintenance:.3f}", f"{paper.memory:.2f}",
            number(paper.error) if paper.error else "0 (exact)",
        ]  # fmt: skip
        shown.append([
            number(row["selectivity"], 2), name, row["by"],
            f"{1e6 * row['query'].median:,.1f}", printed[0],
            f"{1e6 * row['extra'].median:.3f}", printed[1],
            number(row["bytes"] / _MIB), printed[2], error, printed[3],
        ])  # fmt: skip
    first = rows["rare", "uniform sample"]
    asked = "; ".join(
        f"{number(row['selectivity'], 2)}: {row['condition']}"
        for (_, name), row in rows.items() if name == "registered"
    )  # fmt: skip
    return Table(
        "Ad hoc mechanisms",
        ["sel.", "mechanism", "answered by", "query (µs)", "paper", "maint. (µs/t)", "paper",
         "mem (MiB)", "paper", "rel. err", "paper"],
        shown,
        f"{first['workload']}, N = {first['window']:,}, AVG; {asked}. The paper's columns are for "
        f"nyc at N = {WINDOW:,} and selectivities "
        f"{', '.join(f'{share:.5f}' for share in SELECTIVITIES.values())}. "
        f"Samples of r = {first['sample']:,} rows (the paper leaves r open), in "
        f"{first['strata']} strata by {first['stratum']} {first['sample'] // first['strata']:,} "
        f"each; errors are means over {first['trials']} samples. Query: median right after a "
        f"slide of one row. Maintenance: what the mechanism adds in slides of "
        f"{first['slide']:,} rows; the scan's is what retaining raw columns adds. Memory: the "
        "mechanism's own, expiry's not counted.",
    )  # fmt: skip
