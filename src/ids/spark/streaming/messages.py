"""A stream's emits as messages of a Kafka topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import functions as F

from ids.spark.failures import translated
from ids.spark.sinks import messages, send
from ids.spark.streaming.emits import Emits
from ids.spark.topic import Topic

__all__ = ["KafkaTopic"]

Facts = dict[str, Any]


class KafkaTopic:
    """Emits as messages: at least once, in order, with the headers ``ids_batch``, ``ids_row``."""

    fixed = False
    place: str | None = None

    def __init__(self, place: str, keys: Sequence[str]) -> None:
        self._topic, self._keys = Topic.parse(place), keys
        self.name = place

    def check(self) -> None: ...

    def rewind(self, number: int | None, facts: Facts) -> None: ...

    def write(self, emits: Emits, number: int, facts: Facts) -> tuple[int, Facts]:
        headers = (
            f"array(named_struct('key', 'ids_batch', 'value', encode('{number}', 'UTF-8')), "
            "named_struct('key', 'ids_row', 'value', "
            "encode(cast(monotonically_increasing_id() as string), 'UTF-8')))"
        )
        with translated():
            # one partition: its rows are counted, and sent, in their order
            rows = messages(emits.ordered().coalesce(1), self._keys)
            return send(rows.withColumn("headers", F.expr(headers)), self._topic), facts
