"""What the paper prints of RQ2: Section 9.2 and Table 5."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["FASTEST", "LATENCIES", "MIDDLE", "SECTION", "SLOWEST", "TABLE", "THROUGHPUT", "Latency"]

SECTION = "§9.2"
TABLE = "Table 5"


class Latency(NamedTuple):
    """A line of Table 5, µs at N = 10⁴."""

    predicates: int
    live: int
    path: str
    p50: float
    p99: float


# Median tuples/s of IDS by |Δ|.
THROUGHPUT = {1: 7.3e7, 100: 1.3e8}

SLOWEST = 2.6  # speed-up at N = 10³, |Δ| = 100, AVG: the least of all cells
FASTEST = 4.3e5  # at N = 10⁶, |Δ| = 1: the largest
MIDDLE = 4.8e3  # at N = 10⁵, K = 4, |Δ| = 10

LATENCIES = (
    Latency(1, 2, "marginal", 1.37, 3.83),
    Latency(1, 2, "compositional", 1.58, 3.83),
    Latency(4, 6, "marginal", 1.37, 1.87),
    Latency(4, 6, "compositional", 2.54, 4.04),
    Latency(16, 12, "marginal", 1.37, 4.12),
    Latency(16, 12, "compositional", 3.92, 10.21),
    Latency(64, 12, "marginal", 1.42, 3.88),
    Latency(64, 12, "compositional", 4.00, 8.21),
)
