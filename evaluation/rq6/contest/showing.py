"""The estimators' tables and sentences: what an attribution of one window costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evaluation.chapter import Comparison, Section, Table, Tables
from evaluation.formatting import duration, number, percent, power, times
from evaluation.rq6 import paper
from evaluation.rq6.candidates import SIBLINGS
from evaluation.rq6.contest.convergence import TARGET, trend
from evaluation.rq6.contest.measuring import IDS

__all__ = ["GAMES", "show"]

GAMES = {"tuples": "rows", "two": "P and the rest", "atoms": "16 atoms"}
"""Who plays, by what is estimated."""

_EXACT = 1e-6  # relative: what is left is rounding, or a constraint that shapiq weights by 10⁷
_OURS = {"permutation MC": ("tuples", "permutation MC, NumPy"), "KernelSHAP": ("two", "KernelSHAP")}
_COLD = (
    "IDS is asked right after a slide here: nothing is remembered, and probably the caches are "
    "cold; the machines differ, too"
)
_RATIO = (
    "the paper's permutations take 0.4 to 0.9 µs a row, which looks like interpreted Python; ours "
    f"run in NumPy, and our KernelSHAP sums the window once, not once a coalition. {_COLD}"
)


def show(tables: Tables) -> Section:
    """What the cost, convergence and library tables say, as far as they are filled."""
    return Section(
        list(_remarks(tables)), list(_comparisons(tables)), list(filter(None, _shown(tables)))
    )


def _row(tables: Tables, n: int, aggregate: str, estimand: str, method: str) -> dict[str, Any]:
    found = tables.where("rq6_cost", n=n, aggregate=aggregate, estimand=estimand, method=method)
    return found[0] if found else {}


def _windows(tables: Tables) -> list[int]:
    return sorted({row["n"] for row in tables["rq6_cost"]})


def _remarks(tables: Tables) -> Iterator[str]:
    if tables.filled(["rq6_cost"]):
        n = _windows(tables)[-1]
        ours = _row(tables, n, "AVG", "tuples", IDS)["seconds"].mean
        walks = [r for r in tables.where("rq6_cost", n=n, aggregate="AVG") if "MC" in r["method"]]
        best = min(walks, key=lambda row: row["seconds"].mean)
        worst = max(walks, key=lambda row: row["seconds"].mean)
        yield (
            f"At N = {n:,} IDS answers in {duration(ours)}, exactly; 200 permutations take "
            f"{duration(best['seconds'].mean)} at their fastest ({best['method'].split(', ')[1]}) "
            f"and {duration(worst['seconds'].mean)} in {worst['method'].split(', ')[1]}, "
            f"{times(best['vs_ids'].mean)} and {times(worst['vs_ids'].mean)} as long, and are off "
            f"by {percent(best['error'])}. They must hold the whole window."
        )
        yield from _metagame(tables, n)
    yield from _needed(tables)
    if tables.filled(["rq6_peers"]):
        n = max(row["n"] for row in tables["rq6_peers"])
        peers = [r for r in tables.where("rq6_peers", n=n) if r["method"].startswith("shap")]
        least = min(peers, key=lambda row: row["error"])
        yield (
            f"Given each row as a player ({n:,} of them), the libraries shap and shapiq estimate "
            f"what IDS computes, in {duration(min(r['seconds'].mean for r in peers))} to "
            f"{duration(max(r['seconds'].mean for r in peers))}; the best of them "
            f"({least['method']}) is off by {percent(least['error'])}."
        )


def _metagame(tables: Tables, n: int) -> Iterator[str]:
    sampled = _row(tables, n, "AVG", "two", "KernelSHAP")
    paired = _row(tables, n, "AVG", "two", "KernelSHAP, paired")
    values = tables.where("rq6_estimands", n=n, aggregate="AVG", predicate="planted")
    if sampled and paired and values:
        yield (
            f"On the game of two players, KernelSHAP is off by {percent(sampled['error'])} with "
            "100 coalitions drawn one by one, but such a game has only two coalitions to ask for: "
            f"with each one's complement it is exact ({power(paired['error'])}), and so are shap "
            "and shapiq. It is exact about another number: the two-player value of the planted "
            f"predicate is {number(values[0]['two'])} ms, its attribution "
            f"{number(values[0]['tuples'])} ms."
        )


def _needed(tables: Tables) -> Iterator[str]:
    for n in sorted({row["n"] for row in tables["rq6_converge"]})[-1:]:
        found = trend(tables.where("rq6_converge", n=n, aggregate="AVG"))
        yield (
            "The error of permutations falls with their number to the power "
            f"{number(found.slope, 2)} at N = {n:,}; along that line (an extrapolation where it "
            f"leaves the measured range) {percent(TARGET)} takes "
            f"{number(float(f'{found.needed:.2g}'))} permutations and "
            f"{duration(found.seconds, 2)}, compiled."
        )


def _comparisons(tables: Tables) -> Iterator[Comparison]:
    if not tables.filled(["rq6_cost"]):
        return
    for n, printed in paper.IDS_MICROSECONDS.items():
        row = _row(tables, n, "AVG", "tuples", IDS)
        yield Comparison(
            f"IDS, N = {n:,}", "µs", printed, _mean(row, "seconds", 1e6), "lower", paper.TABLE,
            _COLD,
        )  # fmt: skip
    for it in paper.BASELINES:
        row = _row(tables, it.n, "AVG", *_OURS[it.method])
        what = f"{it.method} ({it.budget}), N = {it.n:,}, ours in NumPy"
        yield Comparison(
            f"{what}: latency", "µs", it.microseconds, _mean(row, "seconds", 1e6), "neither",
            paper.TABLE,
        )  # fmt: skip
        yield Comparison(
            f"{what}: relative error", "", it.error, row.get("error"), "neither", paper.TABLE
        )
        yield Comparison(
            f"{what}: times as long as IDS",
            "×",
            it.vs_ids,
            _mean(row, "vs_ids"),
            "higher",
            paper.TABLE,
            _RATIO,
        )
    it = paper.LONG_WINDOW
    row = _row(tables, it.n, "AVG", *_OURS[it.method])
    what = f"{it.method} ({it.budget}), N = {it.n:,}, ours in NumPy"
    yield Comparison(
        f"{what}: latency",
        "µs",
        it.microseconds,
        _mean(row, "seconds", 1e6),
        "neither",
        paper.TEXT,
    )
    yield Comparison(
        f"{what}: relative error", "", it.error, row.get("error"), "neither", paper.TEXT
    )


def _mean(row: dict[str, Any], name: str, factor: float = 1.0) -> float | None:
    return factor * row[name].mean if row else None


def _shown(tables: Tables) -> Iterator[Table | None]:
    yield _cost(tables)
    yield _estimands(tables)
    yield _converging(tables)
    yield _libraries(tables)


def _cost(tables: Tables) -> Table | None:
    printed = {(it.n, *_OURS[it.method]): it for it in paper.BASELINES}
    rows = []
    for row in sorted(tables.where("rq6_cost", aggregate="AVG"), key=lambda row: int(row["n"])):
        variance = _row(tables, row["n"], "VAR_POP", row["estimand"], row["method"])
        its = printed.get((row["n"], row["estimand"], row["method"]))
        ours = row["method"] == IDS
        budget = "" if ours else f" ({row['budget']})"
        rows.append(
            [
                f"{row['n']:,}",
                row["method"] + budget,
                GAMES[row["estimand"]],
                number(1e6 * row["seconds"].mean),
                _error(row["error"]),
                _error(variance.get("error")),
                times(row["vs_ids"].mean),
                number(paper.IDS_MICROSECONDS.get(row["n"]) if ours else its and its.microseconds),
                _error(its and its.error),
                times(its and its.vs_ids),
            ]
        )
    if not rows:
        return None
    return Table(
        "What an attribution of one window costs",
        [
            "N", "method", "players", "latency (µs)", "rel. err, AVG", "rel. err, VAR_POP",
            "vs. IDS", "paper: µs", "paper: rel. err", "paper: vs. IDS",
        ],
        rows,
        "Latency is of AVG and one predicate, the mean of five repetitions taken in turns; of IDS, "
        "a repetition is the median of 201 questions, each right after a slide. Errors are against "
        "each method's own estimand, which is exact: Σ |estimate − estimand| / Σ |estimand| over "
        "four predicates, the mean over five seeds. The window is the N rows before the onset. In "
        "brackets: permutations, or coalitions whose worth may be asked. (The paper's text has at "
        "N = 2×10⁴ what its table has at N = 10⁴.)",
    )  # fmt: skip


def _error(value: float | None) -> str:
    if value is None:
        return "–"
    return f"exact ({power(value)})" if value < _EXACT else number(value)


def _estimands(tables: Tables) -> Table | None:
    labels = {candidate.name: candidate.label for candidate in SIBLINGS}
    rows = [
        [row["aggregate"], labels[row["predicate"]]]
        + [number(row[kind]) for kind in ("tuples", "two", "atoms")]
        for row in tables.where("rq6_estimands", n=(_windows(tables) or [0])[-1])
    ]
    if not rows:
        return None
    return Table(
        f"Three games, three values: N = {_windows(tables)[-1]:,}",
        ["aggregate", "predicate", "rows play (IDS)", "P and the rest play", "16 atoms play"],
        rows,
        "All exact. Grouping rows into players changes the game, so an estimator for groups "
        "converges to another number than the attribution, however long it runs.",
    )


def _converging(tables: Tables) -> Table | None:
    groups = sorted({(row["aggregate"], row["n"]) for row in tables["rq6_converge"]})
    rows = []
    for aggregate, n in groups:
        mine = tables.where("rq6_converge", aggregate=aggregate, n=n)
        found = trend(mine)
        last = max(mine, key=lambda row: int(row["permutations"]))
        rows.append(
            [
                f"{n:,}",
                aggregate,
                percent(next(r["error"] for r in mine if r["permutations"] == 200)),
                f"{percent(last['error'])} at {last['permutations']:,}",
                number(found.slope, 2),
                number(float(f"{found.needed:.2g}")),
                duration(found.seconds, 2),
            ]
        )
    if not rows:
        return None
    return Table(
        f"How many permutations an error of {percent(TARGET)} takes",
        ["N", "aggregate", "error at 200", "error at most", "slope", "needed", "time, compiled"],
        rows,
        "The last two columns follow the line through the logarithms of all errors measured.",
    )


def _libraries(tables: Tables) -> Table | None:
    rows = [
        [
            f"{row['n']:,}",
            row["method"],
            number(row["budget"]),
            duration(row["seconds"].mean),
            _error(row["error"]),
            times(row["vs_ids"].mean),
        ]
        for row in sorted(tables["rq6_peers"], key=lambda row: int(row["n"]))
    ]
    if not rows:
        return None
    return Table(
        "Each row a player: the libraries after the number that IDS computes",
        ["players", "method", "worths asked", "latency", "rel. err", "vs. IDS"],
        rows,
        "AVG; all are given 2·players + 2,048 worths, which is shap's own choice.",
    )
