"""The real months of taxi trips: both ways, checked, and what they say of the average fare."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import ids
from evaluation.bench import CORES, Bench, session
from evaluation.beyond.bits import digest
from evaluation.beyond.queries import query
from evaluation.repeated import in_turns
from evaluation.step import SUBJECTS, Findings, Row, Size, Step
from evaluation.workloads.manifest import EVENTS
from tests.oracles.shapley import closed_form

_BOROUGHS = ("Manhattan", "Queens", "Brooklyn", "Bronx")


def steps(size: Size) -> list[Step]:
    """One: all months that were given."""
    about = size.of(quick=12.0, full=25.0)
    return [Step("beyond-taxi", "the months of taxi trips", about, _drive, ("nyc",))]


def _drive(bench: Bench) -> Findings:
    from ids.spark.sources import read

    place, trips = bench.library.place("nyc") / EVENTS, bench.events(SUBJECTS["nyc"])
    script, emits = query("taxi"), dict[str, pa.Table]()
    with session(CORES) as spark:
        contenders: dict[str, Callable[[], object]] = {
            "Spark": lambda: emits.update(
                spark=ids.spark.sql(script, trips=read(spark, place)).toArrow()
            ),
            "in process": lambda: emits.update(here=ids.sql(script, trips=place)),
        }
        spent = in_turns(contenders, bench.size.repetitions)
    bench.said(0.8)
    gaps = _gaps(emits["here"], trips, bench.size.of(quick=4, full=12))
    months, weeks = days(trips, emits["here"])
    facts: Row = {
        "trips": trips.num_rows,
        "months": months,
        "emits": emits["here"].num_rows,
        "alike": digest(emits["here"]) == digest(emits["spark"]),
        "checked": len(gaps),
        "worst": max(gaps),
    }
    runs = [{"way": way, **facts, "seconds": seconds} for way, seconds in spent.items()]
    return {"beyond_taxi": runs, "beyond_taxi_days": weeks}


def days(trips: pa.Table, emits: pa.Table) -> tuple[int, list[Row]]:
    """How many months have trips; and the average and its parts at midnights of a whole week."""
    naive, place = pa.timestamp("us"), emits.column_names.index("emit_at")
    with duckdb.connect() as duck:
        duck.register("trips", pa.table({"event_time": trips["event_time"].cast(naive)}))
        duck.register("emits", emits.set_column(place, "emit_at", emits["emit_at"].cast(naive)))
        duck.execute(f"CREATE TABLE busy AS {query('busy_days')}")
        months = duck.sql("SELECT count(DISTINCT strftime(day, '%Y-%m')) FROM busy").fetchall()
        return months[0][0], duck.sql(query("whole_weeks")).to_arrow_table().to_pylist()


def _gaps(emits: pa.Table, trips: pa.Table, count: int) -> list[float]:
    """The numbers of so many windows against fractions, relative to the aggregate attributed."""
    gaps = []
    for place in range(count):
        emit = emits.slice((2 * place + 1) * emits.num_rows // (2 * count), 1).to_pylist()[0]
        exact = _exact(trips, emit["emit_at"])
        for name, value in exact.items():
            scale = exact["variance" if name == "variance" else "average"]
            gaps.append(float(abs(Fraction(emit[name]) - value) / (abs(scale) or 1)))
    return gaps


def _exact(trips: pa.Table, end: datetime) -> dict[str, Fraction]:
    """One window's numbers from its trips alone; an aggregate is the attribution to all of them."""
    times, kind = trips["event_time"], trips.schema.field("event_time").type
    after = pc.greater(times, pa.scalar(end - timedelta(days=7), kind))
    window = trips.filter(pc.and_(after, pc.less_equal(times, pa.scalar(end, kind))))
    fares, borough = window["fare_amount"].to_pylist(), np.array(window["borough"].to_pylist())
    members = {name.lower(): np.flatnonzero(borough == name) for name in _BOROUGHS}
    members["elsewhere"] = np.flatnonzero(~np.isin(borough, _BOROUGHS))
    parts = {name: closed_form("AVG", fares, rows.tolist()) for name, rows in members.items()}
    every, whole = range(len(fares)), {"average": "AVG", "variance": "VAR_POP"}
    return {name: closed_form(game, fares, every) for name, game in whole.items()} | parts
