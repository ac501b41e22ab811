"""Arguments of the public constructors: what is not meant is refused, with what is."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ids
from ids.errors import ArgumentError

NOT_WHOLE = [2.5, 5.0, True, np.True_, "5", float("nan"), None, np.float64(5), [5]]
WHOLE = [np.int64(5), np.uint8(5), np.int32(5)]


def refused(make: Any, *arguments: Any, match: str, **named: Any) -> None:
    with pytest.raises(ArgumentError, match=match) as caught:
        make(*arguments, **named)
    assert "\n" not in str(caught.value)
    assert ";" in str(caught.value), "the fact, then the remedy"


@pytest.mark.parametrize("given", NOT_WHOLE)
def test_a_number_of_rows_is_a_whole_number(given: Any) -> None:
    refused(ids.CountWindow, given, match=r"give whole numbers, as in ids.CountWindow\(1000")
    refused(ids.CountWindow, 5, given, match="give whole numbers")
    refused(ids.CountWindow, 5, slide=given, match="give whole numbers")
    refused(ids.Sampling, given, match="a sample of .* rows; choose 1 to")
    refused(ids.Sampling, seed=given, match="a seed of .*; choose a whole number")
    refused(ids.Promotion, most=given, match="most=.*; give a whole number, 0 or more")
    refused(ids.Promotion, threshold=given, match="threshold=.*; give a whole number, 1 or more")
    refused(ids.Engine, ids.CountWindow(5), atom_limit=given, match="give a whole number")
    refused(ids.Engine, ids.CountWindow(5), degree=given, match="degree .* is out of range")
    if given is not None:
        refused(ids.Sampling, extremes=given, match="extremes=.*; give a whole number, 0 or more")


@pytest.mark.parametrize("given", [0, -1, np.int64(-5)])
def test_a_number_of_rows_is_at_least_one(given: int) -> None:
    refused(ids.CountWindow, given, match=f"of {int(given)} rows.*; both must be at least 1")
    refused(ids.CountWindow, 5, given, match="both must be at least 1")
    refused(ids.Promotion, threshold=given, match="1 or more")
    refused(ids.Promotion, stale=given, match="stale=")


@pytest.mark.parametrize("given", WHOLE)
def test_whole_numbers_of_numpy_are_those_of_python(given: Any, tmp_path: Path) -> None:
    window = ids.CountWindow(given, given)
    assert repr(window) == "CountWindow(size=5, slide=5)"
    sampling = ids.Sampling(given, seed=given, extremes=given, control_variate=np.False_)  # type: ignore[arg-type]
    promotion = ids.Promotion(given, given, given, given, np.True_, rebuild_after=given)  # type: ignore[arg-type]
    assert json.dumps([asdict(sampling), asdict(promotion)])
    engine = ids.Engine(
        window, "x", sampling=sampling, promotion=promotion, degree=given - 3, atom_limit=given
    )
    engine.ingest({"x": [1.0, 2.0]})
    half: Any = np.float32(0.5)
    assert engine.attribute("SUM", "x > 1", sample=given, confidence=half).value == 2.0
    engine.checkpoint(tmp_path / "engine.ids")
    assert repr(ids.Engine.restore(tmp_path / "engine.ids")) == repr(engine)


def test_what_is_not_a_window_is_refused_with_the_window_meant() -> None:
    for given, meant in [
        (5, "ids.CountWindow(5)"),
        (np.int64(5), "ids.CountWindow(5)"),
        ("10 minutes", "ids.TimeWindow('10 minutes')"),
        (timedelta(hours=1), "ids.TimeWindow(datetime.timedelta(seconds=3600))"),
        (ids.Changelog, "ids.Changelog()"),
        (None, "ids.CountWindow(1000)"),
        (0, "ids.CountWindow(1000)"),
        (2.5, "ids.CountWindow(1000)"),
    ]:
        with pytest.raises(ArgumentError) as caught:
            ids.Engine(window=given)  # type: ignore[arg-type]
        assert str(caught.value).startswith(f"window={given!r} is not a window; give ")
        assert meant in str(caught.value)
    refused(ids.CountWindow, "10 minutes", match=r"ids.TimeWindow\('10 minutes'\)")


@pytest.mark.parametrize(
    ("name", "given", "meant"),
    [
        ("order_by", 5, "the name of a column"),
        ("sampling", 100, r"ids.Sampling\(size=1024\)"),
        ("sampling", ids.Sampling, r"ids.Sampling\("),
        ("promotion", True, r"ids.Promotion\(\)"),
        ("retain", "no", "True or False"),
        ("retain", None, "True or False"),
        ("intersections", 5, "list of strings"),
    ],
)
def test_other_arguments_of_an_engine_are_what_they_are_for(
    name: str, given: Any, meant: str
) -> None:
    refused(
        ids.Engine, ids.CountWindow(5), match=f"; give {meant}|; give a string", **{name: given}
    )


def test_one_intersection_may_be_given_as_text() -> None:
    one = ids.Engine(ids.CountWindow(5), "x", intersections="a AND b")
    assert one._settings.intersections == ("a AND b",)


@pytest.mark.parametrize("given", ["yes", None, 2, 1.0])
def test_a_flag_is_true_or_false(given: Any) -> None:
    refused(ids.Sampling, replacement=given, match="replacement=.*; give True or False")
    refused(ids.Sampling, control_variate=given, match="give True or False")
    refused(ids.Promotion, replaces=given, match="give True or False")


@pytest.mark.parametrize("given", [-1, float("nan"), "1", None, True])
def test_a_rebuild_comes_after_some_seconds(given: Any) -> None:
    refused(ids.Promotion, rebuild_after=given, match="rebuild_after=.*; give seconds, 0 or more")


@pytest.mark.parametrize("given", [2.5, True, None, "", "soon"])
def test_a_promotion_goes_back_by_questions_or_by_time(given: Any) -> None:
    refused(ids.Promotion, observation=given, match="not a duration")
    refused(ids.Promotion, stale=given, match="not a duration")


def test_spans_of_a_promotion_may_be_short() -> None:
    promotion = ids.Promotion(observation="1h", stale=timedelta(minutes=5))
    assert (promotion.observation, promotion.stale) == ("1h", "300000000 microseconds")
