"""A stream's emits as messages of a Kafka topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ids.spark.failures import translated
from ids.spark.sinks import messages
from ids.spark.topic import Topic

__all__ = ["KafkaTopic"]

Facts = dict[str, Any]


class KafkaTopic:
    """Emits as messages: at least once, in order, with the headers ``ids_batch``, ``ids_row``."""

    def __init__(self, place: str, session: SparkSession, keys: Sequence[str]) -> None:
        self._topic, self._session, self._keys = Topic.parse(place), session, keys
        self.name = place

    def check(self) -> None: ...

    def rewind(self, number: int | None, facts: Facts) -> None: ...

    def write(self, emits: pa.Table, number: int, facts: Facts) -> Facts:
        if not emits.num_rows:
            return facts
        with translated():
            # one partition: its rows are counted, and sent, in their order
            rows = messages(self._session.createDataFrame(emits).coalesce(1), self._keys)
            headers = (
                f"array(named_struct('key', 'ids_batch', 'value', encode('{number}', 'UTF-8')), "
                "named_struct('key', 'ids_row', 'value', "
                "encode(cast(monotonically_increasing_id() as string), 'UTF-8')))"
            )
            (
                rows.withColumn("headers", F.expr(headers))
                .write.format("kafka")
                .option("kafka.bootstrap.servers", self._topic.servers)
                .option("topic", self._topic.name)
                .options(**self._topic.options)
                .save()
            )
        return facts
