from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ids.errors import DataError
from ids.language import parse_predicate
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
    Not,
    Or,
    Table,
)
from ids.predicates import bind_predicate, predicate_key, truth
from ids.predicates.functions import compile_pattern
from tests.predicates import strategies as some

KINDS = {
    "x": Kind.NUMBER,
    "y": Kind.NUMBER,
    "z": Kind.NUMBER,
    "s": Kind.TEXT,
    "t": Kind.TEXT,
    "a": Kind.BOOLEAN,
    "b": Kind.BOOLEAN,
    "c": Kind.BOOLEAN,
    "w": Kind.TIME,
}
ALL_KINDS = {name: some.KINDS[of] for name, of in some.COLUMNS.items()}


def key(text: str) -> str:
    return predicate_key(bind_predicate(parse_predicate(text), KINDS))


# Each line is one condition, written in several ways.
ALIKE = """
x > 5 AND s = 'a' | s = 'a' AND x > 5 | NOT (x <= 5 OR s <> 'a')
x > 5 OR y > 5 OR a | a OR (y > 5 OR x > 5) | NOT (NOT a AND NOT (y > 5) AND x <= 5)
x IN (1, 2, 3) | x IN (3, 1, 2, 2, 1.0) | x = 1 OR x = 2 OR x = 3 | NOT (x NOT IN (3, 2, 1))
s IN ('a', 'b') | s IN ('b', 'a', 'b') | s = 'b' OR s = 'a' | 'a' = s OR 'b' = s
x BETWEEN 1 AND 2 | x >= 1 AND x <= 2 | 2 >= x AND 1 <= x | NOT (x < 1 OR x > 2)
x NOT BETWEEN 1 AND 2 | x < 1 OR x > 2
x > 5 | NOT (NOT (x > 5)) | 5 < x | x > 5.0 | NOT (x <= 5) | NOT (5 >= x) | x > 2 + 3
NOT (a AND b) | NOT a OR NOT b
NOT (a OR b) | NOT a AND NOT b
x = 1 | x IN (1) | x = 1.0 | 1 = x | x <= 1 AND x >= 1 | x > 0 AND x = 1 | x IN (1, NULL) | x <=> 1
x <> 1 | NOT (x = 1) | x NOT IN (1) | x < 1 OR x > 1 | NOT (1.0 = x)
x > 5 AND x < 3 | FALSE | x = 1 AND x = 2 | x < x | NULL | x = NULL | NOT (x = NULL) \
| a AND NOT a | x IS NULL AND x > 5 | x NOT IN (1, NULL)
TRUE | x > 5 OR TRUE | x IS NULL OR x IS NOT NULL | a IS TRUE OR a IS NOT TRUE | NOT FALSE
x IS NOT NULL | x = x | x > 5 OR x <= 5 | x >= 0 OR x < 1 | NOT (x IS NULL) | NOT (x <=> NULL) \
| x <> x OR x = x | (x > 5) IS NOT NULL | NOT (x <> x)
a IS NOT NULL | a OR NOT a | a = a | a IN (TRUE, FALSE) | a <= TRUE
x IS NULL | x <=> NULL | (x > 5 OR x <= 5) IS NULL | (x = x) IS NOT TRUE
a | a IS TRUE | a = TRUE | a <> FALSE | a <=> TRUE | a > FALSE | a IN (TRUE) | NOT (NOT a) \
| a AND a | a AND TRUE | a OR FALSE | a OR NULL
NOT a | a IS FALSE | a = FALSE | a <=> FALSE | a < TRUE | NOT (a IS NOT FALSE)
a IS NOT TRUE | NOT (a IS TRUE) | NOT a OR a IS NULL
(x > 5) IS NOT TRUE | x <= 5 OR x IS NULL | NOT ((x > 5) IS TRUE) | NOT (x > 5 AND x IS NOT NULL)
(x > 5) IS FALSE | x <= 5 | (x > 5) = FALSE | NOT (x > 5) | x < 5 OR x = 5
a AND (b OR c) | (c OR b) AND a | a AND NOT (NOT b AND NOT c) | (b OR c) AND (c OR b) AND a
a OR b AND c | (c AND b) OR a | (a OR b AND c) AND (a OR c AND b)
x < y | y > x | NOT (y <= x) | NOT (x >= y) | x < y OR x <> x AND y = y
x = y | y = x | x <= y AND y <= x | NOT (y <> x)
x <=> y | y <=> x | (NOT (x <=> y)) IS FALSE
x <> y | x < y OR y < x | NOT (x = y)
x = y OR x <> y | x <= y OR y <= x
a = b | b = a | NOT (a <> b)
x + y > 5 | y + x > 5 | 5 < y + x | NOT (y + x <= 5)
x * y = 2 * (x + y) | (y + x) * 2 = y * x
x / y > 1 | 1 < x / y
s NOT LIKE '%a' | NOT (s LIKE '%a')
LOWER(s) = 'a' | 'a' = LOWER(s) | LOWER(s) IN ('a', 'a')
COALESCE(x, 0) > 5 | COALESCE(x, 7 - 7) > 5
COALESCE(s, t) <=> NULL | COALESCE(s, t) IS NULL
w > '2024-01-01' | NOT (w <= '2024-01-01 00:00:00') | w > '2024-01-01 02:00+02:00'
x > 9007199254740992 | x > 9007199254740992.0 | x > 9.007199254740992e15
x = 0 | x = -0.0 | x = 0.0 | x = -0
"""
APART = """
x > 5 | x >= 5 | x < 5 | x <= 5 | x = 5 | x <> 5 | y > 5 | x > 6 | x > 5 OR x IS NULL | x + 1 > 6
x > 9007199254740992 | x > 9007199254740993 | x > 9007199254740994 | x >= 9007199254740993
x > 0.1 | x > 0.10000000000000002 | x > 1e-1000 | x < 1e300
a OR NOT a | TRUE | a | NOT a | a IS NULL | a AND NOT a
x < y | y < x | x <= y | x <=> y | x = y | x < z | x <> y
s = 'a' | s = 'A' | s = 'a ' | s LIKE 'a%' | s LIKE '_' | s LIKE '%a' | s = 'a%' | LOWER(s) = 'a' \
| t = 'a'
s > 'a' | s >= 'a' | s < 'a' | s <= 'a' | s <> 'a'
a AND b OR NOT a AND c | a AND b OR NOT a AND c OR b AND c
x - y > 0 | y - x > 0 | x + y > 0 | x * y > 0 | x / y > 0 | x % y > 0 | x > y
x + 1 = y | x + 1.0 = y | x + 2 = y
COALESCE(x, y) > 5 | COALESCE(y, x) > 5 | COALESCE(x, 0.5) > 5 \
| COALESCE(x, 9007199254740993) > 5 | x > 5
(x > 5) IS TRUE | (x > 5) IS NOT TRUE | (x > 5) IS FALSE | (x > 5) IS NOT FALSE | (x > 5) IS NULL
x NOT IN (1, 2) | x IN (1, 2) | x NOT IN (1, 2, NULL) | x NOT IN (1)
w > '2024-01-01' | w >= '2024-01-01' | w > '2024-01-01 00:00:00.000001'
"""


