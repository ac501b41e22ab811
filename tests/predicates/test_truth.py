from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ids.errors import DataError
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
    Kind,
    Like,
    Literal,
    Negative,
    Not,
    Or,
    Table,
)
from ids.predicates import holds, measure, truth
from tests.oracles.three_valued import evaluate
from tests.predicates import strategies as some

THREE = {True: 1, False: 0, None: -1}
WORDS = ["unused", "a", "zz"]


def numbers(*values: Any) -> Table:
    return Table(
        {"x": some.column(values, "int" if isinstance(values[0], int) else "float")}, len(values)
    )


def x(op: str, value: Any) -> Comparison:
    return Comparison(op, Column("x"), Literal(value))


def oracle(expression: Expression, rows: list[dict[str, Any]]) -> list[Any] | None:
    """Return None if an integer overflows on some row."""
    try:
        return [evaluate(expression, row) for row in rows]
    except OverflowError:
        return None


@given(
    some.conditions() | some.guarded(),
    some.rows(),
    st.sampled_from([[], WORDS, WORDS * 5 + list("bcdefghijklm")]),
)
def test_truth_is_what_the_oracle_says_row_by_row(
    condition: Expression, rows: list[dict[str, Any]], extra: list[str]
) -> None:
    expected = oracle(condition, rows)
    table = some.table(rows, extra)
    if expected is None:
        with pytest.raises(DataError, match="64 bits"):
            truth(condition, table)
        return
    found = truth(condition, table)
    assert holds(condition, table).tolist() == (found == 1).tolist()
    assert found.dtype == np.int8
    assert found.tolist() == [THREE[value] for value in expected]


@given(st.sampled_from(["int", "float"]).flatmap(lambda of: some.values(of, 3)), some.rows())
def test_a_measure_is_what_the_oracle_says_row_by_row(
    expression: Expression, rows: list[dict[str, Any]]
) -> None:
    expected = oracle(expression, rows)
    if expected is None:
        with pytest.raises(DataError, match="64 bits"):
            measure(expression, some.table(rows))
        return
    values, valid = measure(expression, some.table(rows))
    known = np.ones(len(rows), np.bool_) if valid is None else valid
    assert values.dtype == np.float64
    assert len(values) == len(rows)
    assert known.tolist() == [value is not None for value in expected]
    wanted = np.array([float(value or 0) for value in expected], np.float64)
    np.testing.assert_array_equal(values[known], wanted[known])


def test_integers_beyond_two_to_the_53_are_compared_exactly() -> None:
    rows = numbers(2**53, 2**53 + 1, 2**63 - 1)
    assert truth(x("=", 2.0**53), rows).tolist() == [1, 0, 0]
    assert truth(x(">", 2.0**53), rows).tolist() == [0, 1, 1]
    assert truth(x("<", 2.0**63), rows).tolist() == [1, 1, 1]
    assert truth(x("=", 2**53 + 1), rows).tolist() == [0, 1, 0]
    assert truth(x("<", 10**30), rows).tolist() == [1, 1, 1]
    assert truth(x("<", 10**400), rows).tolist() == [1, 1, 1]


def test_nan_equals_itself_and_is_above_every_number() -> None:
    rows = numbers(math.nan, math.inf, 1.0)
    assert truth(Comparison("=", Column("x"), Column("x")), rows).tolist() == [1, 1, 1]
    assert truth(x(">", 5), rows).tolist() == [1, 1, 0]
    assert truth(Comparison("<", Literal(math.inf), Column("x")), rows).tolist() == [1, 0, 0]
    assert truth(In(Column("x"), (Literal(math.nan),)), rows).tolist() == [1, 0, 0]


def test_division_and_remainder_by_zero_are_null() -> None:
    rows = numbers(-7, 0)
    assert measure(Arithmetic("/", Literal(1), Column("x")), rows)[1] is not None
    assert truth(IsNull(Arithmetic("%", Literal(1), Column("x"))), rows).tolist() == [0, 1]
    assert measure(Arithmetic("%", Column("x"), Literal(4)), rows)[0].tolist() == [-3.0, 0.0]
    assert measure(Arithmetic("%", Column("x"), Literal(-1)), numbers(-(2**63)))[0].tolist() == [0]


