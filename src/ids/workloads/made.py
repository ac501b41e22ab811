"""What a workload's job hands over to be written."""

from __future__ import annotations

from typing import Any, NamedTuple

from pyspark.sql import DataFrame

__all__ = ["Made"]


class Made(NamedTuple):
    """The events, a partition for each file and in order, and what is known to be true of them."""

    events: DataFrame
    truth: dict[str, Any] | None
