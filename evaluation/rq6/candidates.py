"""The predicates of this chapter: the planted one, and the two sets of rivals it has to outrun."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluation.bench import equality, plain, where


@dataclass(frozen=True)
class Candidate:
    """A conjunction of equalities, under the name it is registered by.

    >>> PLANTED.condition, PLANTED.label
    ("region = 'EU-West' AND tier = 'premium'", 'EU-West ∧ premium')
    """

    name: str
    equal: tuple[tuple[str, str | int | float], ...]

    @property
    def condition(self) -> str:
        """As the query language writes it."""
        return " AND ".join(equality(column, value) for column, value in self.equal)

    @property
    def label(self) -> str:
        """As a figure writes it: the values alone."""
        return " ∧ ".join(str(value) for _, value in self.equal)

    def mask(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        """The rows it holds on, found without the engine."""
        holds = [where(plain(rows[name]), value) for name, value in self.equal]
        return np.asarray(np.logical_and.reduce(holds))


PLANTED = Candidate("planted", (("region", "EU-West"), ("tier", "premium")))
_CHECKOUT = Candidate("checkout", (("endpoint", "/checkout"),))
_US_PREMIUM = Candidate("us_premium", (("region", "US-East"), ("tier", "premium")))
_EU_BASIC = Candidate("eu_basic", (("region", "EU-West"), ("tier", "basic")))
_EU = Candidate("eu", (("region", "EU-West"),))
_PREMIUM = Candidate("premium", (("tier", "premium"),))
RIVALS = {
    "siblings": (PLANTED, _US_PREMIUM, _EU_BASIC, _CHECKOUT),
    "parents": (PLANTED, _EU, _PREMIUM, _CHECKOUT),
}
"""Siblings share a value with the planted predicate but no row; parents hold on all its rows, and
rise with it. Checkout stands by in both."""
