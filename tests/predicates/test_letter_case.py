"""LOWER and UPPER follow Unicode 17 like Spark, not the older tables of Python."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ids.predicates.functions import lower, upper

# changed their category or their case after Unicode 14 (Python 3.11)
CHANGED = "\u019b\u0264\u0295\ua7d3\ua7d5\U0001171e"


def _known(character: str) -> bool:
    return unicodedata.category(character) != "Cn" and character not in CHANGED


@given(
    st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("ΣσςαİıßǅﬁA.'0 ")), max_size=8)
)
def test_python_and_unicode_17_agree_on_what_python_knows(text: str) -> None:
    known = "".join(filter(_known, text))
    assert lower(known) == known.lower()
    assert upper(known) == known.upper()


@pytest.mark.parametrize(
    ("big", "small"),
    [
        ("\u1c89", "\u1c8a"),
        ("\ua7cb", "\u0264"),
        ("\ua7d2", "\ua7d3"),
        ("\ua7dc", "\u019b"),
        ("\U00010d65", "\U00010d85"),
        ("\U00016ea0", "\U00016ebb"),
        ("\U00016eb8", "\U00016ed3"),
    ],
)
def test_letters_that_came_later_have_both_cases(big: str, small: str) -> None:
    assert (upper(small), lower(big), upper(big), lower(small)) == (big, small, big, small)
    assert lower("A" + big + "É") == "a" + small + "é"


def test_a_sigma_sees_letters_and_accents_that_came_later() -> None:
    assert lower("ΑΣ") == "ας"
    assert lower("Σ") == "σ"
    assert lower("\U00010d50Σ") == "\U00010d70ς"  # after a letter
    assert lower("ΑΣ\U00010d50") == "ασ\U00010d70"  # before a letter
    assert lower("Α\u0897Σ") == "α\u0897ς"  # over an accent
    assert lower("ΑΣ\u0897Β") == "ασ\u0897β"
    assert lower("\u0295Σ") == "\u0295σ"  # after what is no cased letter any more
    assert lower("İΣ") == "i̇ς"
