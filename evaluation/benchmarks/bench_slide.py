"""What does a slide of one row cost, next to the paper's Algorithm 1 taken literally?

The work itself stands in ``evaluation.rq2``; here it runs on a larger stream of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pyarrow as pa

from evaluation.benchmarks.data import server_events
from evaluation.benchmarks.record import markdown, measure, write
from evaluation.rq2.algorithm1 import contenders, looped
from evaluation.rq2.maintaining import ATOMS, Maintained
from evaluation.rq2.stream import Prepared, Stream, Test, equals
from ids.model.expression import Expression

__all__ = ["main"]

ROWS = 4_000_000
WINDOW = 100_000
FOUR: list[Test] = [
    ("region", "EU-West"),
    ("region", "US-East"),
    ("tier", "premium"),
    ("tier", "standard"),
]


def main() -> None:
    """Measure, keep, show."""
    stream = _stream(ROWS)
    _keep("slide", contenders(stream, WINDOW, FOUR), window=WINDOW, predicates=4)
    four = stream.prepared(_predicates(FOUR))
    sizes = {f"N = {n:,}": partial(looped, four, n) for n in (1_000, 10_000, 100_000, 1_000_000)}
    _keep("slide_by_window", sizes, predicates=4)
    many = stream.prepared(_predicates([("shard", f"s{k}") for k in range(64)]))
    both = {"K = 4": partial(looped, four, WINDOW), "K = 64": partial(looped, many, WINDOW)}
    _keep("slide_by_predicates", both, window=WINDOW)
    _recount(four)


def _recount(prepared: Prepared) -> None:
    """Against a scan of the whole window at every slide: the paper's headline, N = 10**6."""
    window = 1_000_000
    record = measure(
        "slide_against_recount",
        {
            "one slide, recounted": Maintained(prepared, window, 1, ATOMS).scan(1),
            "all slides, incremental": partial(looped, prepared, window),
        },
        rows=1,
        window=window,
        predicates=prepared.holds.shape[1],
    )
    recounted = record["contenders"]["one slide, recounted"]["best_s"]
    maintained = record["contenders"]["all slides, incremental"]["best_s"] / ROWS
    record["times_faster"] = recounted / maintained
    write(record)
    print(f"\nN = 10⁶: a slide costs {maintained * 1e9:.1f} ns maintained, "
          f"{recounted * 1e3:.2f} ms recounted: {record['times_faster']:,.0f} ×")  # fmt: skip


def _keep(name: str, work: Mapping[str, Callable[[], object]], **facts: object) -> None:
    record = measure(name, work, rows=ROWS) | facts
    write(record)
    print(f"\n{name}\n\n{markdown(record)}")


def _predicates(tests: list[Test]) -> list[Expression]:
    return [equals(test) for test in tests]


def _stream(rows: int) -> Stream:
    """The server's events, each on one of seventy shards."""
    drawn = np.random.default_rng(1).integers(0, 70, rows, dtype=np.int32)
    shards = pa.DictionaryArray.from_arrays(pa.array(drawn), [f"s{k}" for k in range(70)])
    return Stream(server_events(rows).append_column("shard", shards), "latency")
