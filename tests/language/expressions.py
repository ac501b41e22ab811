"""Strategies for random expressions that the parser can produce."""

from __future__ import annotations

from datetime import UTC

from hypothesis import strategies as st

from ids.language.parser import FUNCTIONS
from ids.model import (
    And,
    Arithmetic,
    Call,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Name,
    Negative,
    Not,
    Or,
)

__all__ = ["expressions", "texts"]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_names = st.one_of(
    st.sampled_from(["a", "b", "region", "date", "window", "SELECT", "my col", "1st", "x`y", "é"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
).map(Name)
_literals = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
    st.datetimes(timezones=st.just(UTC)),
).map(Literal)


def _flat(kind: type[And] | type[Or], operands: list[Expression]) -> Expression:
    flat: list[Expression] = []
    for operand in operands:
        flat.extend(operand.operands if isinstance(operand, kind) else (operand,))
    return kind(tuple(flat))


def _negative(operand: Expression) -> Expression:
    if isinstance(operand, Literal) and type(operand.value) in (int, float):
        return operand
    return Negative(operand)


def _larger(part: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(part, min_size=2, max_size=4)
    return st.one_of(
        part.map(Not),
        part.map(_negative),
        part.map(IsNull),
        st.builds(IsTrue, part, st.booleans()),
        st.builds(Like, part, texts),
        st.builds(In, part, st.lists(_literals, min_size=1, max_size=3).map(tuple)),
        st.builds(Arithmetic, st.sampled_from("+-*/%"), part, part),
        st.builds(
            Comparison, st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"]), part, part
        ),
        st.builds(lambda name, one: Call(name, (one,)), st.sampled_from(FUNCTIONS), part),
        several.map(lambda arguments: Call("COALESCE", tuple(arguments))),
        several.map(lambda operands: _flat(And, operands)),
        several.map(lambda operands: _flat(Or, operands)),
    )


expressions: st.SearchStrategy[Expression] = st.recursive(
    _names | _literals, _larger, max_leaves=12
)