def lines(table: str) -> list[list[str]]:
    joined = table.replace("\\\n", "").strip().splitlines()
    return [[each.strip() for each in line.split(" | ")] for line in joined]


@pytest.mark.parametrize("ways", lines(ALIKE), ids=lambda ways: ways[0])
def test_one_condition_has_one_key_however_it_is_written(ways: list[str]) -> None:
    assert len(ways) > 1
    assert {way: key(way) for way in ways} == dict.fromkeys(ways, key(ways[0]))


@pytest.mark.parametrize("conditions", lines(APART), ids=lambda conditions: conditions[0])
def test_conditions_that_differ_on_some_row_have_keys_of_their_own(conditions: list[str]) -> None:
    found = {key(condition): condition for condition in conditions}
    assert list(found.values()) == conditions


# One value per interval that the constants below distinguish, and NULL.
PLACES: dict[str, list[Any]] = {
    "x": [None, -math.inf, -3.5, -1.0, 0.5, 1.0, 1.25, 2.5, 7.0, math.inf, math.nan],
    "s": [None, "", "\0", "a", "a\0", "ab", "b", "b\0", "c"],
    "a": [None, False, True],
    "b": [None, False, True],
    "w": [None, *[some.EPOCH.replace(microsecond=each) for each in range(5)]],
}
TYPES = {"x": "float", "y": "float", "s": "text", "a": "bool", "b": "bool", "w": "time"}
CONSTANTS: dict[str, list[Any]] = {
    "x": [-1, 1, 1.0, 2.5, None],
    "s": ["a", "b", None],
    "a": [False, True, None],
    "b": [False, True, None],
    "w": [some.EPOCH.replace(microsecond=each) for each in (1, 3)],
}
# With these, a set of values can be written in several ways, as nothing is above NaN.
EDGES: dict[str, list[Any]] = {
    "x": [math.nan, math.inf, -math.inf, 10**400],
    "s": ["", "a\0"],
    "a": [],
    "b": [],
    "w": [some.EPOCH.replace(microsecond=2)],
}


