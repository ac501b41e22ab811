"""Time passes without rows, however an instant is written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ids
from ids.errors import ArgumentError
from ids.model import microseconds_of, to_microseconds

NOON = datetime(2026, 3, 2, 12, 0, 0, 250_000)
EAST = NOON.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=5, minutes=30)))
AT = microseconds_of(NOON)
WRITTEN: list[Any] = [
    NOON,
    NOON.replace(tzinfo=UTC),
    EAST,
    pd.Timestamp(NOON),
    pd.Timestamp(EAST),
    pd.Timestamp(AT * 1_000 + 999),  # nanoseconds are floored, as those of a column
    np.datetime64(NOON),
    np.datetime64(AT // 1_000, "ms"),
    np.datetime64(AT * 1_000 + 999, "ns"),
    AT,
    np.int64(AT),
]


@pytest.mark.parametrize("to", WRITTEN, ids=repr)
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kolkata"])
def test_an_instant_is_the_same_however_it_is_written(to: Any, unit: str, zone: str | None) -> None:
    engine = ids.Engine(ids.TimeWindow("10s"), "x", order_by="t")
    seconds = [AT // 10**6 - 11, AT // 10**6 - 10, AT // 10**6 - 9]
    times = pa.array(seconds, pa.timestamp("s", zone)).cast(pa.timestamp(unit, zone))
    engine.ingest(pa.table({"t": times, "x": [1.0, 2.0, 4.0]}))
    engine.advance(to)
    assert engine.aggregate("SUM") == 4.0
    engine.advance(NOON - timedelta(days=1))  # time does not go back
    engine.ingest(pa.table({"t": times[:1], "x": [1.0]}))
    assert (engine.rows, engine.late_rows) == (1, 1)


@given(
    st.datetimes(),
    st.timezones() | st.none(),
    st.sampled_from(["D", "h", "m", "s", "ms", "us"]),
)
def test_datetimes_are_exact(naive: datetime, zone: Any, unit: str) -> None:
    whole = (naive - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    assert to_microseconds(naive) == to_microseconds(np.datetime64(naive)) == whole
    assert to_microseconds(pd.Timestamp(naive)) == whole
    coarse = np.datetime64(naive).astype(f"datetime64[{unit}]")
    assert to_microseconds(coarse) == int(coarse.astype("datetime64[us]").astype(np.int64))
    if zone is not None and 2 < naive.year < 9_998:
        aware = naive.replace(tzinfo=zone)
        offset = aware.utcoffset()
        assert offset is not None
        assert to_microseconds(aware) == whole - offset // timedelta(microseconds=1)


@pytest.mark.parametrize(
    "to",
    [
        *("2026-03-02", 5.0, True, None, 2**63, float("nan"), timedelta(seconds=5)),
        *(pd.NaT, np.datetime64("NaT"), np.datetime64("300000-01-01", "s"), np.timedelta64(5, "s")),
    ],
    ids=repr,
)
def test_what_is_no_instant_is_refused(to: Any) -> None:
    engine = ids.Engine(ids.TimeWindow(10), "x", order_by="t")
    engine.ingest({"t": [1, 2], "x": [1.0, 2.0]})
    with pytest.raises(ArgumentError, match=r"not an instant: .*; give a datetime"):
        engine.advance(to)
    assert engine.rows == 2


@pytest.mark.parametrize("to", WRITTEN, ids=repr)
def test_event_times_that_are_numbers_move_by_numbers_alone(to: Any) -> None:
    engine = ids.Engine(ids.TimeWindow(10), "x", order_by="t")
    engine.ingest({"t": [1, 2], "x": [1.0, 2.0]})
    if not isinstance(to, int | np.integer):
        with pytest.raises(ArgumentError, match="event time 't' has numbers; give a whole number"):
            engine.advance(to)
        assert engine.rows == 2
        to = np.uint8(11)
    engine.advance(to)
    assert engine.rows == (1 if to == 11 else 0)
