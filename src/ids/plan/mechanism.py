"""Mechanisms: what each would cost to answer a question that no summary answers, and the choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Offer", "choose_offer", "index_offer", "partial_offer", "sample_offer", "scan_offer"]

# Nanoseconds, as the evaluation finds them, rounded; only their proportions decide.
_SCAN_ROW = 2.5
_PARTIAL_ROW = 1.0
_CANDIDATE_ROW = 8.0
_INDEX_START = 15_000.0
_PARTIAL_START = 20_000.0
_SCAN_START = 40_000.0


class Offer(NamedTuple):
    """One way to an answer.

    touched  rows it expects to look at
    cost     nanoseconds it expects to take
    reason   why it is on offer, with places for ``touched`` and for the window's ``rows``
    exact    whether the answer will be
    """

    mechanism: str
    touched: int
    cost: float
    reason: str
    rows: int
    exact: bool = True

    @property
    def why(self) -> str:
        """The reason in words."""
        return self.reason % {"touched": f"{self.touched:,}", "rows": f"{self.rows:,}"}


def scan_offer(rows: int) -> Offer:
    """Every row inside, once."""
    reason = "it looks at all %(rows)s rows inside"
    return Offer("scan", rows, _SCAN_START + rows * _SCAN_ROW, reason, rows)


def partial_offer(rows: int, undecided: int) -> Offer:
    """The rows of the atoms that the registered predicates leave open."""
    if not undecided:
        reason = "what is registered decides every live atom"
        return Offer("compositional", 0, 0.0, reason, rows)
    cost = _PARTIAL_START + rows * _PARTIAL_ROW + undecided * _CANDIDATE_ROW
    reason = "what is registered decides all but %(touched)s of %(rows)s rows"
    return Offer("scan", undecided, cost, reason, rows)


def index_offer(rows: int, candidates: int) -> Offer:
    """The rows that the index cannot rule out."""
    cost = _INDEX_START + candidates * _CANDIDATE_ROW
    return Offer("index", candidates, cost, "the index leaves %(touched)s of %(rows)s rows", rows)


def sample_offer(rows: int, drawn: int, *, stratified: bool, asked: bool) -> Offer:
    """The rows drawn."""
    reason = "a sample was asked for" if asked else "it looks at rows drawn at random"
    mechanism = "stratified" if stratified else "sample"
    return Offer(mechanism, drawn, _SCAN_START + drawn * _CANDIDATE_ROW, reason, rows, exact=False)


def choose_offer(offers: Sequence[Offer]) -> Offer:
    """The cheapest exact one; an estimate only where nothing exact is on offer."""
    return min(offers, key=lambda offer: (not offer.exact, offer.cost))
