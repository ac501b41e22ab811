"""Any text is parsed to statements or raises an IdsError, never another exception."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ids.errors import IdsError
from ids.language import parse, parse_aggregate, parse_expression, parse_predicate

GOLDEN = Path(__file__).parents[1] / "golden"
LISTINGS = [path.read_text(encoding="utf-8") for path in sorted(GOLDEN.glob("*.sql"))]
KEYWORDS = r"""
SELECT REGISTER PREDICATE DROP SHOW PREDICATES EXPLAIN FROM WHERE WINDOW w AS ( ) , ; ( ) ON
PARTITION BY ORDER BY ROWS RANGE BETWEEN PRECEDING AND CURRENT ROW SLIDE INTERVAL MINUTE EMIT
CHANGES FINAL WITH SHARE LIFT APPROXIMATE USING RESERVOIR SAMPLE CONFIDENCE SHAPLEY_DELTA
SHAPLEY_ATTRIBUTE SUM AVG COUNT * a b `a` 'x' '10' 5 0.95 -1 1e3 .5 10L NOT OR AND IS NULL
TRUE IN LIKE = <> < <=> + - / % . ABS COALESCE TIMESTAMP DATE CASE CAST :: [ ] { } ? @ $ ! ||
&& -- /* */ ' ` " \ # {# {{ r' x' 🙂 é 1_0 0x1F 5e /*+ <- => ->
"""
WORDS = [*KEYWORDS.split(), "\n", "\t", "\0", "\u00a0", "\ufeff", "\u2028", "\x1c"]
soups = st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)
glued = st.lists(st.sampled_from(WORDS), max_size=12).map("".join)
raw = st.text(max_size=60) | st.text("()'\"`-/*\\;,. a1=\ud800\0", max_size=60)


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """A listing with some characters removed, doubled or replaced."""
    text = draw(st.sampled_from(LISTINGS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        new = draw(st.sampled_from([*WORDS, text[start:end] * 2, ""]))
        text = text[:start] + new + text[end:]
    return text


def survives(text: str) -> None:
    for reader in (parse, parse_predicate, parse_expression, parse_aggregate):
        try:
            reader(text)
        except IdsError as error:
            assert "\n" not in str(error)
            assert len(str(error)) < 400


@given(soups | glued)
def test_a_soup_of_tokens_is_parsed_or_refused(text: str) -> None:
    survives(text)


@given(mutations())
def test_a_mutated_listing_is_parsed_or_refused(text: str) -> None:
    survives(text)


@given(raw)
def test_raw_text_is_parsed_or_refused(text: str) -> None:
    survives(text)
    survives(f"a = '{text}'")
    survives(f"REGISTER PREDICATE `{text}` AS (a) ON t")
