"""What does a sample of the window cost while it slides, and how does that depend on its size?

*The kernel* takes one row at a time: a priority, and a sweep of the candidates now and then.
*WindowSample* is what the engine calls, in batches: raw columns, extremes of fares, expiry. Beside
them the same sample by eager domination, both samplers with replacement, and the slide kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np
import numpy.typing as npt

from evaluation.benchmarks.record import describe, markdown, measure, write
from evaluation.benchmarks.taxi import taxi
from evaluation.rq4.ingest import eagerly, enter, fed, lazily
from ids.kernels.scatter import slide
from ids.model.expression import Column, Comparison, Literal
from ids.model.sampling import Sampling
from ids.model.table import ColumnData, Kind, Table
from ids.model.window import CountWindow, TimeWindow
from ids.predicates.refinement import Refinement
from ids.state.sample import WindowSample
from ids.state.scaling import cut_column, fit_column

__all__ = ["main"]

ROWS = 500_000
WINDOW = 200_000
BATCH = 1_000
SIZES = (64, 256, 1024, 4096)
EAGER_ROWS = 150_000
EAGER_SIZE = 2048
REPLACED = 1024
WINDOWS = (10_000, 100_000, 1_000_000)
COLUMNS = ("fare_amount", "PULocationID", "payment_type", "trip_distance")
VALUE = "fare_amount"


def main() -> None:
    """Measure, keep, show."""
    trips = _trips(ROWS)
    _ingest(trips)
    _eager()
    _bytes(trips)


def _ingest(trips: Table) -> None:
    work: dict[str, Callable[[], object]] = {"the slide kernel": _slide(trips)}
    work |= {f"kernel, r = {size:,}": lazily(size, ROWS, WINDOW) for size in SIZES}
    replaced = Sampling(size=REPLACED, replacement=True)
    samplers: dict[str, tuple[Sampling, CountWindow | TimeWindow]] = {
        f"WindowSample, r = {size:,}": (Sampling(size=size), CountWindow(WINDOW)) for size in SIZES
    }
    samplers["chain-sample, r = 1,024"] = replaced, CountWindow(WINDOW)
    samplers["priority-sample, r = 1,024"] = replaced, TimeWindow(WINDOW)
    work |= {label: fed(trips, VALUE, *kept, ROWS, BATCH) for label, kept in samplers.items()}
    record = measure("sampler", work, rows=ROWS, repetitions=3, window=WINDOW, batch=BATCH)
    best = {label: one["best_s"] / ROWS * 1e9 for label, one in record["contenders"].items()}
    for kind in ("kernel", "WindowSample"):
        spent = [best[f"{kind}, r = {size:,}"] for size in SIZES]
        record[f"{kind}: slowest over fastest r"] = max(spent) / min(spent)
        record[f"{kind}: slowest r over the slide kernel"] = max(spent) / best["the slide kernel"]
    write(record)
    print(f"\nsampler\n\n{markdown(record)}\n")
    for label, spent_ns in best.items():
        print(f"{label:32} {spent_ns:8.1f} ns a row")
    for label, value in record.items():
        if ":" in label:
            print(f"{label:48} {value:6.2f} ×")


def _eager() -> None:
    given = EAGER_SIZE, EAGER_ROWS, WINDOW
    lazy, eager = (f"{way}, r = {EAGER_SIZE:,}" for way in ("lazy sweeps", "eager domination"))
    record = measure(
        "sampler_eager",
        {lazy: lazily(*given), eager: eagerly(*given)},
        rows=EAGER_ROWS,
        repetitions=3,
        window=WINDOW,
    )
    record["times_faster"] = record["contenders"][eager]["ratio"]
    write(record)
    print(f"\nsampler_eager\n\n{markdown(record)}")


def _bytes(trips: Table) -> None:
    """What is held at most, against the rows a sample of N needs: r + r ln(N / r)."""
    held = []
    for window in WINDOWS:
        for size in SIZES:
            needed = size * (1 + log(window / size))
            sample = WindowSample(_kinds(), 1, Sampling(size=size), CountWindow(window))
            most = 0
            for first in range(0, 2 * window, 10 * BATCH):
                enter(sample, trips, VALUE, first, 10 * BATCH)
                most = max(most, sample.nbytes)
            held.append(
                {"r": size, "N": window, "needed_rows": needed, "most_bytes": most,
                 "bytes_a_needed_row": most / needed}
            )  # fmt: skip
    write({"name": "sampler_bytes", "held": held, **describe()})
    print("\nsampler_bytes\n\n| r | N | r + r ln(N/r) | bytes at most | bytes a row needed |")
    print("|---:|---:|---:|---:|---:|")
    for one in held:
        print(f"| {one['r']:,} | {one['N']:,} | {one['needed_rows']:,.0f} "
              f"| {one['most_bytes']:,} | {one['bytes_a_needed_row']:.0f} |")  # fmt: skip


def _slide(trips: Table) -> Callable[[], object]:
    """The slide loop of four registered predicates over the same fares."""
    predicates = [
        Comparison("=", Column(name), Literal(value))
        for name, value in (
            ("payment_type", 1),
            ("payment_type", 2),
            ("PULocationID", 74),
            ("PULocationID", 75),
        )
    ]
    refinement = Refinement(predicates)
    atoms = refinement.assign(trips)
    fare: npt.NDArray[np.float64] = trips.columns["fare_amount"].values.view(np.float64)
    magnitudes = np.abs(fare[fare != 0])
    scale = fit_column(fare, float(magnitudes.max()), float(magnitudes.min()), 2)
    assert scale is not None
    digits = cut_column(fare, scale)
    centre = np.zeros(scale.digits, np.int64)

    def work() -> object:
        summaries = np.zeros((refinement.atoms, scale.words), np.int64)
        slide(summaries, atoms, digits, WINDOW, centre, scale.layout)
        return summaries

    return work


def _kinds() -> dict[str, Kind]:
    return dict.fromkeys(COLUMNS, Kind.NUMBER)


def _trips(rows: int) -> Table:
    trips = taxi(rows)
    columns = {
        name: ColumnData(Kind.NUMBER, np.nan_to_num(trips[name].to_numpy().astype(np.float64)))
        for name in COLUMNS
    }
    return Table(columns, rows)
