"""What a user would write by hand on Spark: a drill-down, a pandas UDF, a window function."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf


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
    """The same job with the predicates' signature, a bit each, worked out by a pandas UDF."""
    names = list(dict.fromkeys(name for name, _ in conditions))

    def signature(batches: Iterator[tuple[pd.Series, ...]]) -> Iterator[pd.Series]:
        for batch in batches:
            by_name = dict(zip(names, batch, strict=True))
            bits = np.zeros(len(batch[0]), np.int64)
            for place, (name, word) in enumerate(conditions):
                bits |= by_name[name].eq(word).to_numpy().astype(np.int64) << place
            yield pd.Series(bits)

    signed = rows.withColumn("signature", pandas_udf(signature, "long")(*names))  # type: ignore[call-overload]
    return drill_down(signed, ["signature"], slide)


def rows_window(rows: DataFrame, size: int, regions: Sequence[str]) -> DataFrame:
    """Count, sum and sum of squares over the last ``size`` rows, of all and of each region."""
    frame = Window.orderBy("event_time").rowsBetween(-size + 1, 0)
    sums = []
    for k, region in enumerate([None, *regions]):
        latency = F.col("latency")
        value = latency if region is None else F.when(F.col("region") == region, latency)
        for name, one in (("n", F.count(value)), ("a", F.sum(value)), ("b", F.sum(value * value))):
            sums.append(one.over(frame).alias(f"{name}{k}"))
    return rows.select("event_time", *sums)
