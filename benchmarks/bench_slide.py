"""What does a slide of one row cost, next to the paper's Algorithm 1 taken literally?

Two ways to count. *The slide loop*: atoms and digits given, as in the engine, which finds both once
per arriving row. *From codes and values*: signature and digits included, as Algorithm 1 forms its
signature inside the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from benchmarks.baselines import algorithm1
from benchmarks.data import REGIONS, codes, server_events
from benchmarks.record import markdown, measure, write
from ids.kernels.digits import cut
from ids.kernels.scatter import apply_signed, slide
from ids.model.expression import Column, Comparison, Expression, Literal
from ids.model.table import ColumnData, Kind, Table
from ids.predicates.refinement import Refinement
from ids.state.scaling import cut_column, fit_column

__all__ = ["main"]

ROWS = 4_000_000
WINDOW = 100_000
LITERAL = "Algorithm 1, literally"


def main() -> None:
    """Measure, keep, show."""
    stream = _Stream(ROWS)
    literal = partial(
        algorithm1.slide,
        stream.region,
        stream.tier,
        stream.latency,
        WINDOW,
        np.array([[0, 0], [0, 2], [1, 2], [1, 1]], dtype=np.int32),
        60.0,
    )
    four = [_equals("region", "EU-West"), _equals("region", "US-East")]
    four += [_equals("tier", "premium"), _equals("tier", "standard")]
    work: dict[str, Callable[[], object]] = {
        "IDS, the slide loop": stream.slide(four, WINDOW),
        LITERAL: literal,
        "IDS, from codes and values": stream.whole(four, WINDOW),
    }
    _keep("slide", work, window=WINDOW, predicates=4)
    sizes = {f"N = {n:,}": stream.slide(four, n) for n in (1_000, 10_000, 100_000, 1_000_000)}
    _keep("slide_by_window", sizes, predicates=4)
    many = [_equals("shard", f"s{k}") for k in range(64)]
    both = {"K = 4": stream.slide(four, WINDOW), "K = 64": stream.slide(many, WINDOW)}
    _keep("slide_by_predicates", both, window=WINDOW)
    _recount(stream, four)


def _recount(stream: _Stream, predicates: list[Expression]) -> None:
    """Against a scan of the whole window at every slide: the paper's headline, N = 10**6."""
    window = 1_000_000
    atoms, digits, scale, count = stream.ready(predicates)
    inside = slice(0, window)
    everyone = np.zeros(0, np.bool_)
    centre = np.zeros(scale.digits, np.int64)

    def scan() -> None:
        summaries = np.zeros((count, scale.words), np.int64)
        apply_signed(summaries, atoms[inside], digits[inside], everyone, centre, scale.layout, 1)

    record = measure(
        "slide_against_recount",
        {"one slide, recounted": scan, "all slides, incremental": stream.slide(predicates, window)},
        rows=1,
        window=window,
        predicates=len(predicates),
    )
    recounted = record["contenders"]["one slide, recounted"]["best_s"]
    maintained = record["contenders"]["all slides, incremental"]["best_s"] / ROWS
    record["times_faster"] = recounted / maintained
    write(record)
    print(f"\nN = 10⁶: a slide costs {maintained * 1e9:.1f} ns maintained, "
          f"{recounted * 1e3:.2f} ms recounted: {record['times_faster']:,.0f} ×")  # fmt: skip


def _keep(name: str, work: dict[str, Callable[[], object]], **facts: object) -> None:
    record = measure(name, work, rows=ROWS) | facts
    write(record)
    print(f"\n{name}\n\n{markdown(record)}")


def _equals(column: str, value: str) -> Expression:
    return Comparison("=", Column(column), Literal(value))


class _Stream:
    """The stream as arrays, and the work to be done on it."""

    def __init__(self, rows: int) -> None:
        table = server_events(rows)
        self.region, self.tier = codes(table, "region"), codes(table, "tier")
        self.latency = table["latency"].to_numpy()
        shard = np.random.default_rng(1).integers(0, 70, rows, dtype=np.int32)
        self.table = Table(
            {
                "region": _text(self.region, REGIONS),
                "tier": _text(self.tier, ["free", "standard", "premium"]),
                "shard": _text(shard, [f"s{k}" for k in range(70)]),
            },
            rows,
        )

    def ready(self, predicates: list[Expression]):  # type: ignore[no-untyped-def]
        """Atoms, digits, the scale, and how many atoms there are."""
        refinement = Refinement(predicates)
        atoms = refinement.assign(self.table)
        largest, smallest = float(self.latency.max()), float(self.latency.min())
        scale = fit_column(self.latency, largest, smallest, 2)
        assert scale is not None
        return atoms, cut_column(self.latency, scale), scale, refinement.atoms

    def slide(self, predicates: list[Expression], window: int) -> Callable[[], object]:
        """The slide loop alone."""
        atoms, digits, scale, count = self.ready(predicates)
        centre = np.zeros(scale.digits, np.int64)

        def work() -> npt.NDArray[np.int64]:
            summaries = np.zeros((count, scale.words), np.int64)
            slide(summaries, atoms, digits, window, centre, scale.layout)
            return summaries

        return work

    def whole(self, predicates: list[Expression], window: int) -> Callable[[], object]:
        """Signatures and digits included; room for the digits is there, as in the engine."""
        refinement = Refinement(predicates)
        _, digits, scale, count = self.ready(predicates)
        centre = np.zeros(scale.digits, np.int64)

        def work() -> npt.NDArray[np.int64]:
            atoms = refinement.assign(self.table)
            cut(self.latency, 2.0**-scale.exponent, scale.layout, digits)
            summaries = np.zeros((count, scale.words), np.int64)
            slide(summaries, atoms, digits, window, centre, scale.layout)
            return summaries

        return work


def _text(values: npt.NDArray[np.int32], names: list[str]) -> ColumnData:
    return ColumnData(Kind.TEXT, values, None, np.array(names, dtype=object))