def every_row(places: dict[str, list[Any]]) -> Table:
    rows = list(itertools.product(*places.values()))
    columns = {
        name: some.column([row[position] for row in rows], TYPES[name])
        for position, name in enumerate(places)
    }
    return Table(columns, len(rows))


@st.composite
def leaves_on(draw: st.DrawFn, name: str, edges: bool) -> Expression:
    """A test of one column; with edges, also tests that the normal form does not analyse."""
    column: Expression = Column(name)
    constant = st.sampled_from(CONSTANTS[name] + (EDGES[name] if edges else [])).map(Literal)
    if edges and draw(st.integers(0, 3)) == 0:
        column = Call("COALESCE", (column, draw(constant)))
    match draw(st.integers(0, 6)):
        case 0:
            return IsNull(column)
        case 1:
            return In(column, tuple(draw(st.lists(constant, min_size=1, max_size=3))))
        case 2 if name == "s" and edges:
            return Like(column, draw(st.sampled_from(["a", "a%", "%", "a\0", "%%"])))
        case 2 | 3 if name in ("a", "b"):
            return column
        case 3:
            return Comparison(draw(st.sampled_from(some.OPERATORS)), draw(constant), column)
        case _:
            return Comparison(draw(st.sampled_from(some.OPERATORS)), column, draw(constant))


def leaves_between() -> st.SearchStrategy[Expression]:
    sides = st.permutations([Column("x"), Column("y")])
    order = st.builds(lambda op, ab: Comparison(op, *ab), st.sampled_from(some.OPERATORS), sides)
    same = st.builds(lambda op: Comparison(op, Column("x"), Column("x")), order.map(lambda o: o.op))
    null = st.sampled_from([IsNull(Column("x")), IsNull(Column("y")), Column("a")])
    return st.one_of(order, order, same, null)


def joined(how: int, op: str, one: Expression, other: Expression) -> Expression:
    """Combine conditions in every way; from 5 on, in ways that the normal form does not analyse."""
    made: list[Expression] = [
        And((one, other)),
        Or((one, other)),
        Not(one),
        IsTrue(one, op == "="),
        IsNull(one),
        In(one, (Literal(True), Literal(None if op == "=" else False))),
        Call("COALESCE", (one, other)),
        Comparison(op, one, other),
    ]
    return made[how]


