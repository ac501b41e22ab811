"""The paper's numbers of RQ2 beside ours."""

from __future__ import annotations

from ids.reproduce.chapter import Comparison, Tables
from ids.reproduce.rq2 import paper
from ids.reproduce.rq2.findings import cells, latencies, only, overall, span
from ids.reproduce.rq2.latency import AFTER, AGAIN
from ids.reproduce.rq2.maintaining import ATOMS, EVERYTHING

__all__ = ["comparisons"]

_KEPT = {ATOMS: "atoms", EVERYTHING: "atoms, marginals and window"}

_EXACT = (
    "sums are exact integers of up to 128 bits, the paper's are doubles; the machines differ too, "
    "so that the ratio to Algorithm 1 in the same run is what compares"
)
_MORE = (
    "a row that comes is added to its atom, each of its marginals and the window, while a scan "
    "adds it to its atom and merges once for each window: the scan profits more"
)
_SMALL = (
    "the scan is compiled as tightly as the slide, so that little more than N / 2|Δ| can be gained"
)
_COLD = (
    "nothing is remembered from before the slide: the exact sums are merged and rounded afresh, "
    "and the caches hold the slide's data; in an unchanged window the answer is a look-up"
)


def comparisons(tables: Tables) -> list[Comparison]:
    """Every number that the paper prints; those that were not measured are left blank."""
    return [*_throughput(tables), *_speedups(tables), *_latency(tables)]


def _throughput(tables: Tables) -> list[Comparison]:
    return [
        Comparison(
            f"IDS, median of all cells at |Δ| = {step}, {named} kept",
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
            ("least speed-up of all cells", paper.SLOWEST, everywhere and everywhere[0]),
            ("largest speed-up at N = 10⁶, |Δ| = 1", paper.FASTEST, largest and largest[1]),
            ("speed-up at N = 10⁵, K = 4, |Δ| = 10", paper.MIDDLE, middle),
        ):
            found.append(
                Comparison(f"{what}, {named} kept", "×", figure, ours, "higher", paper.SECTION, why)
            )
    return found


def _latency(tables: Tables) -> list[Comparison]:
    found = []
    for reading, percentiles in ((AFTER, ("p50", "p99")), (AGAIN, ("p50",))):
        for line in paper.LATENCIES:
            for percentile in percentiles:
                ours = latencies(tables, line.path, reading, percentile).get(line.predicates)
                found.append(
                    Comparison(
                        f"{line.path} question, K = {line.predicates}, {percentile}, {reading}",
                        "µs",
                        getattr(line, percentile),
                        ours,
                        "lower",
                        paper.TABLE,
                        _COLD if reading == AFTER else "",
                    )
                )
    return found
