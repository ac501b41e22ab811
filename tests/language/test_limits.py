"""Very large or deep texts are parsed or rejected quickly."""

from __future__ import annotations

import inspect
import sys

import pytest

from ids.errors import ScriptError
from ids.language import parse, parse_predicate
from ids.language.lexer import MAX_CHARACTERS
from ids.model import And, render


def test_a_chain_of_twenty_thousand_ands_is_one_flat_and() -> None:
    parsed = parse_predicate(" AND ".join(f"a{i} = {i}" for i in range(20_000)))
    assert isinstance(parsed, And)
    assert len(parsed.operands) == 20_000
    assert parse_predicate(render(parsed)) == parsed


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000 + "a" + ")" * 10_000,
        "NOT " * 100_000 + "a",
        "- " * 100_000 + "a",
        "a + " * 50_000 + "a",
        "ABS(" * 10_000 + "a" + ")" * 10_000,
        "(a = " * 10_000 + "a" + ")" * 10_000,
        "NOT (" * 150 + "a" + " + 1)" * 150,
    ],
    ids=lambda text: text[:10],
)
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(ScriptError, match="nested too deeply at line 1"):
        parse_predicate(text)


def test_nesting_below_the_limit_is_read() -> None:
    text = "(" * 190 + "a" + " + 1)" * 190
    parsed = parse_predicate(text)
    assert parse_predicate(render(parsed)) == parsed
    assert hash(parsed) and repr(parsed)


def test_nested_betweens_do_not_double_without_end() -> None:
    with pytest.raises(ScriptError, match="the operand of BETWEEN is too large"):
        parse_predicate("(" * 60 + "a" + " BETWEEN 1 AND 2)" * 60)


@pytest.mark.parametrize("piece", ["x", "'", "`", "9", "/*", "((", "a.", "é", "1 ", "r'", "\n"])
def test_the_same_again_and_again_is_answered(piece: str) -> None:
    for reader in (parse, parse_predicate):
        try:
            reader(piece * 20_000)
        except ScriptError as error:
            assert len(str(error)) < 300


def test_a_script_of_a_million_characters_is_read() -> None:
    filler = "-- comment\n" * 50_000 + "/* " + "x" * 450_000 + " */"
    assert len(parse(f"SHOW PREDICATES; {filler} SHOW PREDICATES")) == 2


def test_a_script_beyond_the_limit_is_refused() -> None:
    with pytest.raises(ScriptError, match="the limit is 2,000,000"):
        parse(" " * (MAX_CHARACTERS + 1))


def test_a_caller_with_no_stack_left_gets_an_error_of_ours() -> None:
    def dig(levels: int) -> None:
        if levels:
            dig(levels - 1)
        else:
            parse_predicate("a * b - c % a < 3")

    used = len(inspect.stack(0))
    with pytest.raises(ScriptError, match="nested too deeply"):
        dig(sys.getrecursionlimit() - used - 12)


def test_an_empty_script_has_no_statements() -> None:
    assert parse("") == parse(" ;; \n -- nothing\n ;") == ()
