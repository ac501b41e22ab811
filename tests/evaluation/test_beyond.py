"""The parts of the chapter that could be wrong: digests, lateness, whole weeks, what is said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ids
from evaluation.beyond import CHAPTER, showing
from evaluation.beyond.arriving import pieces
from evaluation.beyond.bits import contrast, settled
from evaluation.beyond.digest import digest
from evaluation.beyond.figures import FIGURES
from evaluation.beyond.late import deliver, late_by_batch, late_by_row
from evaluation.beyond.stretches import NAMES, stretches
from evaluation.beyond.taxi import whole_days
from evaluation.chapter import Tables
from evaluation.drawing import styled, svg
from evaluation.repeated import Repeated
from evaluation.size import FULL, QUICK

UTC_TIME = pa.timestamp("us", "UTC")
MINUTE = 60_000_000


def test_a_digest_tells_tables_apart_by_any_bit_any_null_and_any_name() -> None:
    table = pa.table({"at": pa.array([1, 2], UTC_TIME), "x": [0.1, None]})
    cut = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    assert digest(cut) == digest(table)
    nearly = float(np.nextafter(0.1, 1))
    others = [
        table.set_column(1, "x", pa.array([nearly, None])),
        table.set_column(1, "x", pa.array([0.1, 0.0])),
        table.rename_columns(["at", "y"]),
        table.set_column(0, "at", pa.array([1, 3], UTC_TIME)),
        table.slice(0, 1),
        table.take([1, 0]),
    ]
    assert len({digest(one) for one in [table, *others]}) == 1 + len(others)


def test_emits_at_the_last_event_time_are_not_settled() -> None:
    table = pa.table({"emit_at": pa.array([1, 2, 3], UTC_TIME)})
    assert settled(table, pa.scalar(3, UTC_TIME)).num_rows == 2


def test_plain_sums_are_contrasted_by_how_many_and_how_far_apart() -> None:
    one = pa.table({"start": [0, 1], "SUM": [10.0, 4.0], "AVG": [1.0, 2.0]})
    other = pa.table({"start": [0, 1], "SUM": [10.0, 5.0], "AVG": [1.0, 2.0]})
    total, average = contrast("synthetic", [one, other, one])
    assert (total["distinct"], total["spread"], total["ways"]) == (2, pytest.approx(0.2), 3)
    assert (average["distinct"], average["spread"]) == (1, 0.0)


def test_pieces_have_every_row_once_and_in_order() -> None:
    table = pa.table({"x": list(range(10))})
    assert pa.concat_tables(pieces(table, 3)) == table
    assert [piece.num_rows for piece in pieces(table, 3)] == [3, 3, 4]


def test_late_rows_are_those_beyond_the_lateness_by_row_and_by_batch() -> None:
    times = np.array([10, 20, 15, 9, 30, 21, 20])
    assert late_by_row(times, 5).tolist() == [False, False, False, True, False, True, True]
    # the batch begins with a watermark of 20 - 5, whatever comes inside it
    batches = [times[:3], times[3:]]
    assert late_by_batch(batches, 5).tolist() == [False] * 3 + [True, False, False, False]
    assert not late_by_batch(batches, 11).any()


def requests(rows: int) -> pa.Table:
    rng = np.random.default_rng(1)
    times = np.sort(rng.integers(0, 60 * MINUTE, rows))
    regions = rng.choice(["EU-West", "US-East"], rows).tolist()
    latency = rng.lognormal(3, 1, rows)
    columns = [pa.array(times, UTC_TIME), pa.array(regions), pa.array(latency)]
    return pa.table(columns, names=["event_time", "region", "latency"])


def test_a_delivery_has_all_rows_and_none_comes_later_than_the_delay() -> None:
    table = requests(2_000)
    delivery = deliver(table, 0.1, 5 * MINUTE, np.random.default_rng(0))
    assert delivery.rows.sort_by("event_time")["latency"].to_pylist() == pytest.approx(
        table["latency"].to_pylist()
    )
    times = delivery.rows["event_time"].cast(pa.int64()).to_numpy()
    assert delivery.late == sum(time < max(times[: i + 1]) for i, time in enumerate(times))
    assert 100 < delivery.late < 300
    assert not late_by_row(times, 5 * MINUTE).any()
    assert late_by_row(times, 1 * MINUTE).sum() > 100


def test_the_engine_counts_the_late_rows_that_are_expected() -> None:
    delivery = deliver(requests(2_000), 0.1, 5 * MINUTE, np.random.default_rng(0))
    engine = ids.Engine(
        window=ids.TimeWindow("10 minutes", "1 minute"),
        value="latency", order_by="event_time", lateness="2 minutes",
    )  # fmt: skip
    for piece in pieces(delivery.rows, 4):
        engine.ingest(piece)
    times = delivery.rows["event_time"].cast(pa.int64()).to_numpy()
    assert engine.late_rows == int(late_by_row(times, 2 * MINUTE).sum()) > 0


def test_a_week_is_whole_when_each_of_its_days_has_trips() -> None:
    first = datetime(2022, 1, 1, tzinfo=UTC)
    days = [first + timedelta(days=day, hours=5) for day in range(9) if day != 7]
    times = [day for day in days for _ in range(100)] + [first - timedelta(days=4000)]
    trips = pa.table({"event_time": pa.array(times, UTC_TIME)})
    assert whole_days(trips) == {first + timedelta(days=7)}


def day(text: str, average: float = 15.0, **parts: float) -> dict[str, Any]:
    return {"day": text, "average": average} | {name.lower(): 3.0 for name in NAMES} | parts


def test_days_are_read_by_month_or_of_one_month_by_week() -> None:
    several = [day("2022-01-07"), day("2022-01-08", 17.0, queens=5.0), day("2023-01-09")]
    assert [(one.label, one.average) for one in stretches(several)] == [
        ("Jan 2022", 16.0), ("Jan 2023", 15.0),
    ]  # fmt: skip
    assert stretches(several)[0].parts["Queens"] == 4.0
    month = [day(f"2022-01-{number:02d}") for number in range(7, 32)]
    assert [one.label[:2] for one in stretches(month)] == ["7 ", "14", "21", "28"]


def full_tables() -> dict[str, list[dict[str, Any]]]:
    def seconds(*samples: float) -> Repeated:
        return Repeated(samples)

    late = {"delay_minutes": 5, "rows": 1000, "late": 90, "answers": 7}
    taxi = {"trips": 5000, "months": 2, "emits": 100, "alike": True, "checked": 28, "worst": 2e-16}
    return {
        "beyond_scaling": [
            {"rows": rows, "cores": cores, "emits": 5, "seconds": seconds(time, time)}
            for rows, times in {100: (2.0, 1.0, 0.5), 1000: (4.0, 2.5, 1.0)}.items()
            for cores, time in zip((1, 2, 0), times, strict=True)
        ],
        "beyond_bits": [
            {"workload": "stress", "window": "time", "way": way, "emits": 3, "digest": "a"}
            for way in ("in process", "Spark, 7 files")
        ],
        "beyond_plain": [
            {"workload": "stress", "aggregate": "SUM", "ways": 4, "distinct": 3, "spread": 1e-15}
        ],
        "beyond_late": [
            {**late, "way": "stream", "allowed_minutes": 5, "dropped": 0, "expected": 0,
             "like_batch": True, "like_kept": True},
            {**late, "way": "stream", "allowed_minutes": 1, "dropped": 40, "expected": 40,
             "like_batch": False, "like_kept": True},
        ],
        "beyond_taxi": [{**taxi, "way": "Spark", "seconds": seconds(2.0)}],
        "beyond_taxi_days": [day("2022-01-07"), day("2022-02-07", 17.5, queens=6.5, bronx=2.0)],
    }  # fmt: skip


def test_the_remarks_are_computed_from_the_rows() -> None:
    scaling, bits, late, taxi = showing.show(Tables(full_tables())).remarks
    assert "1,000 rows" in scaling and "4 s on one core and 2.5" in scaling.replace("2.50", "2.5")
    assert "1.60 times as fast" in scaling and "2.50 × as long" in scaling
    assert "(2 ways)" in bits and "give one table" in bits and "give 3 different" in bits
    assert "90 came out of order" in late and "1 of 1 runs) and 0 rows are dropped" in late
    assert "40 are dropped" in late and "in 1 of 1 runs" in late
    assert "the +$2.50 is made up of Queens +$3.50, Bronx −$1.00" in taxi


def test_what_went_wrong_is_said() -> None:
    rows = full_tables()
    rows["beyond_bits"][1]["digest"] = "b"
    rows["beyond_late"][1]["dropped"] = 41
    rows["beyond_taxi"][0]["alike"] = False
    _, bits, late, taxi = showing.show(Tables(rows)).remarks
    assert "up to 2 different tables" in bits
    assert "in 0 of 1 runs" in late
    assert "different bits" in taxi


@pytest.mark.parametrize("left_out", ["", *full_tables()])
def test_a_run_that_left_something_out_is_shown_all_the_same(left_out: str) -> None:
    tables = Tables({name: rows for name, rows in full_tables().items() if name != left_out})
    section = showing.show(tables)
    for table in section.tables:
        assert all(len(row) == len(table.header) for row in table.rows)
    with styled():
        for figure in FIGURES:
            if tables.filled(figure.needs):
                assert "<svg" in svg(figure.draw(tables))


@pytest.mark.parametrize("size", [QUICK, FULL])
def test_steps_are_named_for_the_chapter_and_short(size: Any) -> None:
    steps = CHAPTER.steps(size)
    assert len({step.name for step in steps}) == len(steps)
    for step in steps:
        assert step.name.startswith("beyond-") and len(step.does) <= 50
        assert step.seconds <= 120
