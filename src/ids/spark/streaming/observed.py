"""A batch's counts in the progress of Spark's own query, for whatever listens to that.

Spark reports what its plan has observed, row by row. Ours is known when a batch is done: the plan
observes nothing under our names, and what it would report of them is replaced then.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import functions as F
from pyspark.sql import types as T

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["NAME", "Observed", "Reporter"]

NAME = "ids"

_QUERY = "sql.streaming.queryId"  # where Spark notes which query a thread works for


class Observed(NamedTuple):
    """What a batch gave: of its rows how many were late, bad and ahead; and where it has led.

    watermark  µs; None before the first row
    """

    rows: int
    late: int
    bad: int
    ahead: int
    emits: int
    state_rows: int
    state_bytes: int
    state_files: int
    watermark: int | None


class Reporter:
    """Puts what a batch gave into the progress of its query."""

    def __init__(self) -> None:
        longs = [T.StructField(name, T.LongType()) for name in Observed._fields[:-1]]
        self._schema = T.StructType([*longs, T.StructField("watermark", T.TimestampType())])
        self._session: Any = None
        self._held: Any = None

    def watched(self, data: DataFrame) -> DataFrame:
        """A streaming DataFrame whose progress has a place for it."""
        self._session = data.sparkSession
        # an aggregate that Spark knows beforehand: it costs a row nothing
        *nothing, watermark = (F.expr("count(NULL)").alias(name) for name in Observed._fields)
        return data.observe(NAME, *nothing, F.timestamp_micros(watermark).alias("watermark"))

    def report(self, seen: Observed) -> None:
        """Tell it; called in the thread of the batch.

        It reaches into Spark: where another version has it otherwise, nothing is told.
        """
        with suppress(Py4JError, AttributeError, TypeError):
            node = self._node()
            field = node.getClass().getDeclaredField("accumulator")
            field.setAccessible(True)
            field.set(node, self._filled(field, seen))

    def _node(self) -> Any:
        """Where the plan of the batch at work observes what is ours."""
        query_id = self._session.sparkContext.getLocalProperty(_QUERY)
        query = self._session._jsparkSession.streams().get(query_id)
        sql = self._session._jvm.org.apache.spark.sql
        helper = getattr(getattr(sql.execution, "CollectMetricsExec$"), "MODULE$")
        plans = [query.streamingQuery().lastExecution().executedPlan()]
        while plans:
            plan = plans.pop()
            if plan.nodeName() == "CollectMetrics" and plan.name() == NAME:
                return plan
            children = helper.allChildren(plan)
            plans += [children.apply(number) for number in range(children.size())]
        raise AttributeError(f"nothing observes {NAME}")

    def _filled(self, field: Any, seen: Observed) -> Any:
        """An accumulator of the same kind as that of the plan, with our values."""
        if self._held is None:
            columns = [F.max(name).alias(name) for name in self._schema.names]
            own = self._session.createDataFrame([], self._schema).observe(NAME, *columns)
            plan = own._jdf.queryExecution().executedPlan()
            plan.accumulatorId()  # it is made when first asked for
            self._held = field.get(plan), own._jdf.schema()
        accumulator, schema = self._held
        catalyst = self._session._jvm.org.apache.spark.sql.catalyst
        row = catalyst.expressions.SpecificInternalRow(schema)
        for number, value in enumerate(seen):
            if value is None:
                row.setNullAt(number)
            else:
                row.setLong(number, value)
        accumulator.reset()
        accumulator.add(row)
        return accumulator
