from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ids.model.expression import (
    And,
    Column,
    Comparison,
    Expression,
    IsTrue,
    Literal,
    Not,
    Or,
    children,
)
from ids.model.table import Table
from ids.predicates.deciding import decide
from ids.predicates.truth import kleene
from ids.predicates.vector import Kleene
from tests.predicates import strategies as some

NAMES = ["a", "b", "c", "d"]
THREE = [None, False, True]
COLUMNS: list[Expression] = [Column(name) for name in NAMES]


def every_row(names: list[str]) -> Table:
    rows = list(itertools.product(THREE, repeat=len(names)))
    columns = {
        name: some.column([row[position] for row in rows], "bool")
        for position, name in enumerate(names)
    }
    return Table(columns, len(rows))


TABLE = every_row(NAMES)


def nodes_of(expression: Expression) -> list[Expression]:
    found = [expression]
    for node in found:
        found.extend(children(node))
    return found


@st.composite
def trees(draw: st.DrawFn, leaves: list[Expression]) -> Expression:
    """A condition in which each of the leaves stands once, in this order."""
    parts = list(leaves)
    while len(parts) > 1:
        size = draw(st.integers(2, min(3, len(parts))))
        start = draw(st.integers(0, len(parts) - size))
        taken = tuple(parts[start : start + size])
        joined = And(taken) if draw(st.booleans()) else Or(taken)
        parts[start : start + size] = [draw(dressed(joined))]
    return draw(dressed(parts[0]))


def dressed(node: Expression) -> st.SearchStrategy[Expression]:
    return st.sampled_from([node, Not(node), IsTrue(node), IsTrue(node, False), Not(IsTrue(node))])


LEAVES = st.lists(
    st.sampled_from([*COLUMNS, Literal(True), Literal(False), Literal(None)]),
    min_size=1,
    max_size=6,
)


@given(LEAVES.flatmap(trees), st.data())
def test_the_truth_lies_between_the_lowest_and_the_highest(
    expression: Expression, data: st.DataObject
) -> None:
    nodes = list(dict.fromkeys(nodes_of(expression)))
    some_known = data.draw(st.lists(st.sampled_from(nodes)))
    known = {node: kleene(node, TABLE) for node in some_known}
    low, high = decide(expression, known.get)
    truth = kleene(expression, TABLE)
    assert low.dtype == high.dtype == np.int8
    assert len(low) in (1, TABLE.rows)
    assert ((low <= truth) & (truth <= high)).all()
    if set(COLUMNS) <= set(known):
        np.testing.assert_array_equal(np.broadcast_to(low, truth.shape), truth)
        np.testing.assert_array_equal(np.broadcast_to(high, truth.shape), truth)


@given(
    st.permutations(COLUMNS).flatmap(lambda order: trees(list(order))),
    st.sets(st.sampled_from(NAMES)),
)
def test_where_each_column_stands_once_the_bounds_are_as_close_as_can_be(
    expression: Expression, names: set[str]
) -> None:
    known: dict[Expression, Kleene] = {Column(name): kleene(Column(name), TABLE) for name in names}
    low, high = (np.broadcast_to(each, (TABLE.rows,)) for each in decide(expression, known.get))
    truth = kleene(expression, TABLE)
    # Rows that agree on what is known are one world; whatever else they hold may be the case.
    worlds: dict[bytes, list[int]] = {}
    for row in range(TABLE.rows):
        seen = np.array([known[column][row] for column in known], np.int8).tobytes()
        worlds.setdefault(seen, []).append(row)
    for rows in worlds.values():
        assert set(low[rows].tolist()) == {truth[rows].min()}
        assert set(high[rows].tolist()) == {truth[rows].max()}


def test_what_is_known_is_not_looked_into() -> None:
    a, b, c = Column("a"), Column("b"), Column("c")
    inner = Or((a, b))
    asked: list[Expression] = []

    def known(node: Expression) -> Kleene | None:
        asked.append(node)
        return np.array([1], np.int8) if node == inner else None

    whole = And((inner, Not(c)))
    low, high = decide(whole, known)
    assert asked == [whole, inner, Not(c), c]
    assert (low.tolist(), high.tolist()) == ([-1], [1])


@pytest.mark.parametrize(("value", "truth"), [(True, 1), (False, -1), (None, 0)])
def test_constants_need_not_be_asked_for(value: bool | None, truth: int) -> None:
    low, high = decide(Literal(value), lambda _: pytest.fail("asked"))
    assert low.tolist() == high.tolist() == [truth]


def test_a_leaf_nobody_knows_may_be_anything() -> None:
    low, high = decide(Comparison(">", Column("x"), Literal(1)), lambda _: None)
    assert (low.tolist(), high.tolist()) == ([-1], [1])
