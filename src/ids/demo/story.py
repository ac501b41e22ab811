"""The demo's queries: the paper's example queries, and a ranking of predicates by their change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ids.model import MAX_ROWS

_EMITS = 200
_SLIDES = 10  # per window
MOST = MAX_ROWS // _SLIDES * _EMITS
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
    """The change of one predicate between a normal window and the worst window.

    rows       the rows in the worst window for which it is true
    lift       the change of its lift of AVG(latency)
    variance   the sum of its SHAPLEY_DELTAs of VAR_POP(latency) between the two windows
    """

    predicate: str
    rows: int
    lift: float
    variance: float


@dataclass(frozen=True)
class Story:
    """The queries over a stream of ``rows`` rows.

    The incident is the middle 4 % of the rows. The window is 5 % of the rows, so one window
    contains the whole incident, and the window is full long before the incident starts.
    """

    rows: int

    @property
    def slide(self) -> int:
        """The number of rows between two emits."""
        return self.rows // _EMITS

    @property
    def window(self) -> int:
        """The number of rows in a full window."""
        return self.slide * _SLIDES

    def listing(self) -> str:
        """Return the first listing: the attributions of two regions, with share and lift."""
        return self._over("""
    SHAPLEY_ATTRIBUTE(AVG(latency), region_eu WITH (SHARE, LIFT)) AS eu_attribution,
    SHAPLEY_ATTRIBUTE(AVG(latency), region_us WITH (SHARE, LIFT)) AS us_attribution""")

    def compositions(self) -> str:
        """Return the second listing: combinations of registered predicates."""
        return self._over("""
    SHAPLEY_ATTRIBUTE(AVG(latency), region_eu AND tier_premium) AS eu_premium_attr,
    SHAPLEY_ATTRIBUTE(AVG(latency), region_eu AND NOT tier_premium) AS eu_basic_attr,
    SHAPLEY_ATTRIBUTE(AVG(latency), region_eu OR region_us) AS eu_or_us_attr""")

    def ranking(self) -> str:
        """Return a query with the attributions of each candidate predicate."""
        items = ["AVG(latency) AS average", "VAR_POP(latency) AS variance"]
        for i, predicate in enumerate(_CANDIDATES):
            items += [
                f"SHAPLEY_ATTRIBUTE(AVG(latency), {predicate} WITH (SHARE, LIFT)) AS average_{i}",
                f"SHAPLEY_DELTA(VAR_POP(latency), {predicate}) AS variance_{i}",
                f"SHAPLEY_ATTRIBUTE(COUNT(*), {predicate}) AS rows_{i}",
            ]
        return self._over(" " + ",\n    ".join(items))

    def _over(self, items: str) -> str:
        return f"""{_REGISTERED}
SELECT{items}
FROM server_events
WINDOW w AS (ORDER BY event_time ROWS {self.window} PRECEDING SLIDE {self.slide} ROWS)
EMIT CHANGES;
"""


def _numbers(table: pa.Table, column: str) -> npt.NDArray[np.float64]:
    numbers: npt.NDArray[np.float64] = table.column(column).to_numpy()
    return numbers


def incident(table: pa.Table) -> tuple[int, int]:
    """Return the numbers of two emits: the highest average, and one full window before it.

    Both windows are full, because a few rows can have a high average by chance, and because lifts
    are comparable only between windows of the same size. No row is in both windows.
    """
    first = 2 * _SLIDES - 1
    worst = first + int(np.argmax(_numbers(table, "average")[first:]))
    return worst - _SLIDES, worst


def ranked(table: pa.Table, calm: int, worst: int) -> list[Change]:
    """Return the change of each candidate, the largest change of the lift first."""
    changes = []
    for i, predicate in enumerate(_CANDIDATES):
        lift = _numbers(table, f"average_{i}_lift")
        deltas = _numbers(table, f"variance_{i}")[calm + 1 : worst + 1]
        rows = round(_numbers(table, f"rows_{i}")[worst])
        changes.append(Change(predicate, rows, float(lift[worst] - lift[calm]), float(sum(deltas))))
    return sorted(changes, key=lambda change: -change.lift)


def ranking_table(changes: list[Change]) -> pa.Table:
    """Return the changes as a table to print."""
    return pa.table(
        {
            "predicate": [change.predicate for change in changes],
            "rows": [change.rows for change in changes],
            "change of\nAVG lift": [change.lift for change in changes],
            "sum of SHAPLEY_DELTA\nof VAR_POP": [change.variance for change in changes],
        }
    )


def verdict(table: pa.Table, calm: int, worst: int, changes: list[Change]) -> str:
    """Return one paragraph: which predicate accounts for the change, and by how much."""
    average, variance = _numbers(table, "average"), _numbers(table, "variance")
    begin, end = (str(table.column("emit_at")[i].as_py())[:19] for i in (calm, worst))
    if begin[:10] == end[:10]:  # the same day
        begin, end = begin[11:], end[11:]
    first, second = changes[:2]
    part = first.rows / _numbers(table, "n")[worst]
    return (
        f"Between {begin} and {end} AVG(latency) went from {average[calm]:.1f} to "
        f"{average[worst]:.1f} ms and VAR_POP(latency) from {variance[calm]:,.0f} to "
        f"{variance[worst]:,.0f} ms². {first.predicate} accounts for it: {part:.1%} of "
        f"the rows, yet its lift moved by {first.lift:+.1f} ms, further than that of any other "
        f"candidate ({second.predicate}: {second.lift:+.1f} ms), and its SHAPLEY_DELTAs of the "
        f"variance add up to {first.variance:+,.0f} ms². (The lifts of all rows sum to zero, so "
        "one predicate's may exceed the aggregate.)"
    )
