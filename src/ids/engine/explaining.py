"""An answer explained: the mechanism, why it was chosen, what it was expected to cost and did."""

from __future__ import annotations

from collections.abc import Sequence

from ids.model.attribution import Attribution
from ids.plan.mechanism import Offer

__all__ = ["explain_answer"]


def explain_answer(
    aggregate: str, predicate: str, found: Attribution, offers: Sequence[Offer]
) -> str:
    """Lines for a person to read."""
    lines = [
        f"{aggregate} of {predicate}: {found.mechanism}",
        f"  why: {found.why}",
        f"  tuples touched: {found.touched:,} (estimated {found.estimated:,})",
    ]
    if found.sample_size:
        lines.append(
            f"  error: at most {found.error:.6g} at {100 * found.confidence:g} %, standard error "
            f"{found.standard_error:.6g}; {found.sample_size:,} rows drawn, seed {found.seed}"
        )
    if len(offers) > 1:
        lines.append("  considered, the exact ones first:")
        ranked = sorted(offers, key=lambda offer: (not offer.exact, offer.cost))
        lines += [f"    {_offer(offer)}" for offer in ranked]
    return "\n".join(lines)


def _offer(offer: Offer) -> str:
    kind = "exact" if offer.exact else "estimate"
    cost = f"{offer.touched:,} tuples, about {offer.cost / 1e3:,.0f} µs, {kind}"
    return f"{offer.mechanism}: {cost} ({offer.why})"
