"""A micro-batch made ready: its rows under the columns that were planned for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ids.plan import SelectPlan
from ids.spark.frames import Frame, Typed
from ids.spark.rows import Ready, ready

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["intake"]


def intake(plan: SelectPlan, columns: Mapping[str, Typed], data: DataFrame) -> Ready:
    """The rows of a micro-batch that pass WHERE, bad ones with their fault."""
    return ready(plan, Frame(data, dict(columns), {}))
