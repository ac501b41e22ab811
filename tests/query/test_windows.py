"""Random queries over random tables: every emit is what the oracle says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ids
from tests.oracles.windows import answer, kept, windows, written_out
from tests.query.agreement import assert_right, conditions, expected, select_of
from tests.query.queries import EPOCH, REGISTER, REGISTERED, arrow, queries, tables

GOLDEN = Path(__file__).parents[1] / "golden"


@given(rows=tables(), data=st.data())
def test_every_emit_is_what_the_oracle_says(rows: list[dict], data: st.DataObject) -> None:
    script = REGISTER + str(data.draw(queries(len(rows))))
    assert_right(ids.sql(script, t=arrow(rows)), expected(script, rows, REGISTERED))


def ticking(values: list[float]) -> list[dict[str, Any]]:
    return [{"at": EPOCH + timedelta(seconds=i), "x": x} for i, x in enumerate(values)]


def over(game: str, rows: int, predicate: str = "x > 1", slide: int = 1) -> str:
    asked = f"SHAPLEY_ATTRIBUTE({game}(x), {predicate} WITH (SHARE, LIFT)) AS phi, {game}(x) AS v"
    return (
        f"SELECT {asked} FROM t WINDOW w AS (ORDER BY at ROWS {rows} PRECEDING SLIDE {slide} ROWS)"
        " EMIT CHANGES"
    )


@pytest.mark.parametrize("game", ["SUM", "AVG", "VAR_POP", "VAR_SAMP", "COUNT"])
def test_the_papers_stress_case_is_exact(game: str) -> None:
    rng = np.random.default_rng(1)
    rows = ticking((1e9 + 1e-3 * rng.standard_normal(300)).tolist())
    script = over(game, 20, "x > 1000000000.0005")
    table = {name: [row[name] for row in rows] for name in ("at", "x")}
    assert_right(ids.sql(script, t=table), expected(script, rows, {}))


@pytest.mark.parametrize("game", ["SUM", "AVG", "VAR_POP", "VAR_SAMP"])
def test_small_values_keep_their_digits_beside_large_ones(game: str) -> None:
    rows = ticking([0.5, *[131072.0] * 5, 6.1e-05, 7.3e-05, 5.1e-05])
    table = {name: [row[name] for row in rows] for name in ("at", "x")}
    script = over(game, 2, "x < 0.00007")
    assert_right(ids.sql(script, t=table), expected(script, rows, {}))


@pytest.mark.parametrize("game", ["M3", "M4"])
def test_higher_moments_are_right_far_from_the_median(game: str) -> None:
    rows = ticking([0.0] * 10 + [1e9 + k * k * 1e-3 for k in range(7)])
    table = {name: [row[name] for row in rows] for name in ("at", "x")}
    script = over(game, 4, "x > 1000000000.003")
    assert_right(ids.sql(script, t=table), expected(script, rows, {}))


def test_a_long_table_is_right_at_every_emit() -> None:
    """Long enough for the path that answers whole blocks of emits at once."""
    rng = np.random.default_rng(2)
    rows = ticking(np.round(rng.lognormal(4, 1, 1_500), 3).tolist())
    for row in rows[::7]:
        row["x"] = None
    script = (
        "SELECT SHAPLEY_ATTRIBUTE(AVG(x), x > 60 WITH (SHARE, LIFT)), SHAPLEY_DELTA(SUM(x), x < 9),"
        " COUNT(x), AVG(x), SHAPLEY_ATTRIBUTE(COUNT(*), NOT x > 60), COUNT(*) FROM t"
        " WINDOW w AS (ORDER BY at ROWS 9 PRECEDING) EMIT CHANGES"
    )
    data = pa.Table.from_pylist(rows)
    assert_right(ids.sql(script, t=data), expected(script, rows, {}))


def events(rows: int) -> list[dict[str, Any]]:
    """The stream of the paper's listings, with equal event times."""
    rng = np.random.default_rng(3)
    start = datetime(2026, 3, 2, 9, tzinfo=UTC)
    seconds = np.sort(rng.integers(0, 1 + rows // 3, rows)).tolist()
    regions = rng.choice(["EU-West", "US-East", "AP-South"], rows).tolist()
    tiers = rng.choice(["premium", "basic"], rows).tolist()
    latency = rng.lognormal(4, 0.5, rows).tolist()
    return [
        {
            "event_time": start + timedelta(seconds=seconds[i]),
            "region": regions[i],
            "tier": tiers[i],
            "latency": latency[i],
        }
        for i in range(rows)
    ]


LISTED = {
    "region_eu": "region = 'EU-West'",
    "region_us": "region = 'US-East'",
    "tier_premium": "tier = 'premium'",
}
FIRST, SECOND = (
    (GOLDEN / f"{name}.sql").read_text(encoding="utf-8")
    for name in ("paper_register", "paper_compositional")
)
TIER = "REGISTER PREDICATE tier_premium AS (tier = 'premium') ON server_events;\n"


@pytest.mark.parametrize("script", [FIRST, FIRST + TIER + SECOND], ids=["first", "second"])
def test_the_papers_listings_run_verbatim(script: str) -> None:
    rows = events(150)
    found = ids.sql(script, server_events=pa.Table.from_pylist(rows))
    assert_right(found, expected(script, rows, LISTED))
    assert found["n"].to_pylist() == list(range(1, 151))


@pytest.mark.parametrize("script", [FIRST, FIRST + TIER + SECOND], ids=["first", "second"])
def test_the_papers_listings_are_right_over_a_full_window(script: str) -> None:
    rows = events(12_000)
    found = ids.sql(script, server_events=pa.Table.from_pylist(rows))
    assert found.num_rows == 12_000
    select = written_out(select_of(script), conditions(LISTED))
    every = windows(select, kept(select, rows))
    checked = {0, 1, 4_321, 9_999, 10_000, 11_999}
    for number, window in enumerate(every):
        if number in checked:
            assert_right(found.slice(number, 1), [answer(select, window)])


@pytest.mark.parametrize(
    "frame", ["ROWS 9 PRECEDING", "RANGE INTERVAL '9' SECOND PRECEDING SLIDE INTERVAL '1' SECOND"]
)
def test_minus_zero_is_the_key_zero_and_nan_is_one_key(frame: str) -> None:
    odd_nan = np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0]
    table = {
        "at": [EPOCH + timedelta(seconds=i) for i in range(6)],
        "k": np.array([-0.0, 0.0, odd_nan, np.nan, -0.0, 1.5]),
    }
    window = f"WINDOW w AS (PARTITION BY k ORDER BY at {frame})"
    found = ids.sql(f"SELECT COUNT(*) AS c FROM t {window} EMIT FINAL", t=table)
    keys = map(str, found["k"].to_pylist())
    assert sorted(zip(keys, found["c"].to_pylist(), strict=True)) == [
        ("0.0", 3),
        ("1.5", 1),
        ("nan", 2),
    ]


YEAR_1, YEAR_9999 = -62_135_596_800_000_000, 253_402_300_799_999_999
ENDS = st.sampled_from([-(2**63), YEAR_1, 0, YEAR_9999, 2**63 - 1])


@given(
    times=st.lists(st.builds(int.__add__, ENDS, st.integers(-3, 3)), min_size=1, max_size=5),
    slide=st.sampled_from([1, 7, 10**6, 2**53 + 1, 2**59]),
    width=st.integers(1, 4),
)
def test_event_times_from_year_1_to_9999_are_answered_and_others_refused(
    times: list[int], slide: int, width: int
) -> None:
    times = [min(max(t, -(2**63)), 2**63 - 1) for t in times]
    script = (
        "SELECT COUNT(*) AS c FROM t WINDOW w AS (ORDER BY at RANGE "
        f"INTERVAL {slide * width} MICROSECOND PRECEDING SLIDE INTERVAL {slide} MICROSECOND) "
        "EMIT CHANGES"
    )
    table = {"at": pa.array(times, pa.timestamp("us", "UTC"))}
    outside = [row for row, t in enumerate(times, start=1) if not YEAR_1 <= t <= YEAR_9999]
    if outside:
        with pytest.raises(ids.IdsError, match=rf"the years 1 to 9999 in t, row {outside[0]};"):
            ids.sql(script, t=table)
        return
    last = -(-max(times) // slide)
    instants = sorted({-(-t // slide) + k for t in times for k in range(width)})
    right = [
        (i * slide, sum((i - width) * slide < t <= i * slide for t in times))
        for i in instants
        if i <= last
    ]
    found = ids.sql(script, t=table)
    emits = found["emit_at"].cast(pa.int64()).to_pylist()
    assert list(zip(emits, found["n"].to_pylist(), strict=True)) == right
