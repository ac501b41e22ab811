"""The parts of the chapter that could be wrong: digests, lateness, whole weeks, atoms, indexes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ids
from evaluation.bench import Bench
from evaluation.beyond import CHAPTER, fanout
from evaluation.beyond.bits import (
    contrast,
    days,
    deliver,
    digest,
    late_by_batch,
    late_by_row,
    pieces,
    settled,
    times_of,
)
from evaluation.beyond.fanout import SCHEMAS, Divided, signatures
from evaluation.beyond.index import Blocks, Roaring
from evaluation.beyond.queries import query
from evaluation.report import HERE, fill
from evaluation.step import FULL, QUICK, Repeated
from evaluation.tables import Tables

UTC_TIME = pa.timestamp("us", "UTC")
MINUTE = 60_000_000
NAMES = ("manhattan", "queens", "brooklyn", "bronx", "elsewhere")


def test_a_digest_tells_tables_apart_by_any_bit_any_null_and_any_name() -> None:
    table = pa.table({"at": pa.array([1, 2], UTC_TIME), "x": [0.1, None]})
    cut = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    assert digest(cut) == digest(table)
    nearly = float(np.nextafter(0.1, 1))
    others = [
        table.set_column(1, "x", pa.array([nearly, None])),
        table.set_column(1, "x", pa.array([0.1, 0.0])),
        table.set_column(1, "x", pa.array([0.1, -0.0])),
        table.rename_columns(["at", "y"]),
        table.set_column(0, "at", pa.array([1, 3], UTC_TIME)),
        table.slice(0, 1),
        table.take([1, 0]),
    ]
    assert len({digest(one) for one in [table, *others]}) == 1 + len(others)


def test_emits_at_the_last_event_time_are_not_settled() -> None:
    assert settled(pa.table({"emit_at": pa.array([1, 2, 3], UTC_TIME)}), 3).num_rows == 2


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


def test_a_delivery_is_late_by_the_delay_at_most_and_the_engine_drops_what_is_expected() -> None:
    rng = np.random.default_rng(1)
    times = pa.array(np.sort(rng.integers(0, 60 * MINUTE, 2_000)), UTC_TIME)
    table = pa.table({"event_time": times, "latency": rng.lognormal(3, 1, 2_000)})
    came = deliver(table, 0.1, 5 * MINUTE, rng)
    assert sorted(came["latency"].to_pylist()) == sorted(table["latency"].to_pylist())
    assert 100 < late_by_row(times_of(came), 0).sum() < 300
    assert not late_by_row(times_of(came), 5 * MINUTE).any()
    window = ids.TimeWindow("10 minutes", "1 minute")
    engine = ids.Engine(window, "latency", order_by="event_time", lateness="2 minutes")
    for piece in pieces(came, 4):
        engine.ingest(piece)
    assert engine.late_rows == int(late_by_row(times_of(came), 2 * MINUTE).sum()) > 0


def test_a_week_is_whole_when_each_of_its_days_has_trips() -> None:
    first = datetime(2022, 1, 28, tzinfo=UTC)
    busy = [first + timedelta(days=day, hours=5) for day in range(9) if day != 7]
    times = [day for day in busy for _ in range(100)] + [first - timedelta(days=4000)]
    ends = [first + timedelta(hours=hour) for hour in range(11 * 24)]
    emits = pa.table({"emit_at": pa.array(ends, UTC_TIME), "n": np.arange(len(ends))})
    for name in ("average", *NAMES):
        emits = emits.append_column(name, pa.array(np.arange(len(ends)) / 2))
    weeks = days(pa.table({"event_time": pa.array(times, UTC_TIME)}), emits)
    assert [(week["day"], week["n"]) for week in weeks] == [("2022-02-03", 7 * 24)]


def day(text: str, average: float = 15.0, **parts: float) -> dict[str, Any]:
    return {"day": text, "average": average} | dict.fromkeys(NAMES, 3.0) | parts


def test_days_are_read_by_month_or_of_one_month_by_week() -> None:
    several = [day("2022-01-07"), day("2022-01-08", 17.0, queens=5.0), day("2023-01-09")]
    found = Tables({"beyond_taxi_days": several}).select(query("stretches"))
    assert [(row["label"], row["average"], row["queens"]) for row in found] == [
        ("Jan 2022", 16.0, 4.0), ("Jan 2023", 15.0, 3.0),
    ]  # fmt: skip
    month = [day(f"2022-01-{number:02d}") for number in range(7, 32)]
    found = Tables({"beyond_taxi_days": month}).select(query("stretches"))
    assert [row["label"][:2] for row in found] == ["7 ", "14", "21", "28"]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(QUICK, tmp_path, scratch=tmp_path)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_atoms_and_sums_are_those_of_the_conditions_on_every_row(bench: Bench, schema: str) -> None:
    divided = Divided(bench, schema, 16)
    live = divided.check()
    inside = divided.truths[: divided.window]
    for k in range(16):
        assert divided.engine.attribute("COUNT(*)", f"p{k}").value == inside[:, k].sum()
    bound = {"crossed": 5**4, "independent": 2**16}.get(schema, 17)
    assert 8 < live <= min(bound, divided.window)
    divided.truths[divided.window - 1] ^= True
    with pytest.raises(AssertionError):
        divided.check()


def test_signatures_tell_rows_apart_and_nothing_else() -> None:
    truths = np.array([[1, 0, 1], [0, 0, 0], [1, 0, 1], [1, 1, 1]], np.bool_)
    found = signatures(truths)
    assert found[0] == found[2]
    assert len(set(found.tolist())) == 3


def test_a_step_counts_atoms_and_finds_where_they_are_given_up(bench: Bench) -> None:
    rows = fanout.steps(QUICK)[-1].work(bench)["beyond_fanout_limit"]
    assert [row["predicates"] for row in rows] == [11, 12, 13, 15]
    assert [row["refined"] for row in rows] == [True, True, False, False]
    found = fill(HERE / "beyond", Tables({"beyond_fanout_limit": rows}))
    assert "between K = 12" in found.body and not found.failed


def test_blocks_and_bitmaps_find_the_rows_that_are_inside() -> None:
    zones = np.random.default_rng(0).integers(0, 9, 5_000)
    for structure in (blocks := Blocks(), roaring := Roaring()):
        structure.slide(zones[:3_000], zones[:0])
        for at in range(3_000, 5_000, 500):
            structure.slide(zones[at : at + 500], zones[at - 3_000 :][:500])
    for chosen in ([4], [1, 7]):
        expected = np.flatnonzero(np.isin(zones[2_000:], chosen))
        for structure in (blocks, roaring):
            np.testing.assert_array_equal(structure.find(chosen), expected)


def findings() -> dict[str, list[dict[str, Any]]]:
    bits = {"workload": "synthetic", "window": "time", "emits": 3, "digest": "a"}
    late = {"way": "stream", "delay_minutes": 5, "rows": 1000, "late": 90, "answers": 7}
    taxi = {"way": "Spark", "trips": 5000, "emits": 100, "checked": 28}
    return {
        "beyond_bits": [bits | {"way": "in process"}, bits | {"way": "Spark, 7 files"}],
        "beyond_late": [
            late | {"allowed_minutes": 5, "dropped": 0, "expected": 0, "like_batch": True,
                    "like_kept": True},
            late | {"allowed_minutes": 1, "dropped": 40, "expected": 40, "like_batch": False,
                    "like_kept": True},
        ],
        "beyond_taxi": [taxi | {"alike": True, "worst": 2e-16, "seconds": Repeated((2.0,))}],
        "beyond_taxi_days": [day("2022-01-07"), day("2022-02-07", 17.5, queens=6.5, bronx=2.0)],
    }  # fmt: skip


def test_the_text_says_what_the_rows_say_and_notices_what_is_no_longer_true() -> None:
    part = fill(HERE / "beyond", Tables(findings()))
    assert "(2 ways), the same script and rows give one table" in part.body
    assert "90 came out of order" in part.body and "40 to 40 are dropped" in part.body
    assert r"the +\$2.50 is made up of Queens +\$3.50, Bronx −\$1.00" in part.body
    assert not part.failed
    wrong = findings()
    wrong["beyond_bits"][1]["digest"] = "b"
    wrong["beyond_late"][1]["dropped"] = 41
    wrong["beyond_taxi"][0]["alike"] = False
    assert len(fill(HERE / "beyond", Tables(wrong)).failed) == 3


@pytest.mark.parametrize("size", [QUICK, FULL])
def test_steps_are_named_for_the_chapter_and_short(size: Any) -> None:
    steps = CHAPTER.steps(size)
    assert len({step.name for step in steps}) == len(steps)
    for step in steps:
        assert step.name.startswith("beyond-") and len(step.does) <= 50
        assert step.seconds <= 180
