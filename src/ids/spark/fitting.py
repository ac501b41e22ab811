"""The scale of each measure, chosen once for all tasks, as for a column in process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ids.model.scale import DIGIT_BITS, Scale
from ids.plan import SelectPlan
from ids.spark.mapping import mapped
from ids.spark.rows import measure
from ids.state.scaling import fit, lowest_bit, reach_bits, spans

__all__ = ["Fitted", "Reach", "fit_scales"]

Reach = tuple[float, float]

_LOWEST = "ids_lowest"


class Fitted(NamedTuple):
    """A scale, and an exponent that the last bit of any value is at or above.

    scale  None where values lie too far apart for one
    """

    scale: Scale | None
    lowest: int | None


def fit_scales(
    plan: SelectPlan,
    rows: DataFrame,
    reaches: Sequence[Reach | None],
    known: Sequence[int | None] | None = None,
) -> list[Fitted]:
    """A scale for each measure.

    rows     sound rows with their measures
    reaches  (largest, smallest but 0) magnitude of each measure; None: nothing but 0
    known    of rows that came before these, what ``Fitted.lowest`` was
    """
    before = known or [None] * len(reaches)
    pairs = zip(reaches, before, strict=True)
    return [_fitted(plan, rows, number, *pair) for number, pair in enumerate(pairs)]


def _fitted(
    plan: SelectPlan, rows: DataFrame, number: int, reach: Reach | None, known: int | None
) -> Fitted:
    degree = plan.degrees[number]
    if plan.measures[number] is None or degree == 0:
        return Fitted(Scale(0, 0, 0), None)
    largest, smallest = reach or (0.0, 0.0)
    exponent, lowest = reach_bits(largest, smallest)
    if exponent - lowest > 2 * DIGIT_BITS:
        # round numbers need fewer digits than they might
        found = _lowest(rows, number)
        lowest = found if known is None else min(found, known)
    if not spans(exponent, lowest, degree):
        return Fitted(None, lowest)
    return Fitted(fit(np.zeros(0), largest, degree, lowest=lowest), lowest)


def _lowest(rows: DataFrame, number: int) -> int:
    """The exponent of the last bit set in any value: one pass."""
    values = rows.selectExpr(f"cast({measure(number)} as double) AS x")
    found = mapped(values, _lowest_bits, f"{_LOWEST} int").agg(F.min(_LOWEST)).first()
    assert found is not None
    return found[0] or 0


def _lowest_bits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        values = batch.column(0).drop_null().to_numpy(zero_copy_only=False)
        if values.any():
            lowest = pa.array([lowest_bit(values)], pa.int32())
            yield pa.RecordBatch.from_arrays([lowest], [_LOWEST])
