"""A watermark that a streaming DataFrame brings along: its delay is the lateness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ids.errors import ScriptError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ids.plan import SelectPlan
    from ids.spark.frames import Frame

__all__ = ["DELAY", "lateness_of", "watermarks_of"]

DELAY = "spark.watermarkDelayMs"  # where Spark itself notes it, in the metadata of the column

_REMEDY = "put withWatermark on the column of ORDER BY, or leave it out and give a lateness"


def watermarks_of(data: DataFrame) -> dict[str, int]:
    """The columns of a DataFrame that have a watermark, and the delay of each in milliseconds.

    The empty name stands for one whose column was dropped or changed since.
    """
    fields = data.schema.fields
    found = {field.name: int(field.metadata[DELAY]) for field in fields if DELAY in field.metadata}
    if found or not data.isStreaming or not hasattr(data, "_jdf"):
        return found
    return {"": 0} if _has_watermark(data._jdf.queryExecution().analyzed()) else {}


def _has_watermark(plan: Any) -> bool:
    """Whether a plan of Spark's holds a watermark anywhere."""
    children = plan.children()
    return plan.nodeName() == "EventTimeWatermark" or any(
        _has_watermark(children.apply(number)) for number in range(children.size())
    )


def lateness_of(plan: SelectPlan, frame: Frame, asked: int | None) -> int:
    """By how much a row may be late, µs: as asked, or else as the table's own watermark says."""
    if not frame.watermarks:
        return asked or 0
    column = plan.order_by[0]
    if column not in frame.watermarks:
        others = " and ".join(repr(name) for name in frame.watermarks if name)
        place = f"on {others}" if others else "on a column that was dropped or changed since"
        raise ScriptError(
            f"the watermark of {plan.table!r} is {place}, its window is ordered by {column!r}",
            hint=_REMEDY,
        )
    if asked is not None:
        raise ScriptError(
            f"table {plan.table!r} has a watermark of its own, and lateness is given as well",
            hint="leave out either",
        )
    return frame.watermarks[column] * 1_000
