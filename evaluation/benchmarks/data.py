"""The benchmark's stream: a seeded table of server events."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

__all__ = ["ENDPOINTS", "REGIONS", "TIERS", "codes", "server_events"]

REGIONS = [
    "EU-West",
    "EU-North",
    "US-East",
    "US-West",
    "AP-South",
    "AP-East",
    "SA-East",
    "AF-South",
]
TIERS = ["free", "standard", "premium"]
ENDPOINTS = [f"/v1/resource/{k:02d}" for k in range(50)]


def server_events(rows: int, seed: int = 0) -> pa.Table:
    """event_time (µs), region, tier, endpoint (dictionaries) and latency (lognormal, ms). O(rows).

    Events are 1 ms apart on average, strictly in order; the same seed gives the same table.
    """
    rng = np.random.default_rng(seed)
    start = np.datetime64("2026-01-01T00:00:00", "us")
    event_time = start + np.cumsum(rng.integers(1, 2000, rows)).astype("timedelta64[us]")
    return pa.table(
        {
            "event_time": event_time,
            "region": _dictionary(rng, rows, REGIONS),
            "tier": _dictionary(rng, rows, TIERS),
            "endpoint": _dictionary(rng, rows, ENDPOINTS),
            "latency": rng.lognormal(4.0, 0.5, rows),
        }
    )


def codes(table: pa.Table, column: str) -> np.ndarray:
    """A dictionary column's int32 codes."""
    found: np.ndarray = table[column].combine_chunks().indices.to_numpy()
    return found


def _dictionary(rng: np.random.Generator, rows: int, names: list[str]) -> pa.DictionaryArray:
    drawn = rng.integers(0, len(names), rows, dtype=np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(drawn), pa.array(names))
