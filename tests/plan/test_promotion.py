"""The promotion policy counts over a sliding window of questions or of time."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ids
from ids.errors import ArgumentError
from ids.plan import Policy
from ids.plan.promotion_policy import Verdict

keys = st.sampled_from("abcdef")


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@given(
    asked=st.lists(keys, max_size=80),
    threshold=st.integers(1, 5),
    observation=st.integers(1, 20),
    most=st.integers(0, 3),
)
def test_the_papers_policy_counts_the_last_questions(
    asked: list[str], threshold: int, observation: int, most: int
) -> None:
    """Compare with a recount of the last T_obs questions, after every question."""
    policy = Policy(ids.Promotion(most, threshold, observation, stale=10**6, replaces=False))
    for now, key in enumerate(asked, start=1):
        before = dict(policy.promoted)
        verdict = policy.ask(key)
        recent = Counter(asked[max(0, now - observation) : now])
        due = key not in before and recent[key] >= threshold and len(before) < most
        assert verdict == (Verdict(None) if due else None)
        if verdict is not None:
            policy.promote(key)


def test_a_condition_asked_about_more_often_takes_the_coldest_place() -> None:
    policy = Policy(ids.Promotion(most=2, threshold=2))
    for key in "aabbbb":
        if policy.ask(key) is not None:
            policy.promote(key)
    assert set(policy.promoted) == {"a", "b"}
    assert [policy.ask("c") for _ in range(3)] == [None, None, None]
    assert policy.ask("c") == Verdict("a")
    assert Policy(ids.Promotion(most=0, threshold=1)).ask("a") is None


def test_a_question_weighs_what_it_cost() -> None:
    policy = Policy(ids.Promotion(threshold=2))
    assert [policy.ask("a", 0.1) for _ in range(19)] == [None] * 19
    assert policy.ask("a", 0.2) is not None


def test_what_nobody_asks_about_is_stale() -> None:
    by_questions = Policy(ids.Promotion(threshold=1, stale=3))
    by_questions.ask("a")
    by_questions.promote("a")
    by_questions.ask("b")
    by_questions.ask("b")
    assert by_questions.stale() == []
    by_questions.ask("b")
    assert by_questions.stale() == ["a"]

    clock = Clock()
    by_time = Policy(ids.Promotion(threshold=2, observation="1 minute", stale="1 hour"), clock)
    by_time.ask("a")
    clock.seconds = 61.0
    assert by_time.ask("a") is None, "the first question is over a minute old"
    clock.seconds = 62.0
    assert by_time.ask("a") is not None
    by_time.promote("a")
    clock.seconds += 3_600
    assert by_time.stale() == ["a"]
    by_time.demote("a")
    assert by_time.stale() == []


@given(asked=st.lists(keys, max_size=40), rest=st.lists(keys, max_size=40))
def test_a_policy_goes_on_from_its_facts(asked: list[str], rest: list[str]) -> None:
    settings = ids.Promotion(most=2, threshold=3, observation=7, stale=9)

    def ask(policy: Policy, key: str) -> object:
        verdict = policy.ask(key)
        if verdict is not None:
            if verdict.demoted is not None:
                policy.demote(verdict.demoted)
            policy.promote(key)
        return verdict, policy.stale()

    first = Policy(settings)
    for key in asked:
        ask(first, key)
    second = Policy(settings)
    second.restore(first.facts())
    assert [ask(first, key) for key in rest] == [ask(second, key) for key in rest]


@pytest.mark.parametrize(
    "wrong",
    [{"most": -1}, {"threshold": 0}, {"observation": 0}, {"stale": "0 seconds"},
     {"bootstrap": "guess"}, {"rebuild_after": -1.0}, {"observation": "soon"}],
    ids=str,
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ArgumentError):
        ids.Promotion(**wrong)  # type: ignore[arg-type]
