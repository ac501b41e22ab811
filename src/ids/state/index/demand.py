"""Demands: what a condition has to be, of TRUE, FALSE and NULL, for a row to count."""

from __future__ import annotations

from enum import Enum

import numpy as np
import numpy.typing as npt

__all__ = ["Demand"]


class Demand(Enum):
    """Which truths do: (FALSE, TRUE, NULL), so that a truth of 0, 1 or -1 is its own place.

    NOT and IS TRUE turn one demand into another; these four are closed under both, and a demand
    on AND or OR is the same demand on the operands, all of them or any.
    """

    TRUE = (False, True, False)
    FALSE = (True, False, False)
    NOT_TRUE = (True, False, True)
    NOT_FALSE = (False, True, True)

    def met(self, truths: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
        """Where the demand is met."""
        met: npt.NDArray[np.bool_] = np.array(self.value, np.bool_)[truths]
        return met

    def under_not(self) -> Demand:
        """What the operand of NOT has to be."""
        false, true, null = self.value
        return Demand((true, false, null))

    def under_is(self, truth: bool) -> Demand:
        """What the operand of IS TRUE (or IS FALSE) has to be: that, or anything else."""
        sought = Demand.TRUE if truth else Demand.FALSE
        if self in (Demand.TRUE, Demand.NOT_FALSE):
            return sought
        false, true, null = sought.value
        return Demand((not false, not true, not null))

    @property
    def of_all(self) -> bool:
        """Whether AND asks it of every operand (and OR of any), not the other way round."""
        return self in (Demand.TRUE, Demand.NOT_FALSE)
