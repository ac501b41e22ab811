"""What the paper prints for RQ1: Table 4, and the bounds in the text of Section 9.1."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["BOUNDS", "CASES", "PRINTED", "SECTION", "SLIDES", "TABLE", "Errors"]

TABLE = "Table 4"
SECTION = "§9.1"
CASES = 3_186
SLIDES = 300_000


class Errors(NamedTuple):
    """A row of the table: enumeration (absolute, relative), then the engine's own two tests."""

    absolute: float
    relative: float
    delta: float
    residual: float


PRINTED = {
    "SUM": Errors(3.6e-12, 2.9e-12, 3.1e-16, 2.2e-16),
    "COUNT": Errors(1.7e-13, 1.9e-14, 0.0, 0.0),
    "AVG": Errors(4.3e-14, 6.1e-13, 4.4e-15, 5.4e-16),
    "VAR_POP": Errors(1.4e-12, 7.1e-13, 1.4e-13, 2.6e-15),
    "VAR_SAMP": Errors(1.6e-12, 2.7e-13, 2.0e-13, 3.0e-15),
}

BOUNDS = {"absolute": 4e-12, "delta": 5e-13, "residual": 4e-15}
"""No error of any game is larger, says the text."""
