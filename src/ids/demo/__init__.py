"""What ``ids demo`` tells: a generated stream with an incident in it, and the queries that find it.

Only what generates the stream imports Spark.
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
FEWEST = 20_000  # of fewer rows so few are slow that chance may put another predicate first

__getattr__, __dir__ = lazy(__name__)
