from __future__ import annotations

import pytest

from ids.errors import ScriptError, UnknownNameError
from ids.language import parse
from ids.model import Drop, Kind, Register, Select
from ids.plan import Registry, SelectPlan, choose, names_by_key, plan_select
from ids.plan.script import mechanism_of

SCHEMA = {"at": Kind.TIME, "x": Kind.NUMBER, "s": Kind.TEXT, "b": Kind.BOOLEAN}
REGISTER = (
    "REGISTER PREDICATE eu AS (s = 'EU') ON t; REGISTER PREDICATE slow AS (x > 9) ON t;"
    "REGISTER PREDICATE both AS (eu AND slow) ON t;"
)


def planned(
    items: str, window: str = "ORDER BY at ROWS 2 PRECEDING", where: str = ""
) -> SelectPlan:
    script = f"{REGISTER} SELECT {items} FROM t {where} WINDOW w AS ({window}) EMIT CHANGES"
    registry, select = Registry(), None
    for statement in parse(script):
        if isinstance(statement, Register):
            registry.register(statement)
        if isinstance(statement, Select):
            select = statement
    assert select is not None
    return plan_select(select, SCHEMA, registry)


@pytest.mark.parametrize(
    ("predicate", "mechanism"),
    [
        ("eu", "marginal"),
        ("EU", "marginal"),
        ("eu AND NOT slow", "compositional"),
        ("TRUE", "compositional"),
        ("both OR NULL", "compositional"),
        ("s = 'EU'", "inline"),
        ("eu AND x > 3", "inline"),
        ("b", "inline"),
        ("eu IS TRUE", "inline"),
    ],
)
def test_the_mechanism_is_how_the_predicate_was_written(predicate: str, mechanism: str) -> None:
    item = planned(f"SHAPLEY_ATTRIBUTE(AVG(x), {predicate})").items[0]
    assert (item.mechanism, item.name) == (mechanism, "expr_1")


def test_equal_conditions_share_a_bit_and_equal_measures_their_sums() -> None:
    plan = planned(
        "SHAPLEY_ATTRIBUTE(AVG(x), eu), SHAPLEY_DELTA(VAR_POP(x), s = 'EU'),"
        "SHAPLEY_ATTRIBUTE(SUM(x + 1), slow), COUNT(*), COUNT(s)"
    )
    assert [item.predicate for item in plan.items] == [0, 0, 1, None, None]
    assert [item.measure for item in plan.items] == [0, 0, 1, 2, 3]
    assert plan.degrees == (2, 1, 0, 0)
    assert plan.columns == ("at", "s", "x")


def test_only_the_columns_that_are_needed_are_read() -> None:
    assert planned("COUNT(*)").columns == ("at",)
    window = "PARTITION BY S ORDER BY AT ROWS 2 PRECEDING"
    plan = planned("SUM(x)", window, "WHERE b")
    assert plan.columns == ("at", "s", "x", "b")
    assert (plan.partition_by, plan.order_by) == (("s",), ("at",))


def test_anything_can_be_counted_but_only_numbers_summed() -> None:
    assert planned("COUNT(s), COUNT(at), COUNT(b)").degrees == (0, 0, 0)
    with pytest.raises(ScriptError, match="s is text"):
        planned("SUM(s)")


def test_a_column_spelled_exactly_is_no_predicate_of_another_case() -> None:
    schema = {"EU": Kind.BOOLEAN, "x": Kind.NUMBER}
    registry = Registry()
    (register,) = parse("REGISTER PREDICATE eu AS (x > 1) ON t")
    assert isinstance(register, Register)
    registry.register(register)
    registered = registry.bound("t", schema)
    (select,) = parse(
        "SELECT SHAPLEY_ATTRIBUTE(SUM(x), EU) FROM t WINDOW w AS (ORDER BY x ROWS 2 PRECEDING)"
        " EMIT CHANGES"
    )
    assert isinstance(select, Select)
    predicate = select.items[0].predicate
    assert predicate is not None
    assert mechanism_of(predicate, registered, schema) == "inline"
    found = choose(predicate, registered, schema, names_by_key(registered))
    assert found.mechanism == "rows"


def test_a_predicate_may_use_those_before_it_and_is_gone_when_dropped() -> None:
    registry = Registry()
    statements = parse(REGISTER + "DROP PREDICATE EU ON T")
    for statement in statements:
        if isinstance(statement, Register):
            registry.register(statement)
            registry.bound("t", SCHEMA)
    assert list(registry.bound("T", SCHEMA)) == ["eu", "slow", "both"]
    drop = statements[-1]
    assert isinstance(drop, Drop)
    registry.drop(drop)
    with pytest.raises(UnknownNameError, match="unknown predicate 'eu' at line 1, column 111"):
        registry.bound("t", SCHEMA)
    with pytest.raises(UnknownNameError, match="unknown predicate 'EU'"):
        registry.drop(drop)
