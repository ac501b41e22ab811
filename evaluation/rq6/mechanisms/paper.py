"""What the paper prints of its ad hoc mechanisms: Table 8 and the sentences beside it (§9.6)."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["GAIN_BY_STRATA", "PLACE", "SELECTIVITIES", "TABLE", "TEXT", "WINDOW", "Printed"]

PLACE = "Table 8"
TEXT = "§9.6"
WINDOW = 200_000
SELECTIVITIES = {"rare": 0.00002, "some": 0.02515, "most": 0.62731}  # the first: 1.5e-5 in §9.6


class Printed(NamedTuple):
    """A row of the table: µs a question, µs a tuple, MiB, and the relative error (0: exact)."""

    query: float
    maintenance: float
    memory: float
    error: float


TABLE = {
    ("rare", "brute force scan"): Printed(80_277.9, 0.000, 7.63, 0.0),
    ("rare", "index assisted"): Printed(22.4, 1.470, 3.05, 0.0),
    ("rare", "uniform sample"): Printed(4_434.5, 0.959, 0.72, 4.07e1),
    ("rare", "stratified sample"): Printed(2_051.7, 1.825, 0.36, 7.00e-1),
    ("some", "brute force scan"): Printed(82_934.9, 0.000, 7.63, 0.0),
    ("some", "index assisted"): Printed(1_667.1, 1.470, 3.05, 0.0),
    ("some", "uniform sample"): Printed(4_354.4, 0.959, 0.72, 1.45),
    ("some", "stratified sample"): Printed(2_087.2, 1.825, 0.36, 1.18),
    ("most", "brute force scan"): Printed(84_649.4, 0.000, 7.63, 0.0),
    ("most", "index assisted"): Printed(14_894.7, 1.470, 3.05, 0.0),
    ("most", "uniform sample"): Printed(3_713.9, 0.959, 0.72, 5.35e-1),
    ("most", "stratified sample"): Printed(2_635.0, 1.825, 0.36, 1.41e-1),
}
GAIN_BY_STRATA = 58.0  # at the rarest, a uniform sample's error over a stratified one's
