"""Rows that come late: placed where they belong, or dropped, counted and reported."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import ids
from evaluation.bench import Bench
from evaluation.beyond.arriving import arrive, pieces, take_in
from evaluation.beyond.bits import settled
from evaluation.beyond.digest import digest
from evaluation.sessions import CORES, session
from evaluation.size import Size
from evaluation.step import Findings, Row, Step
from evaluation.subject import SUBJECTS

__all__ = ["Delivery", "deliver", "late_by_batch", "late_by_row", "steps"]

Times = npt.NDArray[np.int64]
Late = npt.NDArray[np.bool_]

_MINUTE = 60_000_000
_SHARE = 0.1
_DELAY = 5  # minutes
_PREDICATE = "region = 'EU-West'"
_SCRIPT = f"""
    SELECT AVG(latency) AS average,
           SHAPLEY_ATTRIBUTE(AVG(latency), {_PREDICATE} WITH (SHARE, LIFT)) AS west,
           SHAPLEY_ATTRIBUTE(VAR_POP(latency), region = 'EU-West' AND tier = 'premium') AS premium
    FROM events WINDOW w AS (
        ORDER BY event_time RANGE INTERVAL '10' MINUTE PRECEDING SLIDE INTERVAL '1' MINUTE)
    EMIT CHANGES
"""


@dataclass(frozen=True)
class Delivery:
    """Rows in the order in which they come, ``late`` of them after a row of a later event time."""

    rows: pa.Table
    late: int


def steps(size: Size) -> list[Step]:
    """One in process, and one on Spark for each lateness that is allowed."""
    allowed: tuple[int, ...] = size.of(quick=(_DELAY, 1), full=(_DELAY, 2, 0))
    engine = Step(
        "beyond-late-engine",
        "late rows in process",
        size.of(quick=0.2, full=0.7),
        partial(_in_process, allowed),
        ("synthetic",),
    )
    streams = [
        Step(
            f"beyond-late-stream-{minutes}",
            f"late rows on a stream, {minutes} min allowed",
            size.of(quick=3.0, full=10.0),
            partial(_on_stream, minutes),
            ("synthetic",),
        )
        for minutes in allowed
    ]
    return [engine, *streams]


def deliver(table: pa.Table, share: float, delay: int, rng: np.random.Generator) -> Delivery:
    """A share of the rows comes up to ``delay`` microseconds after its event time."""
    times = _times(table)
    wait = np.where(rng.random(len(times)) < share, rng.integers(1, delay + 1, len(times)), 0)
    order = np.argsort(times + wait, kind="stable")
    came = times[order]
    behind = came < np.maximum.accumulate(came)
    return Delivery(table.take(order), int(behind.sum()))


def late_by_row(times: Times, lateness: int) -> Late:
    """Which rows are too late by the engine's rule, one row after the other."""
    late, newest = np.zeros(len(times), np.bool_), int(times[0])
    for place, time in enumerate(times.tolist()):
        late[place] = time < newest - lateness
        newest = max(newest, time)
    return late


def late_by_batch(batches: list[Times], lateness: int) -> Late:
    """Which rows are too late by a stream's rule: against the watermark their batch began with."""
    late, newest = [], None
    for times in batches:
        watermark = -(2**62) if newest is None else newest - lateness
        late += [time < watermark for time in times.tolist()]
        newest = max(times.tolist() if newest is None else [newest, *times.tolist()])
    return np.array(late, np.bool_)


def _on_stream(minutes: int, bench: Bench) -> Findings:
    table, delivery, files = _delivered(bench)
    folder = arrive(delivery.rows, bench.scratch / "arriving", files)
    lateness = minutes * _MINUTE
    late = late_by_batch([_times(piece) for piece in pieces(delivery.rows, files)], lateness)
    with session(CORES) as spark:
        checkpoint = bench.scratch / "checkpoint"
        running = take_in(spark, _SCRIPT, folder, checkpoint, lateness=f"{minutes} minutes")
        emits, totals = running.table(), running.progress().totals
    watermark = pa.scalar(int(_times(table).max()) - lateness, table.schema.field(0).type)
    whole = settled(ids.sql(_SCRIPT, events=table), watermark)
    kept = settled(ids.sql(_SCRIPT, events=delivery.rows.filter(pa.array(~late))), watermark)
    return _found("stream", minutes, delivery, {
        "dropped": totals.late, "expected": int(late.sum()), "answers": emits.num_rows,
        "like_batch": digest(emits) == digest(whole), "like_kept": digest(emits) == digest(kept),
    })  # fmt: skip


def _in_process(allowed: tuple[int, ...], bench: Bench) -> Findings:
    table, delivery, batches = _delivered(bench)
    whole = _engine(0)
    whole.ingest(table)
    found: list[Row] = []
    for done, minutes in enumerate(allowed):
        late = late_by_row(_times(delivery.rows), minutes * _MINUTE)
        engine, alike, end = _engine(minutes), True, 0
        for piece in pieces(delivery.rows, batches):
            engine.ingest(piece)
            end += piece.num_rows
            sound = delivery.rows.slice(0, end).filter(pa.array(~late[:end]))
            ordered = _engine(0)
            ordered.ingest(sound.sort_by("event_time"))
            alike &= _answers(engine) == _answers(ordered)
        found += _found("engine", minutes, delivery, {
            "dropped": engine.late_rows, "expected": int(late.sum()), "answers": batches,
            "like_batch": _answers(engine) == _answers(whole), "like_kept": alike,
        })["beyond_late"]  # fmt: skip
        bench.said((done + 1) / len(allowed))
    return {"beyond_late": found}


def _engine(minutes: int) -> ids.Engine:
    engine = ids.Engine(
        window=ids.TimeWindow("10 minutes", "1 minute"),
        value="latency",
        order_by="event_time",
        lateness=f"{minutes} minutes",
    )
    engine.register("west", _PREDICATE)
    return engine


def _answers(engine: ids.Engine) -> list[Any]:
    """What the window says now; doubles are compared as they are."""
    asked = [engine.attribute(game, "west") for game in ("AVG", "VAR_POP")]
    return [engine.rows, *((one.value, one.share, one.lift) for one in asked)]


def _delivered(bench: Bench) -> tuple[pa.Table, Delivery, int]:
    """The rows in order, the rows as they come, and in how many parts they do."""
    rows, parts = bench.size.of(quick=(20_000, 3), full=(100_000, 10))
    table = bench.events(SUBJECTS["synthetic"], rows)
    return table, deliver(table, _SHARE, _DELAY * _MINUTE, bench.rng("late")), parts


def _found(way: str, minutes: int, delivery: Delivery, facts: dict[str, Any]) -> Findings:
    row = {"way": way, "delay_minutes": _DELAY, "allowed_minutes": minutes}
    came = {"rows": delivery.rows.num_rows, "late": delivery.late}
    return {"beyond_late": [{**row, **came, **facts}]}


def _times(table: pa.Table) -> Times:
    times: Times = pc.cast(table["event_time"], pa.int64()).to_numpy()
    return times