@st.composite
def families(
    draw: st.DrawFn, leaves: st.SearchStrategy[Expression], ways: int = 8
) -> list[Expression]:
    """Generate many conditions on few leaves, so that some of them are equivalent."""
    how = st.sampled_from([way for way in [0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5, 6, 7] if way < ways])
    place = st.integers(0, 30)
    step = st.tuples(how, st.sampled_from(some.OPERATORS), place, place)
    family = [*draw(st.lists(leaves, min_size=1, max_size=3)), Literal(True), Literal(None)]
    for way, op, one, other in draw(st.lists(step, min_size=4, max_size=25)):
        family.append(joined(way, op, family[one % len(family)], family[other % len(family)]))
    return family


def check_families(
    predicates: Sequence[Expression], places: dict[str, list[Any]], *, complete: bool = False
) -> None:
    """Equal keys imply equal rows; if ``complete``, equal rows imply equal keys."""
    table = every_row(places)
    keys = [predicate_key(predicate) for predicate in predicates]
    rows = [(truth(predicate, table) == 1).tobytes() for predicate in predicates]
    pairs = len(set(zip(keys, rows, strict=True)))
    assert len(set(keys)) == pairs, "one key for different rows"
    assert len(set(rows)) == pairs or not complete, "different keys for equal rows"


@pytest.mark.parametrize("name", list(CONSTANTS))
def test_the_simple_tests_of_a_column_have_as_many_keys_as_meanings(name: str) -> None:
    column, constants = Column(name), [Literal(constant) for constant in CONSTANTS[name]]
    compared = [Comparison(op, column, each) for op in some.OPERATORS for each in constants]
    lists = [In(column, pair) for pair in itertools.combinations_with_replacement(constants, 2)]
    tests: list[Expression] = [IsNull(column), *compared, *lists]
    check_families([*tests, *map(Not, tests)], {name: PLACES[name]}, complete=True)


@pytest.mark.parametrize("name", ["x", "s", "a", "w"])
def test_on_one_column_keys_are_equal_just_when_the_rows_are(name: str) -> None:
    @settings(max_examples=50)
    @given(families(leaves_on(name, edges=False), ways=6))
    def check(predicates: list[Expression]) -> None:
        check_families(predicates, {name: PLACES[name]}, complete=True)

    check()


@pytest.mark.parametrize("names", ["x", "s", "w", "ab", "xa", "xsa"])
def test_conditions_of_one_key_hold_on_the_same_rows(names: str) -> None:
    leaves = st.one_of(*[leaves_on(name, edges=True) for name in names])

    @settings(max_examples=50)
    @given(families(leaves))
    def check(predicates: list[Expression]) -> None:
        check_families(predicates, {name: PLACES[name] for name in names})

    check()


@settings(max_examples=100)
@given(families(leaves_between()))
def test_comparisons_between_columns_of_one_key_hold_on_the_same_rows(
    predicates: list[Expression],
) -> None:
    values = [None, 1.0, 2.0, math.nan]
    check_families(predicates, {"x": values, "y": values, "a": PLACES["a"]})


def test_all_conditions_of_three_values_have_as_many_keys_as_there_are_sets_of_rows() -> None:
    a: list[Expression] = [Column("a"), Literal(None), IsNull(Column("a")), IsTrue(Column("a"))]
    for _ in range(2):
        pairs = itertools.combinations(a, 2)
        a += [*map(Not, a), *[IsTrue(each, False) for each in a], *map(And, pairs)]
    check_families(a, {"a": PLACES["a"]}, complete=True)
    assert len({predicate_key(each) for each in a}) == 8


def holds(predicate: Expression, table: Table) -> bytes | None:
    """Return the rows where it holds; None if integers overflow."""
    try:
        return bytes((truth(predicate, table) == 1).tobytes())
    except DataError:
        return None


