from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given

from ids.errors import Position, ScriptError, UnknownNameError
from ids.language import parse_expression, parse_predicate
from ids.model import (
    And,
    Arithmetic,
    Call,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTrue,
    Kind,
    Like,
    Literal,
    Name,
    Negative,
    Not,
    Or,
    Table,
    children,
    columns_of,
)
from ids.predicates import Refinement, bind, bind_measure, bind_predicate, truth
from tests.predicates import strategies as some

SCHEMA = {
    "region": Kind.TEXT,
    "Latency": Kind.NUMBER,
    "premium": Kind.BOOLEAN,
    "seen": Kind.TIME,
}
AT = Position(3, 9)


def compare(name: str, op: str, value: Any) -> Comparison:
    return Comparison(op, Name(name, AT), Literal(value), AT)


def test_a_name_becomes_the_column_in_its_own_spelling() -> None:
    assert bind(Name("Latency"), SCHEMA) == Column("Latency")
    assert bind(Name("LATENCY"), SCHEMA) == Column("Latency")
    assert bind(Name("latency"), {"latency": Kind.NUMBER, "LATENCY": Kind.TEXT}) == Column(
        "latency"
    )
    assert bind(Name("events.region"), SCHEMA, table="events") == Column("region")


def test_a_registered_name_is_written_out_and_hides_a_column_unless_columns_come_first() -> None:
    slow = Comparison(">", Column("Latency"), Literal(1))
    assert bind_predicate(Not(Name("slow")), SCHEMA, {"slow": slow}) == Not(slow)
    assert bind_predicate(Name("SLOW"), SCHEMA, {"slow": slow}) == slow
    assert bind_predicate(Name("premium"), SCHEMA, {"premium": slow}) == slow
    assert bind_predicate(Name("premium"), SCHEMA, {"premium": slow}, columns_first=True) == Column(
        "premium"
    )
    assert bind_predicate(Name("slow"), SCHEMA, {"slow": slow}, columns_first=True) == slow


def test_a_text_constant_beside_a_timestamp_becomes_the_instant() -> None:
    noon = Literal(datetime(2024, 1, 31, 12, tzinfo=UTC))
    for text in ("2024-01-31 12:00:00", "2024-1-31T13:00+01:00", "2024-01-31 12:00:00.000Z"):
        bound = bind(compare("seen", ">", text), SCHEMA)
        assert bound == Comparison(">", Column("seen"), noon)
        assert bind(Comparison("<", Literal(text), Name("seen")), SCHEMA) == Comparison(
            "<", noon, Column("seen")
        )
    listed = In(Name("seen"), (Literal("2024-01-31 12:00"), Literal(None)))
    assert bind(listed, SCHEMA) == In(Column("seen"), (noon, Literal(None)))


def test_a_negative_constant_is_one_constant() -> None:
    assert bind(Negative(Literal(2**63)), SCHEMA) == Literal(-(2**63))


def test_null_goes_with_anything() -> None:
    for name in SCHEMA:
        bind_predicate(compare(name, "<=>", None), SCHEMA)
    bind_predicate(And((Literal(None), Name("premium"))), SCHEMA)
    bind_measure(Arithmetic("+", Name("Latency"), Literal(None)), SCHEMA)


