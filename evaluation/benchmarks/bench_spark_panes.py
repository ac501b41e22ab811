"""Exact pane sums on Spark, next to a plain drill-down and to a pandas UDF

20 million Parquet rows, panes of a minute, two cores. The drill-down is what a user would write by
hand, ``groupBy(pane, the referenced columns)`` with count, sum and sum of squares in doubles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from evaluation.baselines.spark_groupby import drill_down, pandas_udf_panes
from evaluation.benchmarks.record import markdown, measure, write
from evaluation.benchmarks.spark_data import ENDPOINTS, REGIONS, TIERS, requests, session
from evaluation.sessions import to_nowhere
from ids.plan import planned
from ids.spark.batch import fit_parts
from ids.spark.cells import cells_of, wordy_columns
from ids.spark.frames import Frame
from ids.spark.panes import Layout, atoms
from ids.spark.rows import ready, survey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ids.exact import Parts

__all__ = ["main"]

ROWS = 20_000_000
SLIDE = "1 minute"


def conditions(k: int) -> list[tuple[str, str]]:
    """K equalities over the three columns, as a drill-down by all of them would need."""
    regions, tiers, endpoints = {4: (2, 1, 1), 16: (4, 2, 10), 64: (8, 3, 50)}[k]
    words = [("region", w) for w in REGIONS[:regions]] + [("tier", w) for w in TIERS[:tiers]]
    return (words + [("endpoint", w) for w in ENDPOINTS[:endpoints]])[:k]


class Exact:
    """The (pane, cell) table of a VAR_POP query with K predicates, as a batch makes it."""

    def __init__(self, rows: DataFrame, k: int) -> None:
        items = ", ".join(
            f"SHAPLEY_ATTRIBUTE(VAR_POP(latency), {name} = '{word}')"
            for name, word in conditions(k)
        )
        window = (
            "ORDER BY event_time RANGE INTERVAL '10' MINUTE PRECEDING SLIDE INTERVAL '1' MINUTE"
        )
        script = f"SELECT {items} FROM events WINDOW w AS ({window}) EMIT CHANGES"
        frame = Frame.of(rows)
        plan = next(planned(script, lambda _: frame.schema)).plan
        assert plan is not None
        self.plan, self.rows = plan, ready(plan, frame)
        self.rows = replace(self.rows, present=survey(plan, self.rows).present)
        self.layout = Layout.of(plan, self.fit())
        self.cells = cells_of(
            plan.predicates, frame.columns, wordy_columns(plan.predicates, frame.columns)
        )

    def fit(self) -> list[Parts]:
        """How far the values reach: one pass more over the rows."""
        return fit_parts(self.plan, self.rows, survey(self.plan, self.rows))

    def table(self) -> DataFrame:
        """Exact sums by pane and cell."""
        return atoms(self.plan, self.rows, self.cells, self.layout)


def main() -> None:
    """Measure, keep, show."""
    spark = session()
    rows = requests(spark, ROWS)
    for k in (4, 16, 64):
        columns = list(dict.fromkeys(name for name, _ in conditions(k)))
        exact = Exact(rows, k)
        contenders: dict[str, Callable[[], object]] = {
            "plain drill-down": partial(to_nowhere, drill_down(rows, columns, SLIDE)),
            "exact panes": partial(to_nowhere, exact.table()),
            "the survey before them": exact.fit,
            "panes with a pandas UDF": partial(
                to_nowhere, pandas_udf_panes(rows, conditions(k), SLIDE)
            ),
        }
        record = measure(f"spark_panes_{k}", contenders, rows=ROWS, repetitions=2, predicates=k)
        print(markdown(record))
        write(record)
