"""Rendered text parses back to the tree it was rendered from."""

from __future__ import annotations

import math

import pytest
from hypothesis import given

from ids.errors import ScriptError
from ids.language import parse_expression
from ids.model import Arithmetic, Column, Expression, Literal, Name, Negative, Not, render
from tests.language.expressions import expressions


@given(expressions)
def test_a_rendered_expression_parses_back_to_itself(expression: Expression) -> None:
    assert parse_expression(render(expression)) == expression


def test_rendering_spares_parentheses() -> None:
    a, b = Name("a"), Column("b c")
    assert render(Arithmetic("-", Arithmetic("*", a, b), a)) == "a * `b c` - a"
    assert render(Arithmetic("-", a, Arithmetic("-", a, b))) == "a - (a - `b c`)"
    assert render(Negative(Negative(a))) == "-(-a)"
    assert render(Not(Not(a))) == "NOT (NOT a)"


def test_what_no_literal_can_say_is_refused() -> None:
    with pytest.raises(ScriptError, match="inf has no SQL literal"):
        render(Literal(math.inf))
