"""What a user would write by hand on Spark: a drill-down, a pandas UDF, a window function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

__all__ = ["drill_down", "pandas_udf_panes", "rows_window"]


def drill_down(rows: DataFrame, columns: Sequence[str], slide: str) -> DataFrame:
    """Counts, sums and sums of squares by pane and the referenced columns, in doubles."""
    pane = F.window("event_time", slide)
    return rows.groupBy(pane, *columns).agg(
        F.count("*").alias("n"),
        F.sum("latency").alias("total"),
        F.sum(F.col("latency") * F.col("latency")).alias("squares"),
    )


def pandas_udf_panes(
    rows: DataFrame, conditions: Sequence[tuple[str, str]], slide: str
) -> DataFrame:
    """The same job with the predicates' signature worked out by a pandas UDF."""

    @pandas_udf("string")  # type: ignore[call-overload,untyped-decorator]
    def signature(batches: Iterator[tuple[pd.Series, ...]]) -> Iterator[pd.Series]:
        for batch in batches:
            by_name = dict(zip(names, batch, strict=True))
            bits = [
                by_name[name].eq(word).map({True: "1", False: "0"}) for name, word in conditions
            ]
            yield sum(bits[1:], start=bits[0])

    names = list(dict.fromkeys(name for name, _ in conditions))
    signed = rows.withColumn("signature", signature(*names))
    return drill_down(signed, ["signature"], slide)


def rows_window(rows: DataFrame, size: int) -> DataFrame:
    """AVG over the last ``size`` rows and its part by one predicate, by Spark's own window."""
    frame = Window.orderBy("event_time").rowsBetween(-size + 1, 0)
    eu = F.when(F.col("region") == "region-1", F.col("latency"))
    return rows.select(
        "event_time",
        F.avg("latency").over(frame).alias("average"),
        F.sum(eu).over(frame).alias("eu_total"),
        F.count(eu).over(frame).alias("eu_rows"),
    )