ERRORS: list[tuple[Expression, str]] = [
    (
        compare("regoin", "=", "EU"),
        "unknown column 'regoin' at line 3, column 9; did you mean 'region'?",
    ),
    (compare("slwo", "=", "EU"), "unknown column 'slwo' at line 3, column 9; did you mean 'slow'?"),
    (
        compare("region", "=", 5),
        "region is text, 5 is a number at line 3, column 9; compare with '5'",
    ),
    (
        compare("Latency", "=", "5"),
        "Latency is a number, '5' is text at line 3, column 9; compare with 5",
    ),
    (
        compare("Latency", "=", "EU"),
        "Latency is a number, 'EU' is text at line 3, column 9; compare Latency with a number",
    ),
    (
        Comparison(">", Literal(1.5), Name("region"), AT),
        "1.5 is a number, region is text at line 3, column 9; compare with '1.5'",
    ),
    (
        compare("premium", "=", 1),
        "premium is a Boolean, 1 is a number at line 3, column 9; compare premium with a Boolean",
    ),
    (
        compare("seen", ">", "yesterday"),
        "'yesterday' is not a timestamp at line 3, column 9; write it as '2024-01-31 12:00:00'",
    ),
    (
        compare("seen", ">", "2024-02-30"),
        "'2024-02-30' is not a timestamp at line 3, column 9; write it as '2024-01-31 12:00:00'",
    ),
    (
        compare("seen", ">", 7),
        "seen is a timestamp, 7 is a number at line 3, column 9; compare seen with a timestamp",
    ),
    (
        In(Name("region", AT), (Literal("EU"), Literal(3, Position(3, 20)))),
        "region is text, 3 is a number at line 3, column 20; compare with '3'",
    ),
    (
        And((Name("premium"), Name("Latency", AT))),
        "Latency is a number at line 3, column 9; AND takes conditions, such as x > 0",
    ),
    (
        Or((Name("premium"), Literal("x", AT))),
        "'x' is text at line 3, column 9; OR takes conditions, such as x > 0",
    ),
    (
        Not(Name("region", AT)),
        "region is text at line 3, column 9; NOT takes conditions, such as x > 0",
    ),
    (
        IsTrue(Name("seen", AT), False),
        "seen is a timestamp at line 3, column 9; IS FALSE takes conditions, such as x > 0",
    ),
    (
        Comparison(">", Arithmetic("+", Name("region", AT), Literal(1)), Literal(2)),
        "region is text at line 3, column 9; + needs numbers",
    ),
    (Negative(Name("premium", AT)), "premium is a Boolean at line 3, column 9; - needs a number"),
    (Like(Name("Latency", AT), "a%"), "Latency is a number at line 3, column 9; LIKE takes text"),
    (
        Like(Name("region"), "a\\b", AT),
        r"the pattern 'a\\b' escapes an ordinary character at line 3, column 9; "
        "escape only %, _ and the backslash",
    ),
    (
        Call("HOUR", (Name("region", AT),)),
        "region is text at line 3, column 9; HOUR takes a timestamp",
    ),
    (
        Call("COALESCE", (Name("region"), Literal(None), Literal(0)), AT),
        "region is text, 0 is a number at line 3, column 9; compare with '0'",
    ),
    (
        Name("Latency", AT),
        "Latency is a number at line 3, column 9; a predicate must be a condition, such as x > 0",
    ),
]


