"""What ``ids demo`` tells: a generated stream with an incident in it, and the queries that find it.

Only the modules that generate the stream import Spark.
"""

from __future__ import annotations

__all__ = ["SEED"]

SEED = 20_260_302
