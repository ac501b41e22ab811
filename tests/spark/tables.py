"""Tables that try the pipeline: ties, NULLs, gaps, mixed magnitudes, keys that come and go."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

HOUR = 3_600_000_000


def events(seed: int, rows: int = 3_000, span: int = HOUR) -> pa.Table:
    """Requests with NULLs in every column but the event time, in no order."""
    rng = np.random.default_rng(seed)
    start = 1_767_225_600_000_000
    instants = start + rng.integers(0, span, rows)
    instants[: rows // 10] = instants[0] // 1_000_000 * 1_000_000  # many at once, on a border
    quiet = (instants - start > span // 3) & (instants - start < span // 2)
    instants[quiet] += span  # a gap, and a second stretch far behind

    def holes(values: list[object], share: float = 0.05) -> list[object]:
        return [
            None if hole else v for v, hole in zip(values, rng.random(rows) < share, strict=True)
        ]

    latency = rng.lognormal(3.5, 0.8, rows)
    latency[rng.random(rows) < 0.02] = 0.0
    level = 1e9 + rng.normal(0.0, 1e-3, rows)
    return pa.table(
        {
            "event_time": pa.array(instants, pa.timestamp("us", "UTC")),
            "region": pa.array(
                holes(rng.choice(["EU", "US", "AP", "it's"], rows).tolist()), "string"
            ),
            "tier": pa.array(holes(rng.choice(["premium", "basic"], rows).tolist()), "string"),
            "shop": pa.array(holes(rng.integers(1, 4, rows).tolist()), "int32"),
            "latency": pa.array(holes(latency.tolist()), "float64"),
            "level": pa.array(level, "float64"),
            "bytes": pa.array(holes(rng.integers(-(2**40), 2**40, rows).tolist()), "int64"),
            "cached": pa.array(holes((rng.random(rows) < 0.3).tolist()), "bool"),
        }
    )


def same(expected: pa.Table, found: pa.Table) -> None:
    """Equal to the last bit, types and order included; shows the first cell that is not."""
    assert found.schema.names == expected.schema.names
    assert [str(t) for t in found.schema.types] == [str(t) for t in expected.schema.types]
    assert found.num_rows == expected.num_rows
    for name in expected.column_names:
        theirs, ours = expected[name].to_pylist(), found[name].to_pylist()
        for row, (a, b) in enumerate(zip(theirs, ours, strict=True)):
            alike = a == b
            if isinstance(a, float) and isinstance(b, float):
                alike = a == b and math.copysign(1.0, a) == math.copysign(1.0, b)
            assert alike, f"{name}, row {row}: in process {a!r}, on Spark {b!r}"