def test_integer_overflow_is_refused_wherever_the_row_is_and_not_on_null_rows() -> None:
    double = Arithmetic("*", Column("x"), Literal(2))
    with pytest.raises(DataError, match=r"integers in x \* 2 overflow 64 bits; use doubles"):
        measure(double, numbers(1, 2**62))
    with pytest.raises(DataError):
        measure(Negative(Column("x")), numbers(-(2**63)))
    huge = ColumnData(Kind.NUMBER, np.array([2**62, 3]), np.array([False, True]))
    values, valid = measure(double, Table({"x": huge}, 2))
    assert valid is not None
    assert values[valid].tolist() == [6.0]


def test_a_measure_that_is_a_column_of_doubles_is_not_copied() -> None:
    rows = numbers(1.0, 2.0)
    values, valid = measure(Column("x"), rows)
    assert values is rows.columns["x"].values
    assert valid is None


def test_coalesce_has_one_type_whether_or_not_a_batch_holds_a_null() -> None:
    either = Call("COALESCE", (Column("x"), Literal(0.5)))
    whole = Comparison("=", either, Literal(2**53 + 1))
    assert truth(whole, numbers(2**53 + 1, 1)).tolist() == [0, 0]
    assert truth(whole, numbers(2**53 + 1, None)).tolist() == [0, 0]


def test_text_is_ordered_by_code_point() -> None:
    cells = ["￿", "\U0001f600", "Z", "a"]
    rows = Table({"x": some.column(cells, "text")}, 4)
    assert truth(x(">", "￿"), rows).tolist() == [0, 1, 0, 0]
    assert truth(x("<", "a"), rows).tolist() == [0, 0, 1, 0]


def test_two_text_columns_are_ordered_too() -> None:
    left, right = ["b", "a", "c", "\U0001f600", None, "b"], ["c", "b", "a", "￿", "a", "b"]
    rows = Table({"x": some.column(left, "text"), "y": some.column(right, "text")}, 6)
    for op in some.OPERATORS:
        node = Comparison(op, Column("x"), Column("y"))
        wanted = [evaluate(node, {"x": a, "y": b}) for a, b in zip(left, right, strict=True)]
        assert truth(node, rows).tolist() == [THREE[value] for value in wanted]


@pytest.mark.parametrize(
    ("function", "text", "result"),
    [("TRIM", "  b\t ", "b\t"), ("LOWER", "ÀB", "àb"), ("UPPER", "straße", "STRASSE")],
)
def test_a_function_of_text_changes_the_words(function: str, text: str, result: str) -> None:
    rows = Table({"x": some.column([text, None], "text")}, 2)
    changed = Comparison("=", Call(function, (Column("x"),)), Literal(result))
    assert truth(changed, rows).tolist() == [1, -1]
    length = Call("LENGTH", (Call(function, (Column("x"),)),))
    assert measure(length, rows)[0][0] == len(result)


@given(st.text("ab%_\\", max_size=8), some.PATTERNS)
def test_like_is_what_its_definition_says(text: str, pieces: list[str]) -> None:
    node = Like(Column("x"), "".join(pieces))
    rows = Table({"x": some.column([text], "text")}, 1)
    assert truth(node, rows).tolist() == [int(evaluate(node, {"x": text}))]


def test_like_takes_no_exponential_time() -> None:
    rows = Table({"x": some.column(["a" * 2000], "text")}, 1)
    assert truth(Like(Column("x"), "%a" * 30 + "%b"), rows).tolist() == [0]


def test_a_condition_of_constants_has_every_row() -> None:
    assert truth(Literal(True), numbers(1, 2, 3)).tolist() == [1, 1, 1]
    assert truth(x("=", None), numbers(1, 2, 3)).tolist() == [-1, -1, -1]
    assert truth(Literal(None), Table({}, 0)).tolist() == []


def test_twenty_thousand_operands_are_no_depth() -> None:
    many = tuple(x(">", -k) for k in range(20_000))
    assert truth(And(many), numbers(1, -5)).tolist() == [1, 0]
    assert truth(Or(many), numbers(1, -5)).tolist() == [1, 1]


def test_a_column_the_rows_lack_is_named() -> None:
    with pytest.raises(DataError, match="no column 'y'"):
        truth(Not(Column("y")), numbers(1))


def test_nothing_is_said_about_numbers_under_null() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        null = ColumnData(Kind.NUMBER, np.array([math.nan, math.inf]), np.zeros(2, np.bool_))
        floor = Call("FLOOR", (Arithmetic("*", Column("x"), Column("x")),))
        assert truth(Comparison(">", floor, Literal(0)), Table({"x": null}, 2)).tolist() == [-1, -1]
