"""Magnitudes far apart: every window is answered from its own rows, whatever stands elsewhere."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ids
from tests.query.agreement import assert_right, bits, expected
from tests.query.queries import EPOCH

# any double but those whose powers, or their sums, would leave the doubles
FAR = st.builds(
    lambda m, e, sign: sign * m * 10.0**e,
    st.floats(1.0, 9.99),
    st.one_of(st.integers(-70, 70), st.sampled_from([-60, 10])),
    st.sampled_from([-1.0, 1.0]),
)
SCRIPT = """
SELECT {game}(y) AS v, SHAPLEY_ATTRIBUTE({game}(y), p WITH (SHARE, LIFT)) AS phi,
       SHAPLEY_ATTRIBUTE({game}(y), y < 1 AND y > -1) AS small,
       SHAPLEY_DELTA({game}(y), p) AS change
FROM t WINDOW w AS (PARTITION BY k ORDER BY at {frame}) EMIT CHANGES
"""
FRAMES = ["ROWS 1 PRECEDING", "ROWS 4 PRECEDING SLIDE 2 ROWS"]
FRAMES += ["RANGE INTERVAL '4' SECOND PRECEDING SLIDE INTERVAL '2' SECOND"]


def table(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in ("at", "k", "p", "y")}


@given(
    values=st.lists(st.one_of(FAR, st.none(), st.just(0.0)), min_size=1, max_size=14),
    game=st.sampled_from(["SUM", "COUNT", "AVG", "VAR_POP", "VAR_SAMP", "M3"]),
    frame=st.sampled_from(FRAMES),
    data=st.data(),
)
@settings(max_examples=150)
def test_every_emit_is_what_the_oracle_says(
    values: list[float | None], game: str, frame: str, data: st.DataObject
) -> None:
    rows = [
        {"at": EPOCH + timedelta(seconds=i), "k": data.draw(st.integers(0, 1)), "y": y}
        | {"p": data.draw(st.booleans())}
        for i, y in enumerate(values)
    ]
    script = SCRIPT.format(game=game, frame=frame)
    assert_right(ids.sql(script, t=table(rows)), expected(script, rows, {}))


@pytest.mark.parametrize("game", ["SUM", "AVG"])
@pytest.mark.parametrize(
    ("rows", "small", "large"), [(2_048, 1e-60, 1e10), (2_048, 1e-30, 1e25), (20_480, 1e-60, 1e10)]
)
@pytest.mark.parametrize("frame", ["ROWS 1 PRECEDING", "RANGE INTERVAL '1' SECOND PRECEDING"])
def test_small_values_between_large_ones_are_their_own_answers(
    game: str, rows: int, small: float, large: float, frame: str
) -> None:
    every = 20 if rows > 10_000 else 2
    y = np.where(np.arange(rows) % every, small, large)
    at = np.datetime64("2024-01-01", "us") + np.arange(rows) * np.timedelta64(1, "s")
    slide = " SLIDE INTERVAL '1' SECOND" if "RANGE" in frame else ""
    script = f"SELECT {game}(y) AS v FROM t WINDOW w AS (ORDER BY at {frame}{slide}) EMIT CHANGES"
    assert (np.array(ids.sql(script, t={"at": at, "y": y})["v"]) == y).all()


def test_a_window_has_the_bits_it_has_without_the_rows_outside_it() -> None:
    rng = np.random.default_rng(5)
    y = rng.lognormal(3.0, 1.0, 600)
    k = np.zeros(600, np.int64)
    y[::60], y[7], k[300:] = y[::60] * 1e-60, 1.2345678901234567e-38, 1
    rows = [
        {"at": EPOCH + timedelta(seconds=i), "k": int(k[i]), "y": float(y[i]), "p": bool(i % 3)}
        for i in range(600)
    ]
    for game in ("SUM", "AVG", "VAR_SAMP"):
        script = SCRIPT.format(game=game, frame="ROWS 5 PRECEDING SLIDE 5 ROWS")
        whole = ids.sql(script, t=table(rows)).drop_columns(["change"])
        for first in range(0, 600, 5):
            alone = ids.sql(script, t=table(rows[first : first + 5])).drop_columns(["change"])
            assert bits(whole.slice(first // 5, 1)) == bits(alone)


@pytest.mark.parametrize("y", [5e-324, 1e-310, 2.0**-1022, 1.7976931348623157e308])
def test_the_ends_of_the_doubles_are_answered_beside_each_other(y: float) -> None:
    values = [y, 1.0, -y, 1e-300, 1e300]
    for game in ("SUM", "AVG"):
        script = (
            f"SELECT {game}(y) AS v FROM t WINDOW w AS (ORDER BY i ROWS 1 PRECEDING) EMIT CHANGES"
        )
        found = ids.sql(script, t={"i": range(5), "y": values})
        assert found["v"].to_pylist() == values


@given(
    st.lists(FAR, min_size=1, max_size=12),
    st.sampled_from(["SUM", "AVG", "VAR_POP", "VAR_SAMP"]),
    st.booleans(),
)
@settings(max_examples=60)
def test_a_running_engine_gives_the_bits_of_a_query(
    values: list[float], game: str, registered: bool
) -> None:
    small = "y < 1 AND y > -1"
    engine = ids.Engine(window=ids.CountWindow(4), value="y")
    if registered:
        engine.register("small", small)
    script = (
        f"SELECT {game}(y) AS v, SHAPLEY_ATTRIBUTE({game}(y), {small} WITH (SHARE, LIFT)) AS phi "
        "FROM t WINDOW w AS (ORDER BY i ROWS 4 PRECEDING) EMIT CHANGES"
    )
    emits = ids.sql(script, t={"i": range(len(values)), "y": values}).to_pylist()
    for y, emit in zip(values, emits, strict=True):
        engine.ingest({"y": [y]})
        answer = engine.attribute(game, "small" if registered else small)
        found = (engine.aggregate(game), answer.value, answer.share, answer.lift)
        assert found == (emit["v"], emit["phi"], emit["phi_share"], emit["phi_lift"])
