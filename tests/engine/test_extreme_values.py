"""The ends of the doubles: answers that are right or infinite, and no warning of NumPy's.

The tests run with every warning an error.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ids
from ids.errors import IdsError
from ids.games import GAMES, Moments

ENDS = [1e308, -1e308, 1.7976931348623157e308, 5e-324, -5e-324, 1e300, 1e160, -1e154, 1e-160, 1.0]
values = st.lists(st.sampled_from([*ENDS, 0.0, -0.0, None]), min_size=1, max_size=40)
WAYS: dict[str, dict[str, Any]] = {
    "rows": {},
    "sums": {"retain": False},
    "sample": {"sampling": ids.Sampling(4)},
    "strata": {"sampling": ids.Sampling(4, strata=("s",))},
    "control": {"sampling": ids.Sampling(6, control_variate=True)},
    "replacement": {"sampling": ids.Sampling(4, replacement=True)},
    "provisional": {
        "sampling": ids.Sampling(4),
        "promotion": ids.Promotion(threshold=1, bootstrap="sample", rebuild_after=float("inf")),
    },
}


def rows(given: list[float | None]) -> dict[str, Any]:
    number = np.arange(len(given))
    return {"t": number, "x": given, "s": number % 3, "p": number % 2 == 0}


def test_warnings_are_errors_here() -> None:
    with pytest.raises(RuntimeWarning):
        warnings.warn("overflow", RuntimeWarning, stacklevel=1)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("degree", [2, 4])
@given(batches=st.lists(values, min_size=1, max_size=3))
@example(batches=[[1e308, 1e308]])
@settings(max_examples=20)
def test_an_engine_answers_of_extreme_values_without_a_warning(
    way: str, degree: int, batches: list[list[float | None]]
) -> None:
    engine = ids.Engine(ids.CountWindow(30), "x", degree=degree, **WAYS[way])
    engine.register("odd", "NOT p")
    for batch in batches:
        try:
            engine.ingest(rows(batch))
        except IdsError as error:
            assert "too far" in str(error)
            continue
        for game in GAMES if degree == 4 else ("SUM", "AVG", "VAR_POP", "VAR_SAMP"):
            engine.aggregate(game)
            engine.residual(game)
            for question in ("odd", "x > 1 AND p"):
                for sample in (None, 3):
                    try:
                        engine.attribute(game, question, sample=sample)
                    except IdsError as error:
                        assert way == "sums", error


@given(
    given=values,
    frame=st.sampled_from(["ROWS 9 PRECEDING", "ROWS 20 PRECEDING SLIDE 3 ROWS"]),
    sample=st.sampled_from(["", " APPROXIMATE USING RESERVOIR SAMPLE 3"]),
)
@example([1e308, 1e308, 1e160] * 4, "ROWS 9 PRECEDING", "")
@example([1e154, -1e154, 1e-300] * 8, "ROWS 9 PRECEDING", " APPROXIMATE USING RESERVOIR SAMPLE 3")
@settings(max_examples=60)
def test_a_query_answers_of_extreme_values_without_a_warning(
    given: list[float | None], frame: str, sample: str
) -> None:
    items = ", ".join(
        f"{game}(x) AS v_{game}, "
        f"SHAPLEY_ATTRIBUTE({game}(x), p WITH (SHARE, LIFT){sample}) AS a_{game}, "
        f"SHAPLEY_DELTA({game}(x), p OR x > 1e300{sample}) AS d_{game}"
        for game in GAMES
    )
    script = f"SELECT {items} FROM d WINDOW w AS (ORDER BY t {frame}) EMIT CHANGES"
    found = ids.sql(script, d=rows(given))
    assert found.num_rows == len(given) // (3 if "SLIDE" in frame else 1)


@pytest.mark.parametrize("game", ["M3", "M4"])
def test_where_no_double_holds_a_moment_there_is_no_estimate(game: str) -> None:
    far: list[float | None] = [1e154, -1e308, 1e154, -1e308, -1e308, 1e154, 5.0, 1.0]
    found = ids.sql(
        f"SELECT {game}(x) AS v, SHAPLEY_ATTRIBUTE({game}(x), p APPROXIMATE USING RESERVOIR "
        "SAMPLE 2) AS s FROM d WINDOW w AS (ORDER BY t ROWS 8 PRECEDING) EMIT FINAL",
        d=rows(far),
    ).to_pylist()[0]
    assert np.isinf(found["v"])
    assert np.isnan(found["s"])
    assert found["s_error"] == np.inf


@pytest.mark.parametrize("power", [510, -510])
def test_an_estimate_of_squares_near_the_ends_is_that_of_ordinary_values(power: int) -> None:
    """N times the variance leaves the doubles, the variance does not."""
    rng = np.random.default_rng(0)
    data = rows(rng.random(500).tolist())
    plain, far = (
        ids.sql(
            f"SELECT SHAPLEY_ATTRIBUTE(VAR_POP(x * {unit!r}), p WITH (SHARE, LIFT) "
            "APPROXIMATE USING RESERVOIR SAMPLE 50) AS v FROM d "
            "WINDOW w AS (ORDER BY t ROWS 400 PRECEDING SLIDE 100 ROWS) EMIT CHANGES",
            d=data,
        )
        for unit in (1.0, 2.0**power)
    )
    for name in ("v", "v_share", "v_lift", "v_error"):
        scaled = np.ldexp(far[name].to_numpy(), -2 * power)
        assert scaled == pytest.approx(plain[name].to_numpy(), rel=1e-12)


@pytest.mark.parametrize("name", [name for name in GAMES if not name.startswith("M")])
def test_games_of_very_many_rows_have_finite_slopes(name: str) -> None:
    players = np.array([0.0, 1.0, 2.0, 3.0, 2.0**26, 1e15])
    window = Moments(players, players, players, np.stack([players] * 3))
    game = GAMES[name]
    assert np.isfinite([game.worth(window), *game.slopes(window)]).all()
