"""The emits of a micro-batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from ids.model.table import Kind
from ids.plan import SelectPlan
from ids.spark.evaluating import output_fields
from ids.spark.frames import Frame

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ids.spark.typed import Typed

__all__ = ["Emits", "emit_schema"]

_FEW = 10_000
_UTC = pa.timestamp("us", "UTC")
_TYPES = {"bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}


class Emits(NamedTuple):
    """Emits that Spark will work out, each for the only time.

    data    every partition in order
    schema  keys, ``emit_at``, ``n``, then the items
    order   what the partitions together are to be sorted by; empty if they are in order
    most    how many there may be; None: nobody knows
    """

    data: DataFrame
    schema: pa.Schema
    order: tuple[Column, ...] = ()
    most: int | None = None

    @property
    def few(self) -> bool:
        """Whether they may come to this process."""
        return self.most is not None and self.most <= _FEW

    def ordered(self) -> DataFrame:
        """All of them in order; in one partition where it takes a sort.

        To sort several, Spark would look at a sample first, and work everything out twice.
        """
        if not self.order:
            return self.data
        return self.data.repartition(1).sortWithinPartitions(*self.order)

    def fetched(self) -> pa.Table:
        """All of them in this process, in order."""
        return self.ordered().toArrow().cast(self.schema)


def emit_schema(plan: SelectPlan, frame: Frame) -> pa.Schema:
    """Keys, ``emit_at``, ``n``, then the items."""
    keys = [(name, frame.columns[name]) for name in plan.partition_by]
    own = [(name, _arrow_type(typed)) for name, typed in keys]
    items = to_arrow_schema(T.StructType(output_fields(plan)))
    return pa.schema([*own, ("emit_at", _UTC), ("n", pa.int64()), *items])


def _arrow_type(typed: Typed) -> pa.DataType:
    return _UTC if typed.kind is Kind.TIME else _TYPES.get(typed.type, pa.bool_())
