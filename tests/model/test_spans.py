"""Durations are exact: a decimal number of any unit, converted to whole microseconds."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ids.errors import ArgumentError, ScriptError
from ids.language import parse
from ids.model import Select, TimeWindow, microseconds

UNITS = {
    "MICROSECOND": 1,
    "MILLISECOND": 10**3,
    "SECOND": 10**6,
    "MINUTE": 60 * 10**6,
    "HOUR": 3600 * 10**6,
    "DAY": 24 * 3600 * 10**6,
    "WEEK": 7 * 24 * 3600 * 10**6,
}


@given(digits=st.integers(0, 10**19), places=st.integers(0, 12), unit=st.sampled_from([*UNITS]))
@example(digits=11, places=1, unit="HOUR")
@example(digits=2**53 + 1, places=0, unit="MICROSECOND")
@example(digits=2**62 - 1, places=0, unit="MICROSECOND")
@example(digits=2**62, places=0, unit="MICROSECOND")
@example(digits=1, places=7, unit="SECOND")
def test_a_span_is_exact_and_only_fractions_of_a_microsecond_are_refused(
    digits: int, places: int, unit: str
) -> None:
    padded = f"{digits:0{places + 1}d}"
    text = f"{padded[: len(padded) - places]}.{padded[len(padded) - places :]}".rstrip(".")
    whole, rest = divmod(digits * UNITS[unit], 10**places)
    if rest:
        with pytest.raises(ArgumentError, match="is not a whole number of microseconds"):
            microseconds(text, unit)
    elif whole >= 2**62:
        with pytest.raises(ArgumentError, match=r"out of range.*at most 53,375,995 days"):
            microseconds(text, unit)
    else:
        assert microseconds(text, unit) == whole
        assert microseconds(f"{text} {unit.lower()}s") == whole


def test_a_window_of_a_script_is_exact_too() -> None:
    def frame(duration: str) -> TimeWindow:
        slide = f"PRECEDING SLIDE {duration}"
        window = f"WINDOW w AS (ORDER BY t RANGE {duration} {slide})"
        (select,) = parse(f"SELECT COUNT(*) FROM e {window} EMIT FINAL", ("COUNT",))
        assert isinstance(select, Select)
        assert isinstance(select.window.frame, TimeWindow)
        return select.window.frame

    assert frame("INTERVAL '1.1' HOUR").duration == 66 * 60 * 10**6
    assert frame("INTERVAL 9007199254740993 MICROSECOND").duration == 9007199254740993
    with pytest.raises(ScriptError, match=r"out of range: '1{40}' at line 1, column \d+; use"):
        frame(f"INTERVAL '{'1' * 5000}' WEEK")


def test_a_timedelta_is_exact_too() -> None:
    longest = timedelta(days=53_375_995, microseconds=1)
    assert microseconds(longest) == 53_375_995 * UNITS["DAY"] + 1
    with pytest.raises(ArgumentError, match="out of range"):
        microseconds(timedelta.max)


SHORT = {"us": "MICROSECOND", "ms": "MILLISECOND", "s": "SECOND", "sec": "SECOND"}
SHORT |= {"m": "MINUTE", "min": "MINUTE", "h": "HOUR", "d": "DAY", "w": "WEEK"}


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from([*SHORT])), min_size=1),
    st.sampled_from(["", " ", ", "]),
    st.sampled_from(["", " "]),
)
@example([(1, "h")], "", "")
@example([(1, "h"), (30, "m")], "", "")
@example([(250, "ms")], "", "")
def test_units_may_be_short(parts: list[tuple[int, str]], between: str, within: str) -> None:
    text = between.join(f"{number}{within}{unit}" for number, unit in parts)
    whole = sum(number * UNITS[SHORT[unit]] for number, unit in parts)
    assert microseconds(text) == whole
    assert microseconds(f" {text} ") == microseconds(timedelta(microseconds=whole)) == whole


@pytest.mark.parametrize(
    "text",
    ["", "soon", "10", "h", "1 h 5", "-1h", "1,500 ms", "1.2.3 s", "1H", "2M", "1 month", "1e3s"],
)
def test_what_is_no_span_of_time_is_refused_with_the_forms_that_are(text: str) -> None:
    fact = "(not a duration|unknown unit of time): .*|unknown unit of time '[A-Za-z]+'"
    forms = "; write it as '10 seconds', '1h 30m' or '250ms'; the short units are w, d, h, m, s, ms"
    with pytest.raises(ArgumentError, match=f"^({fact}){forms}") as caught:
        microseconds(text)
    assert "timedelta" not in str(caught.value)  # a command line has none


@pytest.mark.parametrize("given_", [True, 2.5, float("nan"), None, [5], b"1h"])
def test_what_is_no_text_is_no_span_either(given_: Any) -> None:
    with pytest.raises(ArgumentError, match=r"not a duration.*give a timedelta"):
        TimeWindow(given_)
    if given_ is not None:  # no slide
        with pytest.raises(ArgumentError, match="not a duration"):
            TimeWindow("1h", given_)


def test_a_span_of_pandas_counts_its_nanoseconds() -> None:
    assert microseconds(pd.Timedelta("1s250us")) == 1_000_250
    with pytest.raises(ArgumentError, match="not a whole number of microseconds"):
        microseconds(pd.Timedelta("1s1ns"))
