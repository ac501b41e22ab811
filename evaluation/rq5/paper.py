"""What the paper prints of RQ5: its Table 6, and the sentences of §9.5."""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "DEMOTION",
    "PLACE",
    "PROMOTION_A_TUPLE",
    "QUESTIONS",
    "REBUILD_SHARE",
    "TABLE",
    "TEXT",
    "WINDOW",
    "Printed",
]

PLACE = "Table 6"
TEXT = "§9.5"
WINDOW = 50_000
QUESTIONS = 1_600


class Printed(NamedTuple):
    """A row of the table: promotions, millions of tuples touched, and the gain over static."""

    promotions: int
    adhoc: float
    rebuild: float
    gain: float


TABLE = {
    (1, "static"): Printed(0, 80.00, 0.00, 1.00),
    (1, "oracle"): Printed(0, 29.85, 0.00, 2.68),
    (1, "adaptive, f = 10"): Printed(8, 35.15, 0.40, 2.25),
    (2, "static"): Printed(0, 80.00, 0.00, 1.00),
    (2, "oracle"): Printed(0, 4.25, 0.00, 18.82),
    (2, "adaptive, f = 10"): Printed(8, 8.25, 0.40, 9.25),
}
REBUILD_SHARE = 0.05  # of the adaptive total, at most
PROMOTION_A_TUPLE = 1e-6  # seconds, about
DEMOTION = 100e-6  # seconds: "tens of microseconds", so fewer than this
