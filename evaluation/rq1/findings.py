"""What the rows of RQ1 amount to: the worst of each game, as the paper's table has it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evaluation.chapter import Tables
from evaluation.rq1.regression import STRESS

__all__ = ["ERRORS", "Found", "worst"]

ERRORS = ("absolute", "relative", "delta", "residual")
"""The four columns of errors."""

Rows = list[dict[str, Any]]


def worst(rows: Iterable[dict[str, Any]], column: str) -> float | None:
    """The largest value of a column; None where no row has one."""
    return max((row[column] for row in rows if row[column] is not None), default=None)


class Found:
    """The findings by game; None stands for what this run did not measure."""

    def __init__(self, tables: Tables) -> None:
        self.enumerated: Rows = tables["rq1_enumeration"]
        self.deltas: Rows = tables["rq1_deltas"]
        self.emits: Rows = tables["rq1_emits"]
        self.restored: Rows = tables["rq1_restored"]
        self.drift: Rows = tables["rq1_drift"]

    def cases(self, game: str) -> int | None:
        """Windows and predicates that were enumerated."""
        return sum(row["cases"] for row in self.enumerated if row["game"] == game) or None

    def errors(self, game: str) -> dict[str, float | None]:
        """The paper's four columns.

        An absolute error is in the unit of the values, so it is that of ordinary ones: values of
        10⁹ are told apart, in ``stress``.
        """
        mine = [row for row in self.enumerated if row["game"] == game]
        return {
            "absolute": worst((row for row in mine if row["kind"] != STRESS), "abs_err"),
            "relative": worst(mine, "rel_err"),
            **self._of_replays([row for row in self.deltas if row["game"] == game]),
        }

    def stress(self, game: str) -> dict[str, float | None]:
        """The same four of the adversarial values alone: mean 10⁹, deviation 10⁻³."""
        mine = [row for row in self.enumerated if (row["game"], row["kind"]) == (game, STRESS)]
        replay = [r for r in self.deltas if (r["game"], r["workload"]) == (game, "stress")]
        return {
            "absolute": worst(mine, "abs_err"),
            "relative": worst(mine, "rel_err"),
            **self._of_replays(replay),
        }

    def units(self, game: str) -> float | None:
        """The worst enumerated error in units of 2⁻⁵³·(|share| + |lift|)."""
        return worst((row for row in self.enumerated if row["game"] == game), "units")

    def _of_replays(self, rows: Rows) -> dict[str, float | None]:
        return {"delta": worst(rows, "delta"), "residual": worst(rows, "residual")}

    @property
    def workloads(self) -> list[str]:
        """Those that were replayed."""
        return list(dict.fromkeys(row["workload"] for row in [*self.deltas, *self.emits]))

    @property
    def slides(self) -> int | None:
        """Slides of each replay."""
        return min((row["slides"] for row in [*self.deltas, *self.emits]), default=None)

    @property
    def compared(self) -> int:
        """Answers whose bits were compared with a recomputation."""
        return sum(row["questions"] for row in [*self.deltas, *self.emits])

    @property
    def differing(self) -> int:
        """Those of them that differed."""
        return sum(row["differing"] for row in [*self.deltas, *self.emits])
