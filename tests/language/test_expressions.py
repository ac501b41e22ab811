"""Conditions and measures: the tree that each text is parsed to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ids.errors import Position
from ids.language import parse_aggregate, parse_expression, parse_predicate
from ids.model import (
    Aggregate,
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

A, B, C = Name("a"), Name("b"), Name("c")

SPELLINGS: dict[str, Expression] = {
    "a AND b and (c AND a)": And((A, B, C, A)),
    "a OR b AND c": Or((A, And((B, C)))),
    "(a OR b) AND c": And((Or((A, B)), C)),
    "NOT a AND b": And((Not(A), B)),
    "NOT NOT a": Not(Not(A)),
    "!a": Not(A),
    "NOT a = b": Not(Comparison("=", A, B)),
    "a == b": Comparison("=", A, B),
    "a != b": Comparison("<>", A, B),
    "a <=> NULL": Comparison("<=>", A, Literal(None)),
    "a BETWEEN 1 AND 2 AND b": And(
        (Comparison(">=", A, Literal(1)), Comparison("<=", A, Literal(2)), B)
    ),
    "a NOT BETWEEN 1 AND 2": Not(
        And((Comparison(">=", A, Literal(1)), Comparison("<=", A, Literal(2))))
    ),
    "a NOT IN (1, -2.5, 'x', NULL, TRUE)": Not(
        In(A, (Literal(1), Literal(-2.5), Literal("x"), Literal(None), Literal(True)))
    ),
    "a NOT LIKE 'x\\_%'": Not(Like(A, "x\\_%")),
    "a IS NULL OR a IS NOT NULL": Or((IsNull(A), Not(IsNull(A)))),
    "a IS TRUE OR a IS NOT FALSE": Or((IsTrue(A), Not(IsTrue(A, False)))),
    "a + b * c": Arithmetic("+", A, Arithmetic("*", B, C)),
    "a - b - c": Arithmetic("-", Arithmetic("-", A, B), C),
    "a * b % c / a": Arithmetic("/", Arithmetic("%", Arithmetic("*", A, B), C), A),
    "-a * b": Arithmetic("*", Negative(A), B),
    "+a": A,
    "a - -5": Arithmetic("-", A, Literal(-5)),
    "-(-5)": Literal(5),
    "1e3-1": Arithmetic("-", Literal(1000.0), Literal(1)),
    "a<-1": Comparison("<", A, Literal(-1)),
    "1st = 5ex": Comparison("=", Name("1st"), Name("5ex")),
    "NOT a < b + c * -a OR NOT NOT b AND c": Or(
        (
            Not(
                Comparison("<", A, Arithmetic("+", B, Arithmetic("*", C, Negative(A)))),
            ),
            And((Not(Not(B)), C)),
        )
    ),
    "- - -a": Negative(Negative(Negative(A))),
    "coalesce(a, abs(b), 0)": Call("COALESCE", (A, Call("ABS", (B,)), Literal(0))),
    "date = month": Comparison("=", Name("date"), Name("month")),
    "`a ``b` = `select`": Comparison("=", Name("a `b"), Name("select")),
    "a\u00a0> 1 -- why\n AND /* not */ b": And((Comparison(">", A, Literal(1)), B)),
}


@pytest.mark.parametrize("text", SPELLINGS)
def test_a_spelling_means_its_tree(text: str) -> None:
    assert parse_predicate(text) == SPELLINGS[text]


VALUES: dict[str, object] = {
    "12": 12,
    "012": 12,
    "10L": 10,
    "1.5BD": 1.5,
    "2D": 2.0,
    ".5": 0.5,
    ".5L": 0.5,
    "1.": 1.0,
    "1e3": 1000.0,
    "1E-3": 0.001,
    "-9223372036854775808": -(2**63),
    "'it''s'": "it's",
    "'''a'''": "'a'",
    r"'it\'s \\ \t \u00e9 \101 \q \% \_'": "it's \\ \t é A q \\% \\_",
    r"r'a\n'": r"a\n",
    '"x"': "x",
    "'--; /* ` '": "--; /* ` ",
    "'🙂'": "🙂",
    "true": True,
    "Null": None,
    "TIMESTAMP '2026-01-31 12:00:00.5'": datetime(2026, 1, 31, 12, 0, 0, 500_000, UTC),
    "timestamp '2026-01-31T12:00:00+02:00'": datetime(2026, 1, 31, 10, tzinfo=UTC),
    "timestamp '2026-01-31 12:00:00 UTC'": datetime(2026, 1, 31, 12, tzinfo=UTC),
    "DATE '2026-01-31'": datetime(2026, 1, 31, tzinfo=UTC),
}


@pytest.mark.parametrize("text", VALUES)
def test_a_literal_means_its_value(text: str) -> None:
    assert parse_expression(text) == Literal(VALUES[text])  # type: ignore[arg-type]


def test_names_and_calls_know_where_they_stand() -> None:
    parsed = parse_predicate("a = 1\n  AND /* two\nlines */ `b c` < ABS(d)")
    assert isinstance(parsed, And)
    first, second = parsed.operands
    assert isinstance(first, Comparison) and isinstance(second, Comparison)
    assert isinstance(second.left, Name) and isinstance(second.right, Call)
    assert (first.at, second.at) == (Position(1, 1), Position(3, 10))
    assert (second.left.at, second.right.at) == (Position(3, 10), Position(3, 18))
    (argument,) = second.right.arguments
    assert isinstance(argument, Name) and argument.at == Position(3, 22)


AGGREGATES = {
    "AVG": Aggregate("AVG", None),
    "mean(a)": Aggregate("AVG", A),
    "COUNT(*)": Aggregate("COUNT", None),
    "COUNT(a)": Aggregate("COUNT", A),
    "VARIANCE(a)": Aggregate("VAR_SAMP", A),
    "M4((a) + (b))": Aggregate("M4", Arithmetic("+", A, B)),
}


@pytest.mark.parametrize("text", AGGREGATES)
def test_an_aggregate_means_its_game(text: str) -> None:
    assert parse_aggregate(text) == AGGREGATES[text]


def test_further_games_are_named_by_the_caller() -> None:
    assert parse_aggregate("skew(a)", games={"SKEW"}).function == "SKEW"
    assert parse_aggregate("sum(a)", games={"SKEW"}).function == "SUM"
