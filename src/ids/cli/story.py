"""The paper's story: its listings, and the predicate that accounts for the change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ids.cli.terminal import cells

__all__ = [
    "SLIDE",
    "WINDOW",
    "Change",
    "compositions",
    "incident",
    "listing",
    "ranked",
    "ranking",
    "ranking_table",
    "verdict",
]

WINDOW = 10_000
SLIDE = 1_000
_OVER = f"""FROM server_events
WINDOW w AS (ORDER BY event_time ROWS {WINDOW} PRECEDING SLIDE {SLIDE} ROWS)
EMIT CHANGES;
"""
_REGISTERED = """
REGISTER PREDICATE region_eu AS (region = 'EU-West') ON server_events;
REGISTER PREDICATE region_us AS (region = 'US-East') ON server_events;
REGISTER PREDICATE tier_premium AS (tier = 'premium') ON server_events;
"""
_CANDIDATES = (
    "region_eu",
    "region_us",
    "tier_premium",
    "region_eu AND tier_premium",
    "region_eu AND NOT tier_premium",
    "region_us AND tier_premium",
    "region = 'AP-South'",
    "region = 'SA-East'",
    "endpoint = '/checkout'",
)


class Change(NamedTuple):
    """What changed for one predicate between a calm window and the worst one.

    rows       how many it holds for in the worst window
    lift       by how much the lift of AVG(latency) moved
    variance   the sum of its SHAPLEY_DELTAs of VAR_POP(latency) on the way
    """

    predicate: str
    rows: int
    lift: float
    variance: float


def listing() -> str:
    """The first listing: two regions, what they would account for anyway, and what beyond."""
    return f"""{_REGISTERED}
SELECT
    SHAPLEY_ATTRIBUTE(AVG(latency), region_eu WITH (SHARE, LIFT)) AS eu_attribution,
    SHAPLEY_ATTRIBUTE(AVG(latency), region_us WITH (SHARE, LIFT)) AS us_attribution
{_OVER}"""


def compositions() -> str:
    """The second listing: combinations of what is registered."""
    return f"""{_REGISTERED}
SELECT
    SHAPLEY_ATTRIBUTE(AVG(latency), region_eu AND tier_premium) AS eu_premium_attr,
    SHAPLEY_ATTRIBUTE(AVG(latency), region_eu AND NOT tier_premium) AS eu_basic_attr,
    SHAPLEY_ATTRIBUTE(AVG(latency), region_eu OR region_us) AS eu_or_us_attr
{_OVER}"""


def ranking() -> str:
    """A query that tells, for each candidate, what its part of the change is."""
    items = ["AVG(latency) AS average", "VAR_POP(latency) AS variance"]
    for i, predicate in enumerate(_CANDIDATES):
        items += [
            f"SHAPLEY_ATTRIBUTE(AVG(latency), {predicate} WITH (SHARE, LIFT)) AS average_{i}",
            f"SHAPLEY_DELTA(VAR_POP(latency), {predicate}) AS variance_{i}",
            f"SHAPLEY_ATTRIBUTE(COUNT(*), {predicate}) AS rows_{i}",
        ]
    return _REGISTERED + "SELECT " + ",\n    ".join(items) + f"\n{_OVER}"


def _numbers(table: pa.Table, column: str) -> npt.NDArray[np.float64]:
    numbers: npt.NDArray[np.float64] = table.column(column).to_numpy()
    return numbers


def incident(table: pa.Table) -> tuple[int, int]:
    """The emit with the highest average, and the one a whole window earlier: no row is in both."""
    worst = int(np.argmax(_numbers(table, "average")))
    return max(0, worst - WINDOW // SLIDE), worst


def ranked(table: pa.Table, calm: int, worst: int) -> list[Change]:
    """What changed for each candidate, the largest move of the lift first."""
    changes = []
    for i, predicate in enumerate(_CANDIDATES):
        lift = _numbers(table, f"average_{i}_lift")
        deltas = _numbers(table, f"variance_{i}")[calm + 1 : worst + 1]
        rows = round(_numbers(table, f"rows_{i}")[worst])
        changes.append(Change(predicate, rows, float(lift[worst] - lift[calm]), float(sum(deltas))))
    return sorted(changes, key=lambda change: -change.lift)


def ranking_table(changes: list[Change]) -> pa.Table:
    """The candidates as a person compares them."""
    return pa.table(
        {
            "predicate": [change.predicate for change in changes],
            "rows": [change.rows for change in changes],
            "change of\nAVG lift": [change.lift for change in changes],
            "sum of SHAPLEY_DELTA\nof VAR_POP": [change.variance for change in changes],
        }
    )


def verdict(table: pa.Table, calm: int, worst: int, changes: list[Change]) -> str:
    """One paragraph: the predicate that accounts for the change, and by how much."""
    average, variance = _numbers(table, "average"), _numbers(table, "variance")
    at = [text[11:19] for text in cells(table.column("emit_at"))]
    first, second = changes[:2]
    part = first.rows / _numbers(table, "n")[worst]
    return (
        f"Between {at[calm]} and {at[worst]} AVG(latency) went from {average[calm]:.1f} to "
        f"{average[worst]:.1f} ms and VAR_POP(latency) from {variance[calm]:,.0f} to "
        f"{variance[worst]:,.0f} ms². {first.predicate} accounts for it: {part:.1%} of "
        f"the rows, yet its lift moved by {first.lift:+.1f} ms, further than that of any other "
        f"candidate ({second.predicate}: {second.lift:+.1f} ms), and its SHAPLEY_DELTAs of the "
        f"variance add up to {first.variance:+,.0f} ms². (The lifts of all rows sum to zero, so "
        "one predicate's may exceed the aggregate.)"
    )