@st.composite
def near(draw: st.DrawFn, node: Expression) -> Expression:
    """Generate a condition that is similar to another, and may be equivalent."""
    match node:
        case And(operands) | Or(operands):
            made = tuple(draw(near(each)) for each in draw(st.permutations(operands)))
            return And(made) if draw(st.booleans()) else Or(made)
        case Not(operand):
            return draw(st.sampled_from([Not(operand), operand, IsTrue(operand, False)]))
        case Comparison(op, left, right):
            left, right = draw(st.permutations([left, right]))
            return Comparison(draw(st.sampled_from([op, "<", ">="])), left, right)
        case Like(operand, pattern):
            others = [pattern, pattern + "%", pattern[1:]]
            taken = [other for other in others if compile_pattern(other) is not None]
            return Like(operand, draw(st.sampled_from(taken)))
    return draw(st.sampled_from([node, Not(node), IsTrue(node)]))


def wild_rows(rows: int = 400) -> list[dict[str, Any]]:
    """Generate rows with values of every kind, including large integers and NaN."""
    rng = np.random.default_rng(5)
    wild: dict[str, list[Any]] = {
        "int": [None, *range(-4, 5), 2**53, 2**53 + 1, -(2**53) - 1, 2**62 + 1],
        "float": [None, -1.5, -0.0, 1.0, 2.5, 3.0, 2.0**53, 2.0**63, 1e300, math.nan, math.inf],
        "text": [None, "", "a", "A", "ab", "aab", " b ", "é", "z%", "a_b", "\\"],
        "bool": [None, False, True],
        "time": [None, some.EPOCH, some.EPOCH.replace(year=2024, month=2, day=29, hour=23)],
    }
    return [
        {name: wild[of][rng.integers(len(wild[of]))] for name, of in some.COLUMNS.items()}
        for _ in range(rows)
    ]


WILD = some.table(wild_rows())


@settings(max_examples=120)
@given(some.conditions(1), st.data())
def test_conditions_of_one_key_hold_on_the_same_rows_whatever_is_in_them(
    condition: Expression, data: st.DataObject
) -> None:
    others = [condition, *[data.draw(near(condition)) for _ in range(3)]]
    found: dict[str, set[bytes]] = {}
    for other in others:
        rows = holds(other, WILD)
        if rows is not None:
            found.setdefault(predicate_key(other), set()).add(rows)
    assert all(len(rows) == 1 for rows in found.values())


@st.composite
def rewritten(draw: st.DrawFn, node: Expression) -> Expression:
    """Rewrite a condition by one law after another."""
    match node:
        case And(operands) | Or(operands):
            other = Or if isinstance(node, And) else And
            made = tuple(draw(rewritten(each)) for each in draw(st.permutations(operands)))
            node = type(node)((*made, *made[: draw(st.integers(0, 1))]))
            if draw(st.booleans()):
                node = Not(other(tuple(map(Not, node.operands))))
        case Not(operand):
            node = Not(draw(rewritten(operand)))
        case IsTrue(operand, wanted):
            node = IsTrue(draw(rewritten(operand)), wanted)
            if draw(st.booleans()):
                node = IsTrue(Not(node.operand), not wanted)
        case Comparison(op, left, right) if op != "<=>":
            opposite = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
            mirror = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
            if draw(st.booleans()):
                op, left, right = mirror[op], right, left
            node = Comparison(op, left, right)
            if draw(st.booleans()):
                node = Not(Comparison(opposite[op], left, right))
        case In(operand, options):
            each = draw(st.permutations(options))
            node = In(operand, (*each, each[0]))
            if draw(st.booleans()):
                node = Or(tuple(Comparison("=", operand, option) for option in (*each, each[0])))
    return Not(Not(node)) if draw(st.booleans()) else node


@settings(max_examples=80)
@given(some.conditions(2), st.data())
def test_a_condition_keeps_its_key_in_other_words_whatever_is_in_it(
    condition: Expression, data: st.DataObject
) -> None:
    other = data.draw(rewritten(condition))
    assert predicate_key(other) == predicate_key(condition)


