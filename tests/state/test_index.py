"""The index: whatever comes, leaves, moves or changes its type, a scan finds the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ids.errors import UnknownNameError
from ids.kernels import build_block
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
    Not,
    Or,
    Table,
)
from ids.predicates import truth
from ids.state import Index, Retained
from ids.state import retained_rows as retained_module
from tests.predicates import strategies as some

SCHEMA = {name: some.KINDS[of] for name, of in some.COLUMNS.items()}
SIZES = [(4, 8, 32), (2, 16), (32, 128, 512), (1,)]

# Conditions of the kind that an index is for, so that most examples have something to find.
INDEXED = ["i", "f", "s", "t", "b", "w"]


@st.composite
def simple(draw: st.DrawFn) -> Expression:
    name = draw(st.sampled_from(INDEXED))
    of = some.COLUMNS[name]
    column = Column(name)
    literal = Literal(draw(some.LITERALS[of]))
    more = [Literal(v) for v in draw(st.lists(st.none() | some.LITERALS[of], max_size=3))]
    leaves: list[Expression] = [Comparison(op, column, literal) for op in some.OPERATORS]
    leaf = draw(st.sampled_from([*leaves, In(column, (literal, *more)), IsNull(column)]))
    turned: list[Expression] = [leaf, leaf, Not(leaf), IsTrue(leaf), IsTrue(leaf, False)]
    return draw(st.sampled_from(turned))


def asked() -> st.SearchStrategy[Expression]:
    several = st.lists(simple() | some.conditions(2), min_size=2, max_size=3).map(tuple)
    either = st.builds(And, several) | st.builds(Or, several)
    return simple() | either | st.builds(Not, either) | some.conditions(3)


class Window:
    """A retained window and its index, changed together as the engine does."""

    def __init__(self, columns: Sequence[str], sizes: tuple[int, ...], seed: int) -> None:
        self.retained = Retained(SCHEMA)
        self.index = Index(columns, SCHEMA, sizes)
        self.rng = np.random.default_rng(seed)
        self.clock = 0

    def batch(self, templates: list[dict[str, Any]], count: int) -> Table:
        """Rows like the templates; some numbers, texts and instants are each their own."""
        rng = self.rng
        rows = [dict(templates[k]) for k in rng.integers(0, len(templates), count)]
        for row in rows:
            if row["f"] is not None and rng.random() < 0.5:
                row["f"] = float(rng.normal())
            if row["t"] is not None and rng.random() < 0.3:
                row["t"] = f"a{rng.integers(0, 50)}"
            if row["i"] is not None and rng.random() < 0.3:
                row["i"] = int(rng.integers(-40, 40))
        return some.table(rows, extra=["never used"])

    def ingest(self, table: Table, late: int) -> None:
        times = np.sort(self.rng.integers(0, 10, table.rows)) + self.clock - late
        self.clock += 10
        tags = np.zeros(table.rows, np.uint32)
        block = self.retained.block(table, tags, times=times)
        self.index.forget_from(self.retained.insert(block))

    def expire(self, count: int) -> None:
        self.retained.expire(min(count, len(self.retained)))
        self.retained.forget()

    def delete(self, share: float) -> None:
        if len(self.retained):
            places = np.flatnonzero(self.rng.random(len(self.retained)) < share)
            first = int(places[0]) if len(places) else len(self.retained)
            self.retained.delete(places, ordered=True)
            self.retained.forget()
            self.index.forget_from(first)

    def check(self, condition: Expression) -> None:
        access = self.index.access(condition, self.retained)
        if access is None:
            return
        places = access.places(self.retained)
        assert places.dtype == np.int64
        if not len(self.retained):
            assert not len(places)
            return
        expected = np.flatnonzero(truth(condition, self.retained.table()) == 1)
        assert places.tolist() == expected.tolist()
        assert len(places) <= access.candidates <= len(self.retained)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ingest"), st.integers(0, 120), st.sampled_from([0, 0, 0, 5, 30, 1000])),
        st.tuples(st.just("expire"), st.integers(0, 150), st.just(0)),
        st.tuples(st.just("delete"), st.sampled_from([1, 30]), st.just(0)),
        st.tuples(st.just("follow"), st.just(0), st.just(0)),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=150)
@given(
    some.rows(6).filter(len),
    STEPS,
    st.lists(asked(), min_size=1, max_size=3),
    st.sampled_from(SIZES),
    st.sets(st.sampled_from(INDEXED), min_size=1),
    st.integers(0, 2**32 - 1),
)
def test_a_scan_finds_the_same_rows(
    templates: list[dict[str, Any]],
    steps: list[tuple[str, int, int]],
    conditions: list[Expression],
    sizes: tuple[int, ...],
    columns: set[str],
    seed: int,
) -> None:
    few, retained_module._FEW_WORDS = retained_module._FEW_WORDS, 8
    try:
        window = Window(sorted(columns), sizes, seed)
        for what, count, late in [("ingest", 60, 0), *steps]:
            match what:
                case "ingest":
                    window.ingest(window.batch(templates, count), late)
                case "expire":
                    window.expire(count)
                case "delete":
                    window.delete(count / 100)
            if what == "follow" or seed % 2:
                window.index.follow(window.retained)
            for condition in conditions:
                window.check(condition)
    finally:
        retained_module._FEW_WORDS = few


def numbers(values: npt.NDArray[Any], valid: npt.NDArray[np.bool_] | None = None) -> Table:
    return Table({"x": ColumnData(Kind.NUMBER, values, valid)}, len(values))


def filled(table: Table, kinds: dict[str, Kind]) -> Retained:
    retained = Retained(kinds)
    put(retained, table)
    return retained


def put(retained: Retained, table: Table) -> None:
    tags = np.zeros(table.rows, np.uint32)
    retained.insert(retained.block(table, tags))


X = Column("x")
S = Column("s")
KIND = {"x": Kind.NUMBER}


def where(index: Index, condition: Expression, retained: Retained) -> list[int]:
    access = index.access(condition, retained)
    assert access is not None
    places: list[int] = access.places(retained).tolist()
    return places


def tree(rng: np.random.Generator, names: Sequence[str], depth: int) -> Expression:
    """AND, OR and NOT of comparisons that hold on a good part of the rows each."""
    choice = int(rng.integers(0, 5)) if depth else 4
    if choice == 0:
        return Not(tree(rng, names, depth - 1))
    if choice < 4:
        operands = tuple(tree(rng, names, depth - 1) for _ in range(rng.integers(2, 4)))
        return And(operands) if choice < 3 else Or(operands)
    op, name = rng.choice(some.OPERATORS), rng.choice(names)
    return Comparison(str(op), Column(str(name)), Literal(int(rng.integers(0, 6))))


@pytest.mark.parametrize("sizes", SIZES)
def test_sets_of_several_columns_meet_and_unite(sizes: tuple[int, ...]) -> None:
    """Conditions drawn apart from the rows mostly hold on none: here most of them hold on some."""
    rng = np.random.default_rng(9)
    names = ["x", "y", "z"]  # z has no index: it is put to the rows that are left
    kinds = dict.fromkeys(names, Kind.NUMBER)
    retained, index = Retained(kinds), Index(["x", "y"], kinds, sizes)
    found = 0
    for _ in range(100):
        cells = {n: (rng.integers(0, 6, 40), rng.random(40) < 0.9) for n in names}
        columns = {n: ColumnData(Kind.NUMBER, *cell) for n, cell in cells.items()}
        put(retained, Table(columns, 40))
        retained.expire(max(0, len(retained) - 300))
        condition = tree(rng, names, 3)
        if index.prepare(condition) is not None:
            places = where(index, condition, retained)
            assert places == np.flatnonzero(truth(condition, retained.table()) == 1).tolist()
            found += 0 < len(places) < len(retained)
    assert found > 20


@given(
    st.lists(
        st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), min_size=1, max_size=200
    )
)
def test_a_block_is_a_stable_sort_with_nulls_last(cells: list[int | None]) -> None:
    valid = np.array([cell is not None for cell in cells])
    values = np.array([cell or 0 for cell in cells], np.int64)
    order = np.zeros(len(cells), np.uint16)
    keys, starts = np.zeros(len(cells), np.int64), np.zeros(len(cells), np.int32)
    known, entries, own = build_block(
        values, valid, False, 0, len(cells), order, 0, keys, starts, 0
    )
    inside = np.flatnonzero(valid)
    expected = inside[np.argsort(values[inside], kind="stable")]
    assert order.tolist() == [*expected.tolist(), *np.flatnonzero(~valid).tolist()]
    assert known == len(inside)
    assert entries <= len(cells) // 16 + 1
    assert keys[:entries].tolist() == values[order[starts[:entries]]].tolist()
    if own:
        assert keys[:entries].tolist() == sorted(set(values[inside].tolist()))


def test_the_number_of_matches_is_known_before_a_row_is_looked_at() -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(0, 300, 100_000)
    retained = filled(numbers(values), KIND)
    index = Index(["x"], KIND)
    access = index.access(Comparison("=", X, Literal(7)), retained)
    assert access is not None
    behind = 100_000 % 1024
    assert access.candidates == np.count_nonzero(values[:-behind] == 7) + behind
    assert access.places(retained).tolist() == np.flatnonzero(values == 7).tolist()


def test_a_large_window_costs_few_bytes_a_row() -> None:
    rng = np.random.default_rng(4)
    kinds = {"x": Kind.NUMBER, "y": Kind.NUMBER}
    table = Table(
        {
            "x": ColumnData(Kind.NUMBER, rng.integers(0, 260, 300_000)),
            "y": ColumnData(Kind.NUMBER, rng.normal(size=300_000)),
        },
        300_000,
    )
    retained = filled(table, kinds)
    index = Index(["x", "y"], kinds)
    for _ in range(40):
        put(retained, table.take(slice(0, 10_000)))
        retained.expire(10_000)
        index.follow(retained)
    assert index.nbytes <= 2 * 4 * 300_000
    both = And((Comparison("<", Column("y"), Literal(-3.0)), Comparison(">", X, Literal(200))))
    expected = np.flatnonzero(truth(both, retained.table()) == 1)
    assert where(index, both, retained) == expected.tolist()


def test_rows_of_the_first_block_that_have_expired_do_not_mislead() -> None:
    values = np.random.default_rng(5).normal(size=2_000)
    retained = filled(numbers(values), KIND)
    index = Index(["x"], KIND, (64, 512))
    for gone in range(61, 1_900, 61):
        index.follow(retained)
        retained.expire(61)
        for constant in (-1.0, -0.1, 0.0, 0.5, 2.0):
            for op in ("<", ">="):
                condition = Comparison(op, X, Literal(constant))
                inside = values[gone:]
                held = inside < constant if op == "<" else inside >= constant
                assert where(index, condition, retained) == np.flatnonzero(held).tolist()


def test_doubles_are_in_order_with_one_zero_and_nan_above() -> None:
    values = np.array([np.nan, -0.0, 0.0, -np.inf, np.inf, -1.5, 5e-324, -np.nan, 1.5])
    retained = filled(numbers(np.tile(values, 300)), KIND)
    index = Index(["x"], KIND, (64, 512))
    table = retained.table()
    for op in ("=", "<>", "<", "<=", ">", ">="):
        for constant in (0.0, -0.0, 0, -1.5, 1.7976931348623157e308, -5e-324):
            condition = Comparison(op, X, Literal(constant))
            expected = np.flatnonzero(truth(condition, table) == 1)
            assert where(index, condition, retained) == expected.tolist(), (op, constant)


def test_whole_numbers_that_turn_into_doubles_are_indexed_anew() -> None:
    retained = filled(numbers(np.arange(100)), KIND)
    index = Index(["x"], KIND, (8, 64))
    above = Comparison(">", X, Literal(97.5))
    assert where(index, above, retained) == [98, 99]
    put(retained, numbers(np.array([97.75])))
    assert where(index, above, retained) == [98, 99, 100]


def test_words_that_get_new_codes_are_indexed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retained_module, "_FEW_WORDS", 0)
    kinds = {"s": Kind.TEXT}
    words = np.array([f"w{k}" for k in range(100)], object)
    codes = np.arange(100, dtype=np.int32)
    retained = filled(Table({"s": ColumnData(Kind.TEXT, codes, None, words)}, 100), kinds)
    index = Index(["s"], kinds, (8, 64))
    last = Comparison("=", S, Literal("w99"))
    assert where(index, last, retained) == [99]
    retained.expire(80)
    retained.forget()
    assert where(index, last, retained) == [19]
    assert where(index, Like(S, "w9%"), retained) == list(range(10, 20))


def test_a_word_that_comes_later_is_found() -> None:
    kinds = {"s": Kind.TEXT}
    words = np.array(["EU", "US"], object)
    one = Table({"s": ColumnData(Kind.TEXT, np.zeros(1, np.int32), None, words[:1])}, 1)
    other = Table({"s": ColumnData(Kind.TEXT, np.ones(1, np.int32), None, words)}, 1)
    retained = filled(one, kinds)
    index = Index(["s"], kinds, (1,))
    prepared = index.prepare(Comparison("=", S, Literal("US")))
    assert prepared is not None
    assert prepared.find(retained).places().tolist() == []
    put(retained, other)
    assert prepared.find(retained).places().tolist() == [1]


def test_an_empty_window_has_no_candidates() -> None:
    retained = Retained(KIND)
    index = Index(["x"], KIND)
    index.follow(retained)
    access = index.access(IsNull(X), retained)
    assert access is not None
    assert access.candidates == 0
    assert access.places(retained).tolist() == []


def test_a_column_must_exist_to_be_indexed() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown column 'regoin'; did you mean 'region'"):
        Index(["regoin"], {"region": Kind.TEXT})


HELD = Comparison("=", S, Literal("a"))
OTHER = Comparison(">", Column("y"), Literal(1))


@pytest.mark.parametrize(
    ("condition", "useful"),
    [
        (HELD, True),
        (And((HELD, OTHER)), True),
        (Or((HELD, OTHER)), False),
        (Not(And((HELD, OTHER))), False),
        (Not(Or((HELD, OTHER))), True),
        (IsTrue(And((HELD, OTHER)), True), True),
        (IsTrue(Or((HELD, OTHER)), False), True),
        (Not(IsTrue(And((HELD, OTHER)), False)), True),
        (Not(IsTrue(And((HELD, OTHER)))), False),
        (OTHER, False),
        (Literal(True), False),
        (Like(S, "a%"), True),
        (Comparison("=", Call("LOWER", (S,)), Literal("a")), True),
        (Comparison("=", Arithmetic("%", X, Literal(2)), Literal(0)), False),
        (Comparison(">", X, Literal(float("inf"))), False),
    ],
)
def test_an_index_is_of_use_where_it_narrows_the_rows(condition: Expression, useful: bool) -> None:
    kinds = {"s": Kind.TEXT, "x": Kind.NUMBER, "y": Kind.NUMBER}
    assert (Index(["s", "x"], kinds).prepare(condition) is not None) == useful
