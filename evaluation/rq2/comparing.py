"""The paper's numbers of RQ2 beside ours."""

from __future__ import annotations

from evaluation.chapter import Comparison, Tables
from evaluation.rq2 import paper
from evaluation.rq2.findings import cells, latencies, only, overall, span
from evaluation.rq2.latency import AFTER, AGAIN, ANEW
from evaluation.rq2.maintaining import ATOMS, EVERYTHING

__all__ = ["comparisons"]

_KEPT = {
    EVERYTHING: "atoms, marginals and window kept",
    ATOMS: "atoms alone kept (marginals follow from them)",
}

_EXACT = (
    "sums are exact integers of up to 128 bits, the paper's are doubles; the machines differ, too: "
    "the table beside Algorithm 1 compares on one machine"
)
_MORE = (
    "a row that comes is added to its atom, each of its marginals and the window, while a scan "
    "adds it to its atom and merges once for each window: the scan profits more"
)
_SMALL = (
    "the scan is compiled as tightly as the slide, so that little more than N / 2|Δ| can be gained"
)
_ROUNDED = (
    "a question decodes and rounds exact integers, and the engine keeps threads apart; the "
    "machines differ, too"
)
_COLD = (
    "probably the caches are cold: the bare closed form, which reads no state, is slower then by "
    "about as much; the paper does not say whether its window moved between questions"
)


def comparisons(tables: Tables) -> list[Comparison]:
    """Every number that the paper prints; those that were not measured are left blank."""
    return [*_throughput(tables), *_speedups(tables), *_latency(tables)]


def _throughput(tables: Tables) -> list[Comparison]:
    return [
        Comparison(
            f"IDS, median of all cells at |Δ| = {step}, {named}",
            "tuples/s",
            figure,
            overall(tables, step, kept),
            "higher",
            paper.SECTION,
            _EXACT,
        )
        for step, figure in paper.THROUGHPUT.items()
        for kept, named in _KEPT.items()
    ]


def _speedups(tables: Tables) -> list[Comparison]:
    found = []
    for kept, named in _KEPT.items():
        everywhere = span(cells(tables, kept=kept))
        largest = span(cells(tables, kept=kept, window=1_000_000, step=1))
        middle = only(
            cells(tables, kept=kept, window=100_000, step=10, predicates=4, game="VAR"), "speedup"
        )
        why = _SMALL if kept == ATOMS else _MORE
        for what, figure, ours in (
            ("least speed-up of all cells (the paper's at N = 10³, |Δ| = 100)", paper.SLOWEST,
             everywhere and everywhere[0]),
            ("largest speed-up at N = 10⁶, |Δ| = 1", paper.FASTEST, largest and largest[1]),
            ("speed-up at N = 10⁵, K = 4, |Δ| = 10", paper.MIDDLE, middle),
        ):  # fmt: skip
            found.append(
                Comparison(f"{what}, {named}", "×", figure, ours, "higher", paper.SECTION, why)
            )
    return found


def _latency(tables: Tables) -> list[Comparison]:
    """The paper's table beside answers computed anew; its last lines beside our other readings."""
    most = max(line.predicates for line in paper.LATENCIES)
    found = []
    for line in paper.LATENCIES:
        asked = f"{line.path} question, K = {line.predicates}"
        for percentile in ("p50", "p99"):
            ours = latencies(tables, line.path, ANEW, percentile).get(line.predicates)
            printed = getattr(line, percentile)
            found.append(
                Comparison(f"{asked}, {percentile}, {ANEW}", "µs", printed, ours, "lower",
                           paper.TABLE, _ROUNDED)
            )  # fmt: skip
    for line in paper.LATENCIES:
        if line.predicates != most:
            continue
        asked = f"{line.path} question, K = {most}, p50"
        after, again = (latencies(tables, line.path, r).get(most) for r in (AFTER, AGAIN))
        found += [
            Comparison(f"{asked}, {AFTER}", "µs", line.p50, after, "lower", paper.TABLE, _COLD),
            Comparison(f"{asked}, {AGAIN}", "µs", line.p50, again, "neither", paper.TABLE),
        ]
    return found
