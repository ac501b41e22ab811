"""The same bits, however the rows are cut: partitions, files, order, micro-batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import ids
from evaluation.bench import Bench
from evaluation.beyond.arriving import arrive, take_in
from evaluation.beyond.digest import digest
from evaluation.sessions import CORES, session
from evaluation.size import Size
from evaluation.step import Findings, Row, Step
from evaluation.subject import SUBJECTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["contrast", "settled", "steps"]

_ITEMS = """
    AVG(latency) AS average, VAR_POP(latency) AS variance,
    SHAPLEY_ATTRIBUTE(AVG(latency), region = 'EU-West' WITH (SHARE, LIFT)) AS west,
    SHAPLEY_ATTRIBUTE(VAR_POP(latency), region = 'EU-West' AND tier = 'premium') AS premium,
    SHAPLEY_DELTA(SUM(latency), tier = 'premium') AS moved
"""
# Two rows of one instant are told apart by their number, or their order would be the input's.
_FRAMES = {
    "time": "ORDER BY event_time RANGE INTERVAL '10' MINUTE PRECEDING SLIDE INTERVAL '1' MINUTE",
    "count": "ORDER BY event_time, row ROWS 10000 PRECEDING SLIDE 500 ROWS",
}
_SCRIPTS = {
    window: f"SELECT {_ITEMS} FROM events WINDOW w AS ({frame}) EMIT CHANGES"
    for window, frame in _FRAMES.items()
}
_ONCE = (("synthetic", "time"), ("stress", "count"))
"""Each workload once, each window once: a quick run, and where plain sums are looked at."""


def steps(size: Size) -> list[Step]:
    """One for each workload and window; a quick run has each of them once."""
    cases = size.of(
        quick=list(_ONCE),
        full=[(work, window) for work in ("synthetic", "stress") for window in _FRAMES],
    )
    return [
        Step(
            f"beyond-bits-{workload}-{window}",
            f"{workload}, {window} window: the same bits",
            size.of(quick=10.0, full=25.0),
            partial(_compare, workload, window),
            (workload,),
        )
        for workload, window in cases
    ]


def settled(emits: pa.Table, last: pa.Scalar) -> pa.Table:
    """The emits before the last event time: those that a stream has answered, too."""
    return emits.filter(pc.less(emits["emit_at"], last))


def _compare(workload: str, window: str, bench: Bench) -> Findings:
    rows = bench.size.of(quick=20_000, full=200_000)
    table = bench.events(SUBJECTS[workload], rows)
    table = table.append_column("row", pa.array(np.arange(table.num_rows)))
    shuffled = table.take(bench.rng(f"bits {workload}").permutation(table.num_rows))
    ordered = arrive(table, bench.scratch / "ordered", 7)
    muddled = arrive(shuffled, bench.scratch / "muddled", 3)
    last = pc.max(table["event_time"])
    found: list[Row] = []
    plain: list[Row] = []
    with session(CORES) as spark:
        ways = dict(_ways(bench, spark, _SCRIPTS[window], ordered, muddled))
        for number, (way, answer) in enumerate(ways.items()):
            emits = settled(answer(), last)
            facts = {"workload": workload, "window": window, "way": way}
            found.append({**facts, "emits": emits.num_rows, "digest": digest(emits)})
            bench.said((number + 1) / (len(ways) + 1))
        if (workload, window) in _ONCE:
            frames = _frames(bench.size, spark, ordered, muddled)
            plain = contrast(workload, [_plain_sums(frame) for frame in frames.values()])
    return {"beyond_bits": found, "beyond_plain": plain}


def _ways(
    bench: Bench, spark: SparkSession, script: str, ordered: Path, muddled: Path
) -> Iterator[tuple[str, Callable[[], pa.Table]]]:
    """Every way to run the script over the same rows, in process first."""
    yield "in process", lambda: ids.sql(script, events=ordered)
    yield "in process, rows shuffled", lambda: ids.sql(script, events=muddled)
    for way, frame in _frames(bench.size, spark, ordered, muddled).items():
        yield f"Spark, {way}", partial(_on_spark, script, frame)
    counts: tuple[int, ...] = bench.size.of(quick=(4,), full=(1, 3))
    for files in counts:
        way = f"stream, {files} file{'s' * (files > 1)} a micro-batch"
        yield way, partial(_streamed, spark, script, ordered, bench.scratch / way, files)


def _streamed(spark: SparkSession, script: str, folder: Path, place: Path, files: int) -> pa.Table:
    return take_in(spark, script, folder, place, files).table()


def _frames(size: Size, spark: SparkSession, ordered: Path, muddled: Path) -> dict[str, DataFrame]:
    """The same rows in different partitions, files and orders."""
    from ids.spark.sources import read

    rows = read(spark, ordered)
    counts: tuple[int, ...] = size.of(quick=(7,), full=(1, 2, 3, 7, 16))
    named = {f"{count} partition{'s' * (count > 1)}": rows.repartition(count) for count in counts}
    return {"7 files": rows, **named, "3 files, rows shuffled": read(spark, muddled)}


def _on_spark(script: str, frame: DataFrame) -> pa.Table:
    return ids.spark.sql(script, events=frame).toArrow()


def _plain_sums(frame: DataFrame) -> pa.Table:
    """Spark's own aggregates of doubles, over windows of ten minutes that do not overlap."""
    from pyspark.sql import functions as F

    window = F.window("event_time", "10 minutes")["start"].alias("start")
    computed = {"SUM": F.sum("latency"), "AVG": F.avg("latency"), "VAR_POP": F.var_pop("latency")}
    aggregates = [column.alias(name) for name, column in computed.items()]
    return frame.groupBy(window).agg(*aggregates).orderBy("start").toArrow()


def contrast(workload: str, ways: Sequence[pa.Table]) -> list[Row]:
    """How many different tables plain sums give, and how far apart at most, relatively."""
    found: list[Row] = []
    for name in ways[0].column_names[1:]:
        values = np.array([way[name].to_numpy() for way in ways])
        apart = (values.max(axis=0) - values.min(axis=0)) / np.abs(values).max(axis=0)
        digests = {digest(way.select([name])) for way in ways}
        facts = {"workload": workload, "aggregate": name, "ways": len(ways)}
        found.append({**facts, "distinct": len(digests), "spread": float(apart.max())})
    return found
