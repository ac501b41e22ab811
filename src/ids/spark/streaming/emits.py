"""The columns of a stream's emits."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from ids.model.table import Kind
from ids.plan import SelectPlan
from ids.spark.evaluating import output_fields
from ids.spark.frames import Frame
from ids.spark.streaming.collecting import arrow_type

__all__ = ["emit_schema"]

_UTC = pa.timestamp("us", "UTC")


def emit_schema(plan: SelectPlan, frame: Frame) -> pa.Schema:
    """Keys, ``emit_at``, ``n``, then the items."""
    keys = [(name, frame.columns[name]) for name in plan.partition_by]
    own = [(n, _UTC if typed.kind is Kind.TIME else arrow_type(typed)) for n, typed in keys]
    items = to_arrow_schema(T.StructType(output_fields(plan)))
    return pa.schema([*own, ("emit_at", _UTC), ("n", pa.int64()), *items])