@pytest.mark.parametrize(("expression", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_a_wrong_condition_is_told_what_where_and_what_would_be_right(
    expression: Expression, message: str
) -> None:
    registered = {"slow": Comparison(">", Column("Latency"), Literal(1))}
    with pytest.raises(ScriptError) as caught:
        bind_predicate(expression, SCHEMA, registered)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", ["region", "premium", "seen"])
def test_a_measure_is_a_number(name: str) -> None:
    with pytest.raises(ScriptError, match="at line 3, column 9; an aggregate needs a number"):
        bind_measure(Name(name, AT), SCHEMA)
    assert bind_measure(Arithmetic("*", Name("latency"), Literal(2)), SCHEMA) == Arithmetic(
        "*", Column("Latency"), Literal(2)
    )


def test_two_columns_that_differ_only_in_case_are_ambiguous() -> None:
    schema = {"region": Kind.TEXT, "REGION": Kind.TEXT}
    with pytest.raises(
        ScriptError, match="'Region' is ambiguous in events; write REGION or region"
    ):
        bind(Name("Region"), schema, table="events")


def test_an_unknown_qualified_name_is_unknown() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown column 'regoin'.* 'region'"):
        bind(Name("events.regoin"), SCHEMA, table="events")


def test_twenty_thousand_operands_are_bound() -> None:
    many = And(tuple(compare("Latency", ">", k) for k in range(20_000)))
    bound = bind_predicate(many, SCHEMA)
    assert isinstance(bound, And)
    assert len(bound.operands) == 20_000


def test_many_equalities_become_one_in() -> None:
    equalities = [compare("region", "=", f"r{k}") for k in range(20_000)]
    bound = bind(Or(tuple(equalities)), SCHEMA)
    assert isinstance(bound, In)
    assert len(bound.options) == 20_000
    mixed = bind(Or((*equalities, Name("premium"), compare("latency", "=", 1))), SCHEMA)
    assert isinstance(mixed, Or)
    assert len(mixed.operands) == 3


def compares_constants(node: Expression) -> bool:
    """Whether a comparison, IN, LIKE or IS NULL in it reads no column."""
    if isinstance(node, Comparison | In | Like | IsNull) and not list(columns_of(node)):
        return True
    return any(map(compares_constants, children(node)))


@given(some.conditions())
def test_a_condition_is_refused_just_when_a_test_in_it_reads_no_column(
    condition: Expression,
) -> None:
    schema = {name: some.KINDS[of] for name, of in some.COLUMNS.items()}
    if compares_constants(condition):
        with pytest.raises(ScriptError, match="reads no column"):
            bind_predicate(condition, schema)
    else:
        bind_predicate(condition, schema)


PLAIN = "name a column, or write TRUE or FALSE"
REGION = "did you mean `region`? Quotes are for text, backticks for names"
CONSTANTS = {
    """"region" = 'EU'""": f"'region' = 'EU' reads no column at line 1, column 1; {REGION}",
    """premium AND "REGOIN" LIKE 'EU%'""": f"at line 1, column 13; {REGION}",
    """"EU" = "region\"""": f"'EU' = 'region' reads no column at line 1, column 1; {REGION}",
    """'region' IN ('EU', 'US')""": f"at line 1, column 1; {REGION}",
    """LOWER("region") = 'eu'""": "LOWER('region') = 'eu' reads no column at line 1, col",
    """NOT ("region" IS NULL)""": f"'region' IS NULL reads no column at line 1, column 6; {REGION}",
    """"Latency" BETWEEN 1 AND 2""": "did you mean `Latency`? Quotes",
    """"latency" + 1 > 2""": "did you mean `Latency`? Quotes",
    """Latency > "latency\"""": "Latency is a number, 'latency' is text at line 1, column 1; did "
    "you mean `Latency`? Quotes",
    """"premium\"""": "'premium' is text at line 1, column 1; did you mean `premium`? Quotes",
    """"slow" OR premium""": "'slow' is text at line 1, column 1; did you mean `slow`? Quotes",
    """seen > "seen\"""": "'seen' is not a timestamp at line 1, column 8; did you mean `seen`?",
    """'a' = 'a'""": f"'a' = 'a' reads no column at line 1, column 1; {PLAIN}",
    "premium OR 1 = 1": f"1 = 1 reads no column at line 1, column 12; {PLAIN}",
    "NULL <=> NULL": f"NULL <=> NULL reads no column at line 1, column 1; {PLAIN}",
    "1 IN (1, 2)": f"1 IN (1, 2) reads no column at line 1, column 1; {PLAIN}",
}


@pytest.mark.parametrize("text", CONSTANTS)
def test_a_test_of_constants_is_refused_with_the_name_that_was_meant(text: str) -> None:
    registered = {"slow": Comparison(">", Column("Latency"), Literal(1))}
    with pytest.raises(ScriptError) as caught:
        bind_predicate(parse_predicate(text), SCHEMA, registered)
    assert CONSTANTS[text] in str(caught.value)


@pytest.mark.parametrize("text", ["TRUE", "NOT FALSE", "NULL", "TRUE AND premium", 'region = "EU"'])
def test_truth_itself_and_a_column_beside_quoted_text_are_fine(text: str) -> None:
    bind_predicate(parse_predicate(text), SCHEMA)


def test_a_measure_in_double_quotes_is_told_of_backticks() -> None:
    for text in ('"latency"', '"latency" * 2', 'ABS("latency")'):
        with pytest.raises(ScriptError, match="did you mean `Latency`"):
            bind_measure(parse_expression(text), SCHEMA)
    with pytest.raises(ScriptError, match=r"'regio' reads no column .* did you mean `region`"):
        bind(parse_expression('"regio"'), SCHEMA)  # COUNT takes any kind
    assert bind(parse_expression("1"), SCHEMA) == Literal(1)


@given(some.conditions(), some.rows())
def test_binding_changes_no_meaning(condition: Expression, rows: list[dict[str, Any]]) -> None:
    table = some.table(rows)
    schema = {name: column.kind for name, column in table.columns.items()}
    equalities = [Comparison("=", Column("s"), Literal(v)) for v in "abcdefgh"]
    others = [Comparison("<", Column("i"), Literal(-2)), Comparison("=", Column("i"), Literal(3))]
    many = Or((condition, *equalities, *others))
    try:
        before = truth(many, table)
    except ValueError:
        return
    assume(not compares_constants(many))
    np.testing.assert_array_equal(truth(bind_predicate(many, schema), table), before)


def test_the_deepest_condition_is_walked_and_one_deeper_is_refused() -> None:
    deep: Expression = Name("premium")
    for level in range(199):
        joined = (deep, Comparison("=", Name("region"), Literal(str(level))))
        deep = Not(deep) if level % 3 == 0 else And(joined) if level % 3 == 1 else Or(joined)
    bound = bind_predicate(deep, SCHEMA)
    column = {
        "region": some.column(["1", "2"], "text"),
        "premium": some.column([True, None], "bool"),
    }
    table = Table(column, 2)
    refinement = Refinement([bound])
    np.testing.assert_array_equal(
        refinement.truths[refinement.assign(table)][:, 0], truth(bound, table)
    )
    with pytest.raises(ScriptError, match="too large, with its registered predicates inlined"):
        bind_predicate(Not(Not(Name("deep"))), SCHEMA, {"deep": _nested(bound, 60)})


def _nested(expression: Expression, levels: int) -> Expression:
    for _ in range(levels):
        expression = Not(expression)
    return expression


def test_registered_predicates_that_double_each_other_are_refused_at_once() -> None:
    registered: dict[str, Expression] = {"p0": IsNull(Column("region"))}
    with pytest.raises(ScriptError, match="too large, with its registered predicates inlined"):
        for level in range(1, 60):
            last = Name(f"p{level - 1}")
            registered[f"p{level}"] = bind_predicate(Or((last, Not(last))), SCHEMA, registered)
