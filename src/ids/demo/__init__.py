"""The data and queries of ``ids demo``: a generated stream with an incident, and how to find it.

Only ``generate`` imports Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ids.lazy import lazy

if TYPE_CHECKING:
    from ids.demo.events import generate
    from ids.demo.story import MOST, Story, incident, ranked, ranking_table, verdict

__all__ = [
    "FEWEST",
    "MOST",
    "SEED",
    "Story",
    "generate",
    "incident",
    "ranked",
    "ranking_table",
    "verdict",
]

SEED = 20_260_302
FEWEST = 20_000  # with fewer rows, chance may rank another predicate first

__getattr__, __dir__ = lazy(__name__, extra="spark")
