"""Timestamps have one grammar, with or without the keyword TIMESTAMP."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ids.errors import ScriptError
from ids.language import parse_expression, parse_predicate
from ids.model import Column, Comparison, Kind, Literal, parse_timestamp
from ids.predicates import bind_predicate
from tests.language.timestamps import OURS, REFUSED, TIMESTAMPS

READ = TIMESTAMPS | OURS


@pytest.mark.parametrize("text", READ)
def test_a_timestamp_is_the_same_instant_in_both_forms(text: str) -> None:
    instant = datetime.fromisoformat(READ[text])
    assert parse_timestamp(text) == instant
    for condition in (f"seen > '{text}'", f"seen > TIMESTAMP '{text}'"):
        bound = bind_predicate(parse_predicate(condition), {"seen": Kind.TIME})
        assert bound == Comparison(">", Column("seen"), Literal(instant))


@pytest.mark.parametrize("text", [*REFUSED, f"{'2024-03-01 12' + ' ' * 100_000}x"])
def test_a_text_that_is_no_timestamp_is_refused_in_both_forms(text: str) -> None:
    assert parse_timestamp(text) is None
    for condition in (f"seen > '{text}'", f"seen > TIMESTAMP '{text}'"):
        with pytest.raises(ScriptError, match="not a timestamp"):
            bind_predicate(parse_predicate(condition), {"seen": Kind.TIME})


def test_a_date_has_no_time_of_day() -> None:
    assert parse_expression("DATE '2024-3-1'") == Literal(datetime(2024, 3, 1, tzinfo=UTC))
    for text in ("2024-03-01 0:00", "2024-03-01T12", "2024-02-30"):
        with pytest.raises(ScriptError, match=r"not a date: .* write it as '2026-01-31'"):
            parse_expression(f"DATE '{text}'")
