"""Conditions that are equivalent to registered predicates are answered by these."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ids

ROWS = {
    "x": [1, 2, 3, None, 1, 2, None, 5],
    "s": ["a", None, "b", "b", "a", "b", None, "a"],
    "y": [1.0, 2.5, -3.0, 7.0, 0.5, 11.0, 13.0, -2.0],
}
REGISTERED = {"one": "x = 1", "few": "x <= 2", "not_a": "NOT s = 'a'"}
# each is equivalent to a registered predicate, or to its negation
WORDS = [
    *("x = 1", "1 = x", "NOT x <> 1", "x <=> 1", "x <> 1", "one", "NOT one"),
    *("x < 2 OR x = 2", "x > 2", "few", "NOT (x > 2)"),
    *("s <> 'a'", "s = 'a'", "NOT not_a"),
]


def combined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.tuples(parts, st.sampled_from(["AND", "OR"]), parts).map(
        lambda three: f"({three[0]}) {three[1]} ({three[2]})"
    )
    return joined | parts.map(lambda part: f"NOT ({part})")


def engine(registered: Mapping[str, str]) -> ids.Engine:
    made = ids.Engine(window=ids.CountWindow(100), value="y")
    for name, condition in registered.items():
        made.register(name, condition)
    made.ingest(ROWS)
    return made


SUMS, SCANS = engine(REGISTERED), engine({})


CONTEXTS = ["({}) AND x <= 2", "NOT (({}) OR s <> 'a')"]
# Not in a context: where x is NULL, NOT x <=> 1 and NOT x = 1 differ; an OR within an OR is one OR.
ALONE = {"x <=> 1", "x < 2 OR x = 2"}


@pytest.mark.parametrize(
    "asked",
    [*WORDS, *(each.format(word) for each in CONTEXTS for word in WORDS if word not in ALONE)],
)
def test_parts_in_other_words_are_recognised(asked: str) -> None:
    assert SUMS.attribute("AVG", asked).mechanism in ("marginal", "compositional")


@given(st.recursive(st.sampled_from(WORDS), combined, max_leaves=6))
def test_a_combination_in_other_words_has_the_bits_of_a_scan(condition: str) -> None:
    plain = condition
    for name, meant in REGISTERED.items():
        plain = plain.replace(name, f"({meant})")
    found = SUMS.attribute("AVG", condition)
    assert found[:3] == SCANS.attribute("AVG", plain)[:3]


def test_the_negation_of_another_condition_with_the_same_rows_is_not_taken_for_its_own() -> None:
    found = SUMS.attribute("AVG", "NOT (x <=> 1)")
    assert found.mechanism == "scan"
    assert found[:3] == SCANS.attribute("AVG", "x IS NULL OR x <> 1")[:3]
