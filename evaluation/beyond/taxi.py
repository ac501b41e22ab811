"""The real months of taxi trips: both ways, checked, and what they say of the average fare."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import ids
from evaluation.bench import Bench
from evaluation.beyond.digest import digest
from evaluation.beyond.stretches import NAMES
from evaluation.repeated import in_turns
from evaluation.sessions import CORES, session
from evaluation.size import Size
from evaluation.step import Findings, Row, Step
from evaluation.subject import SUBJECTS
from evaluation.values import equality, literal, plain, where
from evaluation.workloads.manifest import EVENTS
from tests.oracles.stretches import Stretches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["steps", "whole_days"]

_BOROUGHS, _ELSEWHERE = NAMES[:-1], NAMES[-1]
_DAYS = 7
_BUSY = 100  # trips of a day at least; stray clocks leave one or two
_NAMES = ", ".join(map(literal, _BOROUGHS))
_CONDITIONS = {
    **{borough: equality("borough", borough) for borough in _BOROUGHS},
    _ELSEWHERE: f"borough NOT IN ({_NAMES})",
}
_ITEMS = ", ".join(
    f"SHAPLEY_ATTRIBUTE(AVG(fare_amount), {condition}) AS {name.lower()}"
    for name, condition in _CONDITIONS.items()
)
_SCRIPT = f"""
    SELECT AVG(fare_amount) AS average, VAR_POP(fare_amount) AS variance, {_ITEMS}
    FROM trips WINDOW w AS (
        ORDER BY event_time RANGE INTERVAL '{_DAYS}' DAY PRECEDING SLIDE INTERVAL '1' HOUR)
    EMIT CHANGES
"""


def steps(size: Size) -> list[Step]:
    """One: all months that were given."""
    about = size.of(quick=12.0, full=25.0)
    return [Step("beyond-taxi", "the months of taxi trips", about, _drive, ("nyc",))]


def _drive(bench: Bench) -> Findings:
    place = bench.library.place("nyc") / EVENTS
    trips = bench.events(SUBJECTS["nyc"])
    emits: dict[str, pa.Table] = {}
    with session(CORES) as spark:
        contenders: dict[str, Callable[[], object]] = {
            "Spark": lambda: emits.update({"Spark": _on_spark(spark, place)}),
            "in process": lambda: emits.update({"in process": ids.sql(_SCRIPT, trips=place)}),
        }
        spent = in_turns(contenders, bench.size.repetitions)
    bench.said(0.8)
    here, alike = emits["in process"], len({digest(one) for one in emits.values()}) == 1
    checked, worst = _checked(here, trips, bench.size.of(quick=4, full=12))
    months = pc.count_distinct(
        pc.strftime(trips["event_time"], "%Y-%m").filter(_on_busy_days(trips))
    )
    facts = {"trips": trips.num_rows, "months": months.as_py(), "emits": here.num_rows}
    found = {"alike": alike, "checked": checked, "worst": worst}
    runs = [{"way": way, **facts, **found, "seconds": seconds} for way, seconds in spent.items()]
    return {"beyond_taxi": runs, "beyond_taxi_days": _days(here, trips)}


def _on_spark(spark: SparkSession, place: Path) -> pa.Table:
    from ids.spark.sources import read

    return ids.spark.sql(_SCRIPT, trips=read(spark, place)).toArrow()


def whole_days(trips: pa.Table) -> set[datetime]:
    """The midnights before which every one of the window's days has trips."""
    busy = _busy_days(trips)
    day = timedelta(days=1)
    return {end + day for end in busy if all(end - k * day in busy for k in range(_DAYS))}


def _busy_days(trips: pa.Table) -> set[datetime]:
    counts = pc.value_counts(pc.floor_temporal(trips["event_time"], unit="day")).to_pylist()
    return {one["values"] for one in counts if one["counts"] >= _BUSY}


def _on_busy_days(trips: pa.Table) -> pa.Array:
    days = pc.floor_temporal(trips["event_time"], unit="day")
    busy = pa.array(sorted(_busy_days(trips)), days.type)
    return pc.is_in(days, value_set=busy)


def _days(emits: pa.Table, trips: pa.Table) -> list[Row]:
    """A row for each midnight whose week is whole: the average, and its parts by borough."""
    wanted = whole_days(trips)
    names = ["n", "average", *(name.lower() for name in _CONDITIONS)]
    return [
        {"day": f"{(row['emit_at'] - timedelta(days=1)):%Y-%m-%d}"} | {n: row[n] for n in names}
        for row in emits.to_pylist()
        if row["emit_at"] in wanted
    ]


def _checked(emits: pa.Table, trips: pa.Table, count: int) -> tuple[int, float]:
    """So many windows recomputed in fractions: how many numbers, and the worst deviation.

    A deviation is relative to the aggregate that is attributed.
    """
    worst, numbers = 0.0, 0
    rows = emits.num_rows
    for place in range(count):
        emit = emits.slice((2 * place + 1) * rows // (2 * count), 1).to_pylist()[0]
        exact = _exact(trips, emit["emit_at"])
        for name, value in exact.items():
            scale = exact["variance" if name == "variance" else "average"]
            gap = abs(Fraction(emit[name]) - value) / (abs(scale) or 1)
            worst, numbers = max(worst, float(gap)), numbers + 1
    return numbers, worst


def _exact(trips: pa.Table, end: datetime) -> dict[str, Any]:
    """One window's numbers from its trips alone."""
    times, kind = trips["event_time"], trips.schema.field("event_time").type
    begin = pa.scalar(end.astimezone(UTC) - timedelta(days=_DAYS), kind)
    window = trips.filter(
        pc.and_(pc.greater(times, begin), pc.less_equal(times, pa.scalar(end, kind)))
    )
    inside = {name: where(plain(window["borough"]), name) for name in _BOROUGHS}
    inside[_ELSEWHERE] = ~np.logical_or.reduce(list(inside.values()))
    truth, rows = Stretches(window["fare_amount"].to_numpy(), inside), window.num_rows
    return {
        "average": truth.aggregate("AVG", 0, rows),
        "variance": truth.aggregate("VAR_POP", 0, rows),
        **{name.lower(): truth.attribution("AVG", name, 0, rows) for name in _CONDITIONS},
    }