def test_clauses_on_many_columns_are_one_condition_in_any_order() -> None:
    rng = np.random.default_rng(7)
    made = [
        Or(tuple(Comparison(">", Column(f"c{k}"), Literal(int(rng.integers(5)))) for k in columns))
        for columns in rng.integers(30, size=(120, 3)).tolist()
    ]
    one = predicate_key(And(tuple(made)))
    negated = [Not(And(tuple(map(Not, clause.operands)))) for clause in made]
    assert one == predicate_key(And((And(tuple(negated[50:])), *negated[60:], *negated[:50])))
    assert one != predicate_key(And(tuple(made[1:])))
    assert one != predicate_key(Or(tuple(made)))


def test_thousands_of_constants_on_a_column_are_no_trouble() -> None:
    x = Column("x")
    numbers = [Literal(number) for number in range(3000)]
    listed = In(x, tuple(numbers))
    spelled_out = Or(tuple(Comparison("=", number, x) for number in reversed(numbers)))
    other = Comparison(">", Column("y"), Literal(0))
    one = predicate_key(And((listed, other)))
    assert one == predicate_key(And((other, spelled_out)))
    apart = [Not(Comparison("=", x, number)) for number in numbers]
    assert one == predicate_key(And((Not(And(tuple(apart))), other)))
    assert one != predicate_key(And((In(x, tuple(numbers[1:])), other)))


def nested(make: Any, leaf: Expression, levels: int = 250) -> Expression:
    for level in range(levels):
        leaf = make(level, leaf)
    return leaf


def above(name: str) -> Comparison:
    return Comparison(">", Column(name), Literal(0))


@pytest.mark.parametrize(
    "deep",
    [
        nested(lambda level, below: (And, Or)[level % 2]((above(f"n{level}"), below)), above("x")),
        nested(lambda level, below: Comparison("<=>", above(f"n{level % 4}"), below), Column("a")),
        nested(
            lambda level, below: Call("COALESCE", (above(f"n{level % 60}"), below)), Column("a")
        ),
        nested(lambda _, below: IsNull(Not(below)), Column("a")),
        Comparison(
            ">",
            nested(lambda _, below: Arithmetic("/", Column("y"), below), Column("x")),
            Literal(1),
        ),
        In(
            nested(lambda _, below: Call("COALESCE", (Column("t"), below)), Column("s")),
            (Literal("a"),),
        ),
    ],
    ids=["and-or", "equal", "coalesce", "is-null", "divided", "text"],
)
def test_the_deepest_conditions_have_keys(deep: Expression) -> None:
    assert predicate_key(deep) == predicate_key(Not(Not(deep)))
    assert predicate_key(deep) != predicate_key(Not(deep))


def test_a_shared_part_is_read_once() -> None:
    condition: Expression = Column("a")
    for _ in range(80):  # as a tree it would have 2 ** 80 leaves
        condition = Or((And((condition, Column("b"))), And((condition, Column("c")))))
    same = Or((And((Column("c"), condition)), And((Column("b"), condition))))
    assert predicate_key(same) == predicate_key(
        Or((And((condition, Column("b"))), And((condition, Column("c")))))
    )


def test_integers_that_leave_64_bits_wait_for_the_rows() -> None:
    assert key("x > 9223372036854775807 + 1") == key("9223372036854775807 + 1 < x")


def test_a_key_is_a_short_text() -> None:
    listed = In(Column("s"), tuple(Literal(f"word \ud800 {each}") for each in range(1000)))
    found = predicate_key(listed)
    assert len(found) < 300
    assert json.loads(json.dumps(found)) == found
    assert found != predicate_key(Not(listed))


SEEN = (
    "OR(`s` (False, (('a', 0), ('a', 1), ('b', 0), ('b', 1)), False), "
    "`x` (False, ((1.0, 1),), False))"
)


def test_a_key_is_the_same_in_every_process() -> None:
    # Hashes of text differ between processes; a literal key is what another process found.
    assert key("s IN ('b', 'a') OR x > 1") == SEEN
