"""How far answers are from exact ones: the worst of many, in three measures."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from evaluation.recount import Recount
from evaluation.step import Row

__all__ = ["Worst", "relative"]

_HALF_ULP = 2.0**-53


def relative(given: float, exact: Fraction, whole: Fraction) -> float:
    """The error relative to the exact value; where that is 0, to the aggregate.

    A difference from an exact 0 of an aggregate of 0 has nothing to be relative to: it stays as is.
    """
    return float(abs(Fraction(given) - exact) / (abs(exact) or abs(whole) or 1))


@dataclass
class Worst:
    """The largest errors seen.

    absolute  in the value's own unit
    relative  to the exact value, or where that is 0, to the aggregate
    units     of 2⁻⁵³·(|share| + |lift|): free of how much the two cancel
    """

    cases: int = 0
    absolute: float = 0.0
    relative: float = 0.0
    units: float = 0.0

    def see(self, given: float, exact: Fraction, whole: Fraction, magnitude: float) -> None:
        """One answer beside the exact one; ``magnitude`` is its |share| + |lift|."""
        error = float(abs(Fraction(given) - exact))
        self.cases += 1
        self.absolute = max(self.absolute, error)
        self.relative = max(self.relative, relative(given, exact, whole))
        self.units = max(self.units, error / (_HALF_ULP * magnitude) if magnitude else error)

    def judge(self, given: float, truth: Recount, asked: tuple[str, str, int, int]) -> None:
        """An answer to (game, predicate, first row, last row), beside the recounted one."""
        game, _, first, last = asked
        share, lift = truth.parts(*asked)
        magnitude = float(abs(share) + abs(lift))
        self.see(given, share + lift, truth.aggregate(game, first, last), magnitude)

    def row(self) -> Row:
        """As findings."""
        return {
            "cases": self.cases,
            "abs_err": self.absolute,
            "rel_err": self.relative,
            "units": self.units,
        }
