"""The predicates of this chapter: the planted one, and those that stand beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluation.values import equality, plain, where

__all__ = ["PARENTS", "PLANTED", "RIVALS", "SIBLINGS", "Candidate", "conditions_of"]


@dataclass(frozen=True)
class Candidate:
    """A conjunction of equalities, under the name it is registered by.

    >>> PLANTED.condition
    "region = 'EU-West' AND tier = 'premium'"
    """

    name: str
    equal: tuple[tuple[str, str], ...]

    @property
    def condition(self) -> str:
        """As the query language writes it."""
        return " AND ".join(equality(column, value) for column, value in self.equal)

    @property
    def label(self) -> str:
        """As a figure writes it: the values alone."""
        return " ∧ ".join(value for _, value in self.equal)

    def mask(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        """The rows it holds on, found without the engine."""
        holds = np.ones(rows.num_rows, dtype=np.bool_)
        for column, value in self.equal:
            holds &= where(plain(rows[column]), value)
        return holds


def conditions_of(candidates: Sequence[Candidate]) -> dict[str, str]:
    """As an engine or a script registers them."""
    return {candidate.name: candidate.condition for candidate in candidates}


PLANTED = Candidate("planted", (("region", "EU-West"), ("tier", "premium")))
_CHECKOUT = Candidate("checkout", (("endpoint", "/checkout"),))

SIBLINGS = (
    PLANTED,
    Candidate("us_premium", (("region", "US-East"), ("tier", "premium"))),
    Candidate("eu_basic", (("region", "EU-West"), ("tier", "basic"))),
    _CHECKOUT,
)
"""Decoys that share a value with the planted predicate, or none, but (but for checkout) no row."""

PARENTS = (
    PLANTED,
    Candidate("eu", (("region", "EU-West"),)),
    Candidate("premium", (("tier", "premium"),)),
    _CHECKOUT,
)
"""Harder ones: two hold on every planted row, and rise with it."""

RIVALS = {"siblings": SIBLINGS, "parents": PARENTS}
