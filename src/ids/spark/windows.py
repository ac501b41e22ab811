"""Windows over panes, in batch: a slide adds the pane that comes and takes back the one that goes.

Cost per pane does not depend on the window's length: sums run on, signed, and are exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ids.model.window import TimeWindow
from ids.spark.panes import COUNT, PANE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["INSTANT", "windows"]

INSTANT = "ids_i"


def windows(
    window: TimeWindow, table: DataFrame, keys: list[str], sums: list[str], final: int
) -> DataFrame:
    """Sums of the window at every instant (in slides) whose window is not empty, up to ``final``.

    ``table`` is a pane table; INSTANT takes the place of PANE.
    """
    assert window.slide is not None
    width = window.duration // window.slide
    if width == 1:
        return table.withColumnRenamed(PANE, INSTANT)
    leaving = table.selectExpr(
        *keys, f"{PANE} + {width}L AS {PANE}", *(f"(- {s}) AS {s}" for s in sums)
    )
    deltas = (
        table.select(*keys, PANE, *sums)
        .unionAll(leaving)
        .groupBy(*keys, PANE)
        .agg(*(F.sum(s).alias(s) for s in sums))
    )
    partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
    ordered = f"{partition}ORDER BY {PANE}"
    so_far = f"{ordered} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    standing = deltas.selectExpr(
        *keys,
        PANE,
        *(f"sum({s}) OVER ({so_far}) AS {s}" for s in sums),
        f"lead({PANE}) OVER ({ordered}) AS ids_next",
    ).filter(F.col(COUNT) > 0)
    until = F.least(F.col("ids_next") - 1, F.lit(final))
    spoken = standing.filter(F.col(PANE) <= until)
    return spoken.select(*keys, F.explode(F.sequence(F.col(PANE), until)).alias(INSTANT), *sums)
