"""Strategies for typed expressions, and for the rows to evaluate them on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ids.model import (
    And,
    Arithmetic,
    Call,
    Column,
    ColumnData,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTrue,
    Kind,
    Like,
    Literal,
    Negative,
    Not,
    Or,
    Table,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS = {
    "i": "int",
    "j": "int",
    "f": "float",
    "g": "float",
    "s": "text",
    "t": "text",
    "b": "bool",
    "c": "bool",
    "w": "time",
}
KINDS = {
    "int": Kind.NUMBER,
    "float": Kind.NUMBER,
    "text": Kind.TEXT,
    "bool": Kind.BOOLEAN,
    "time": Kind.TIME,
}
OPERATORS = ["=", "<>", "<", "<=", ">", ">=", "<=>"]

INTEGERS = st.one_of(
    st.integers(-4, 4),
    st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**62 + 1]),
)
FLOATS = st.sampled_from(
    [0.0, -0.0, 1.0, -1.5, 2.5, 3.0, 2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63), 1e300]
)
WILD_FLOATS = st.one_of(FLOATS, st.sampled_from([math.nan, math.inf, -math.inf]))
TEXTS = st.sampled_from(["", "a", "A", "ab", "aab", " b ", "é", "z%", "\U0001f600", "￿", "a_b"])
TIMES = st.sampled_from(
    [EPOCH, EPOCH - timedelta(microseconds=1), datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC)]
) | st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": INTEGERS,
    "float": WILD_FLOATS,
    "text": TEXTS,
    "bool": st.booleans(),
    "time": TIMES,
}
LITERALS = {**VALUES, "float": FLOATS}
PATTERNS = st.lists(st.sampled_from(["%", "_", "a", "b", "\\%", "\\_", "\\\\"]), max_size=5)


def number_types() -> st.SearchStrategy[str]:
    return st.sampled_from(["int", "float"])


@st.composite
def values(draw: st.DrawFn, of: str, depth: int) -> Expression:
    """Generate an expression of the given type."""
    if of == "bool" and depth and draw(st.booleans()):
        return draw(conditions(depth - 1))
    leaf = draw(st.integers(0, 5))
    if leaf == 0:
        return Literal(
            draw(st.none() | LITERALS[of]) if draw(st.booleans()) else draw(LITERALS[of])
        )
    if leaf < 4 or not depth or of in ("bool", "time"):
        return Column(draw(st.sampled_from([name for name in COLUMNS if COLUMNS[name] == of])))
    if draw(st.integers(0, 3)) == 0:
        several = st.lists(values(of, depth - 1), min_size=1, max_size=3)
        return Call("COALESCE", tuple(draw(several)))
    return draw(texts(depth) if of == "text" else numbers(of, depth))


@st.composite
def texts(draw: st.DrawFn, depth: int) -> Expression:
    function = draw(st.sampled_from(["LOWER", "UPPER", "TRIM"]))
    return Call(function, (draw(values("text", depth - 1)),))


@st.composite
def numbers(draw: st.DrawFn, of: str, depth: int) -> Expression:
    if of == "int":
        choice = draw(st.integers(0, 4))
        if choice == 0:
            function = draw(
                st.sampled_from(["HOUR", "MINUTE", "DAYOFWEEK", "DAY", "MONTH", "YEAR"])
            )
            return Call(function, (draw(values("time", 0)),))
        if choice == 1:
            return Call("LENGTH", (draw(values("text", depth - 1)),))
        if choice == 2:
            function = draw(st.sampled_from(["FLOOR", "CEIL"]))
            return Call(function, (draw(values(draw(number_types()), depth - 1)),))
        left = right = "int"
        op = draw(st.sampled_from("+-*%"))
    else:
        if draw(st.integers(0, 4)) == 0:
            return Call("SQRT", (draw(values(draw(number_types()), depth - 1)),))
        op = draw(st.sampled_from("+-*/%"))
        left, right = draw(
            st.sampled_from([("float", "float"), ("int", "float"), ("float", "int")])
        )
    if draw(st.integers(0, 5)) == 0:
        operand = draw(values(of, depth - 1))
        return Negative(operand) if draw(st.booleans()) else Call("ABS", (operand,))
    return Arithmetic(op, draw(values(left, depth - 1)), draw(values(right, depth - 1)))


@st.composite
def leaves(draw: st.DrawFn, depth: int) -> Expression:
    left = draw(st.sampled_from(["int", "float", "text", "bool", "time"]))
    number = left in ("int", "float")
    right = draw(number_types()) if number else left
    operand = draw(values(left, depth))
    match draw(st.integers(0, 9)):
        case 0:
            return IsNull(operand)
        case 1:
            pattern = "".join(draw(PATTERNS))
            return Like(draw(values("text", depth)), pattern)
        case 2 | 3:
            options = st.lists(st.none() | LITERALS[left] | LITERALS[right], min_size=1, max_size=4)
            return In(operand, tuple(Literal(option) for option in draw(options)))
        case 4 | 5:
            op = draw(st.sampled_from(OPERATORS))
            return Comparison(op, operand, draw(values(right, depth)))
        case 6:
            op = draw(st.sampled_from(OPERATORS))
            return Comparison(op, Literal(draw(LITERALS[right])), operand)
        case _:
            op = draw(st.sampled_from(OPERATORS))
            return Comparison(op, operand, Literal(draw(LITERALS[right])))


@st.composite
def conditions(draw: st.DrawFn, depth: int = 3) -> Expression:
    """Generate a Boolean expression."""
    choice = draw(st.integers(0, 7)) if depth else 7
    if choice < 4:
        several = draw(st.lists(conditions(depth - 1), min_size=2, max_size=3))
        return And(tuple(several)) if choice < 2 else Or(tuple(several))
    if choice == 4:
        return Not(draw(conditions(depth - 1)))
    if choice == 5:
        return IsTrue(draw(conditions(depth - 1)), draw(st.booleans()))
    if choice == 6:
        plain: list[Expression] = [Column("b"), Column("c"), Literal(True), Literal(None)]
        return draw(st.sampled_from(plain))
    return draw(leaves(max(depth - 1, 0)))


@st.composite
def guarded(draw: st.DrawFn, depth: int = 2) -> Expression:
    """Generate a condition whose integers may overflow, on rows that it may exclude."""
    i, j = draw(st.permutations([Column("i"), Column("j")]))
    whole: list[Expression] = [i, j, Literal(draw(INTEGERS)), Literal(None)]
    huge: Expression = i
    for _ in range(draw(st.integers(1, 3))):
        huge = Arithmetic(draw(st.sampled_from("+-*%")), huge, draw(st.sampled_from(whole)))
    huge = draw(
        st.sampled_from(
            [
                huge,
                Negative(huge),
                Call("ABS", (huge,)),
                Call("COALESCE", (j, huge)),
                Arithmetic("+", Call("COALESCE", (j, huge)), Literal(4)),
                Arithmetic("/", huge, j),
                Arithmetic("+", Column("f"), huge),
            ]
        )
    )
    risky = Comparison(draw(st.sampled_from(OPERATORS)), huge, draw(st.sampled_from([j, *whole])))
    others: list[Expression] = [IsNull(j), Column("b"), IsTrue(Column("c")), Literal(False)]
    others.append(Comparison(draw(st.sampled_from(OPERATORS)), i, Literal(draw(INTEGERS))))
    operands = [draw(st.sampled_from(others)), risky]
    if depth and draw(st.booleans()):
        operands.append(draw(guarded(depth - 1)))
    if draw(st.integers(0, 3)) == 0:
        operands.reverse()
    joined = And(tuple(operands)) if draw(st.booleans()) else Or(tuple(operands))
    return draw(st.sampled_from([joined, joined, Not(joined), IsTrue(joined), IsNull(joined)]))


@st.composite
def compositions(draw: st.DrawFn) -> list[Expression]:
    """Generate predicates as people write them: simple ones, and combinations of them."""
    predicates = draw(st.lists(conditions(2), max_size=3))
    for _ in range(draw(st.integers(0, 3)) if predicates else 0):
        left, right = draw(st.sampled_from(predicates)), draw(st.sampled_from(predicates))
        made: list[Expression] = [Not(left), And((left, Not(right))), Or((right, left))]
        predicates.append(draw(st.sampled_from(made)))
    return predicates


@st.composite
def rows(draw: st.DrawFn, max_size: int = 12) -> list[dict[str, Any]]:
    """Generate rows with None for NULL; some columns have no NULL, some have only NULLs."""
    size = draw(st.integers(0, max_size))
    whole: dict[str, list[Any]] = {}
    for name, of in COLUMNS.items():
        some = VALUES[of]
        cell = draw(st.sampled_from([some, st.none() | some, st.none() | some, st.none()]))
        whole[name] = draw(st.lists(cell, min_size=size, max_size=size))
    return [{name: whole[name][row] for name in COLUMNS} for row in range(size)]


def column(cells: Sequence[Any], of: str, extra: Sequence[str] = ()) -> ColumnData:
    """Convert cells to arrays; ``extra`` are words in the dictionary that no row uses."""
    valid = np.array([cell is not None for cell in cells], np.bool_)
    mask = None if valid.all() else valid
    if of == "text":
        words = list(dict.fromkeys([*extra, *(cell for cell in cells if cell is not None)]))
        codes = np.array([words.index(c) if c is not None else 0 for c in cells], np.int32)
        dictionary = np.empty(len(words), np.object_)
        dictionary[:] = words
        return ColumnData(Kind.TEXT, codes, mask, dictionary)
    if of == "time":
        cells = [None if c is None else (c - EPOCH) // timedelta(microseconds=1) for c in cells]
    dtype = {"int": np.int64, "float": np.float64, "bool": np.bool_, "time": np.int64}[of]
    filled: Any = np.array([0 if cell is None else cell for cell in cells], dtype)
    return ColumnData(KINDS[of], filled, mask)


def table(rows: Sequence[dict[str, Any]], extra: Sequence[str] = ()) -> Table:
    columns = {name: column([row[name] for row in rows], of, extra) for name, of in COLUMNS.items()}
    return Table(columns, len(rows))
