"""One row from a far future does not silence a stream; a gap in the data costs next to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from ids.errors import ArgumentError
from ids.spark import start
from ids.spark.stream_batch import Cap, Group, cap_of, groups_of
from tests.spark.streams import PAPER, UTC, arrive, events, expected, run

DAY = 86_400_000_000
FAR = 4_039_372_800_000_000  # in 2098

COUNTED = PAPER.replace(
    "RANGE INTERVAL '30' SECOND PRECEDING SLIDE INTERVAL '10' SECOND", "ROWS 20 PRECEDING"
)


def grouped(times: Sequence[int], max_ahead: int) -> list[Group]:
    """Rows divided where a gap lies between two of them: slow and obvious."""
    groups: list[list[int]] = []
    for time in sorted(times):
        if not groups or time - groups[-1][-1] > max_ahead:
            groups.append([])
        groups[-1].append(time)
    stretches = [[(time - min(times)) // max_ahead for time in group] for group in groups]
    busiest = [max(map(stretch.count, stretch)) for stretch in stretches]
    return [Group(len(g), g[0], g[-1], b) for g, b in zip(groups, busiest, strict=True)]


def taken(batches: Sequence[Sequence[int]], max_ahead: int) -> tuple[list[int], list[int]]:
    """The rows of a stream that are taken, and those that are set aside."""
    front, waiting = None, list[int]()
    kept, aside = list[int](), list[int]()
    for batch in batches:
        rows = [*waiting, *batch]
        limit = -(2**62) if front is None else front + max_ahead
        beyond = [time for time in rows if time > limit]
        groups = grouped(beyond, max_ahead) if beyond else []
        newest = max(
            [*(t for t in rows if t <= limit), *([] if front is None else [front])], default=None
        )
        cap = cap_of(newest, len(rows) - len(beyond), groups, max_ahead)
        now = [time for time in rows if time <= cap.limit]
        rest = [time for time in rows if time > cap.limit]
        waiting = rest if cap.waits else []
        aside += [] if cap.waits else rest
        kept += now
        front = max(now, default=front) if front is None else max([front, *now])
    return kept, aside + waiting


def cut(rows: Sequence[int], cuts: Sequence[int]) -> list[list[int]]:
    places = sorted({0, len(rows), *(cut % (len(rows) + 1) for cut in cuts)})
    return [list(rows[a:b]) for a, b in pairwise(places)]


@given(
    st.lists(st.integers(0, 100), min_size=1),
    st.integers(1, 30),
    st.integers(1, 7),
)
def test_stretches_are_put_together_where_no_gap_divides_them(
    times: list[int], max_ahead: int, factor: int
) -> None:
    times = [time * factor for time in times]
    stretch = (np.array(times) - min(times)) // max_ahead
    held = [np.array(times)[stretch == number] for number in np.unique(stretch)[::-1]]
    rows, first, last = (np.array([f(rows) for rows in held]) for f in (len, min, max))
    assert groups_of(rows, first, last, max_ahead) == grouped(times, max_ahead)


@given(
    st.lists(st.integers(0, 10), min_size=1, max_size=40),
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 100)), max_size=3, unique_by=lambda p: p),
    st.lists(st.integers(0, 50), max_size=6),
)
def test_single_rows_far_ahead_are_set_aside_however_the_stream_is_divided(
    steps: list[int], outliers: list[tuple[int, int]], cuts: list[int]
) -> None:
    rows = np.cumsum([0, *steps]).tolist()
    far = sorted({place % len(rows) + 1: 10_000 * year for place, year in outliers}.items())
    far = [(place, time) for place, time in far if place + 1 < len(rows)]
    if len({time for _, time in far}) < len(far) or any(
        b - a < 2 for (a, _), (b, _) in pairwise(far)
    ):
        return  # two that agree, or come one after the other, are believed
    arriving = list(rows)
    for place, time in reversed(far):
        arriving.insert(place, time)
    kept, aside = taken(cut(arriving, cuts), max_ahead=10)
    assert sorted(kept) == rows
    assert sorted(aside) == sorted(time for _, time in far)


@given(
    st.lists(st.sampled_from([0, 1, 10, 11, 1_000]), min_size=1, max_size=40),
    st.lists(st.integers(0, 50), max_size=12),
)
def test_a_gap_costs_one_row_at_most(steps: list[int], cuts: list[int]) -> None:
    rows = np.cumsum([0, *steps]).tolist()
    kept, aside = taken(cut(rows, cuts), max_ahead=10)
    gaps = sum(step > 10 for step in steps)
    assert sorted(kept + aside) == rows
    assert len(aside) <= gaps + 1
    one_by_one, left = taken([[row] for row in rows], max_ahead=10)
    assert one_by_one == rows[: len(one_by_one)] and len(left) <= 1


def test_a_few_rows_in_a_thousand_are_not_believed_and_a_crowd_is() -> None:
    few, enough = Group(4, 70, 79, 4), Group(5, 70, 79, 5)
    assert cap_of(10, 5_000, [few], 10) == Cap(10)
    assert cap_of(10, 5_000, [enough], 10) == Cap(79)
    assert cap_of(10, 5_000, [enough, Group(1, 99, 99, 1)], 10) == Cap(79)


def at(times: Sequence[int], table: pa.Table) -> pa.Table:
    """Rows of a table at other times."""
    rows = table.slice(0, len(times))
    return rows.set_column(0, "event_time", pa.array(times, UTC))


@pytest.mark.parametrize(
    "script", [PAPER, pytest.param(COUNTED, marks=pytest.mark.slow)], ids=["time", "count"]
)
def test_rows_from_a_far_future_are_set_aside_and_the_stream_goes_on(
    spark: SparkSession, tmp_path: Path, script: str
) -> None:
    table = events(160, 41)
    far = [at([FAR], table), at([FAR + DAY * 400, FAR + DAY * 800], table.slice(7))]
    # alone at first, among others, and alone again, before a restart
    arriving = [far[0], table.slice(0, 60), far[1], table.slice(60, 40), far[0]]
    cuts = [1, 103]
    arrive(pa.concat_tables(arriving), tmp_path / "in", cuts)
    options = {"bad_rows": tmp_path / "bad", "max_ahead": "1 hour"}
    first = run(spark, script, tmp_path / "in", **options)
    assert first.last_progress.totals.ahead == 3
    assert first.last_progress.waiting == 1
    arrive(table.slice(100), tmp_path / "in", [], len(cuts) + 1)
    second = run(spark, script, tmp_path / "in", **options)
    emits = pa.concat_tables([first.table(), second.table()])
    assert emits.equals(expected(script, table))
    totals = second.last_progress.totals
    assert (totals.rows, totals.late, totals.ahead, totals.bad) == (164, 0, 4, 0)
    assert second.last_progress.waiting == 0
    kept = pa.concat_tables(
        [pq.read_table(file) for file in sorted((tmp_path / "bad").glob("*.parquet"))]
    )
    assert set(kept["ids_reason"].to_pylist()) == {
        "event time 'event_time' more than 1 hour ahead of the others"
    }
    years = [time.year for time in kept["event_time"].to_pylist()]
    assert sorted(years) == [2098, 2098, 2099, 2100]


@pytest.mark.parametrize("script", [PAPER, COUNTED], ids=["time", "count"])
def test_rows_after_a_gap_all_count_even_one_by_one(
    spark: SparkSession, tmp_path: Path, script: str
) -> None:
    table = events(60, 42)
    times = table["event_time"].cast(pa.int64()).to_numpy() + np.where(
        np.arange(60) < 30, 0, 3 * DAY
    )
    table = at(times.tolist(), table)
    arrive(table, tmp_path / "in", [30, 31, 32])
    running = run(spark, script, tmp_path / "in")
    assert running.table().equals(expected(script, table))
    assert (running.last_progress.totals.rows, running.last_progress.totals.ahead) == (60, 0)


def test_a_stream_may_have_no_cap(spark: SparkSession, tmp_path: Path) -> None:
    table = events(60, 43)
    arrive(pa.concat_tables([table.slice(0, 30), at([FAR], table)]), tmp_path / "in", [30])
    running = run(spark, PAPER, tmp_path / "in", max_ahead=None)
    watermark = running.last_progress.watermark
    assert watermark is not None and watermark.year == 2098
    with pytest.raises(ArgumentError, match="use a longer duration"):
        start(PAPER, checkpoint=tmp_path / "no", max_ahead="0 seconds", events=tmp_path / "in")
