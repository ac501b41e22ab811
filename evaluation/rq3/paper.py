"""What the paper prints of RQ3: the sentences of §9.3 beside its Figure 3."""

from __future__ import annotations

__all__ = [
    "ANALYTIC",
    "INDEX",
    "PEAK",
    "PLACE",
    "RETAINED",
    "SHARE_FULL",
    "SHARE_INDEXED",
    "SUMMARIES",
    "SUMMARIES_HEAP",
]

PLACE = "§9.3"
SUMMARIES = 312.0  # B, at K = 4, whatever N
SHARE_FULL = 0.006  # %, N = 10⁵
SHARE_INDEXED = 6e-4  # %, N = 10⁶
RETAINED = 30.5  # MiB, N = 10⁶
INDEX = 15.3  # MiB, N = 10⁶
SUMMARIES_HEAP = 0.0  # MiB, N ≤ 10⁵: "no measurable heap"
PEAK = 44.0  # MiB, N = 10⁵, the full configuration
ANALYTIC = 4.6  # MiB, the same
