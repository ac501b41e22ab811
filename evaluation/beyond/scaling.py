"""How the pipeline on Spark scales: over cores, and over rows; in process beside it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

import pyarrow as pa
import pyarrow.parquet as pq

import ids
from evaluation.bench import Bench
from evaluation.beyond.digest import digest
from evaluation.repeated import Repeated
from evaluation.sessions import session, to_nowhere
from evaluation.size import Size
from evaluation.step import Findings, Step
from evaluation.subject import SUBJECTS

__all__ = ["CORES", "IN_PROCESS", "steps", "window_script"]

CORES = (1, 2)
IN_PROCESS = 0
"""Stands in the column of cores for a run without Spark."""

_FILE = 500_000  # rows of a file at most, so that every core has some
_GROUP = 100_000


def window_script(minutes: int, one: str, two: str) -> str:
    """The query that is scaled: two attributions over a window that slides by a minute."""
    return f"""
        SELECT SHAPLEY_ATTRIBUTE(AVG(latency), {one} WITH (SHARE, LIFT)) AS one,
               SHAPLEY_ATTRIBUTE(VAR_POP(latency), {two}) AS two
        FROM events WINDOW w AS (
            ORDER BY event_time
            RANGE INTERVAL '{minutes}' MINUTE PRECEDING SLIDE INTERVAL '1' MINUTE)
        EMIT CHANGES
    """


_SCRIPT = window_script(10, "region = 'EU-West'", "region = 'US-East' AND tier = 'premium'")


def steps(size: Size) -> list[Step]:
    """One for each number of rows."""
    seconds: dict[int, float] = size.of(
        quick={100_000: 20.0},
        full={1_000_000: 30.0, 2_000_000: 30.0, 5_000_000: 50.0, 20_000_000: 120.0},
    )
    return [
        Step(
            f"beyond-scaling-{rows:09d}",
            f"{rows:,} rows on 1 and 2 cores",
            about,
            partial(_scale, rows),
            ("synthetic",),
        )
        for rows, about in seconds.items()
    ]


def _scale(rows: int, bench: Bench) -> Findings:
    place = bench.scratch / "events"
    emits, expected = _laid_out(bench, rows, place)
    turns = bench.size.repetitions + 1
    contenders: dict[int, Callable[[bool], float]] = {
        **{cores: partial(_on_spark, cores, place, expected) for cores in CORES},
        IN_PROCESS: partial(_in_process, place, expected),
    }
    spent: dict[int, list[float]] = {cores: [] for cores in contenders}
    for turn in range(turns):
        for cores, run in contenders.items():
            seconds = run(turn == 0)
            if turn:  # the first was to warm up, and to see that the answers are right
                spent[cores].append(seconds)
        bench.said((turn + 1) / turns)
    return {
        "beyond_scaling": [
            {"rows": rows, "cores": cores, "emits": emits, "seconds": Repeated.of(samples)}
            for cores, samples in spent.items()
        ]
    }


def _laid_out(bench: Bench, rows: int, place: Path) -> tuple[int, str]:
    """The stream as Parquet files; how many emits it has, and their digest."""
    place.mkdir()
    table = bench.events(SUBJECTS["synthetic"], rows)
    length = min(_FILE, -(-rows // 4))
    for number, first in enumerate(range(0, rows, length)):
        piece = table.slice(first, length)
        pq.write_table(piece, place / f"{number:04d}.parquet", row_group_size=_GROUP)
    answers = ids.sql(_SCRIPT, events=place)
    return answers.num_rows, digest(answers)


def _on_spark(cores: int, place: Path, expected: str, look: bool) -> float:
    from ids.spark.sources import read

    with session(cores) as spark:
        begun = perf_counter()
        emits = ids.spark.sql(_SCRIPT, events=read(spark, place))
        if look:
            _refuse_other_answers(emits.toArrow(), expected)
        else:
            to_nowhere(emits)
        return perf_counter() - begun


def _in_process(place: Path, expected: str, look: bool) -> float:
    begun = perf_counter()
    emits = ids.sql(_SCRIPT, events=place)
    spent = perf_counter() - begun
    if look:
        _refuse_other_answers(emits, expected)
    return spent


def _refuse_other_answers(emits: pa.Table, expected: str) -> None:
    if digest(emits) != expected:
        raise AssertionError("the contenders do not give the same answers")
