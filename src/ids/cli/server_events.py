"""The stream of the paper's running story: requests to a service, and an incident among them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["server_events"]

_REGIONS = np.array(["EU-West", "US-East", "AP-South", "SA-East"], dtype=object)
_TIERS = np.array(["premium", "basic"], dtype=object)
_ENDPOINTS = np.array(["/search", "/feed", "/checkout", "/login"], dtype=object)
_START = np.datetime64("2026-03-02T09:00:00", "us")
_MEAN_GAP = 50_000.0  # µs: twenty requests a second
_MEDIAN = 40.0  # ms


def server_events(
    rng: np.random.Generator, rows: int = 200_000, shift: float = 4.0
) -> dict[str, npt.NDArray[np.generic]]:
    """Poisson arrivals with lognormal latencies, in milliseconds.

    In the middle 4 % of the rows the latencies of premium requests from EU-West are ``shift`` times
    what they would be.
    """
    region = rng.choice(4, rows, p=[0.35, 0.30, 0.20, 0.15])
    tier = rng.choice(2, rows, p=[0.30, 0.70])
    latency = rng.lognormal(np.log(_MEDIAN), 0.5, rows)
    gaps = rng.exponential(_MEAN_GAP, rows).astype(np.int64)
    during = np.zeros(rows, np.bool_)
    during[int(0.48 * rows) : int(0.52 * rows)] = True
    latency[during & (region == 0) & (tier == 0)] *= shift
    return {
        "event_time": _START + np.cumsum(gaps).astype("timedelta64[us]"),
        "region": _REGIONS[region],
        "tier": _TIERS[tier],
        "endpoint": _ENDPOINTS[rng.choice(4, rows, p=[0.40, 0.30, 0.20, 0.10])],
        "latency": latency,
    }
