from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ids.errors import DataError, StateError
from ids.model import (
    And,
    Column,
    ColumnData,
    Comparison,
    Expression,
    In,
    IsNull,
    Kind,
    Like,
    Literal,
    Not,
    Or,
    Table,
)
from ids.predicates import Refinement, truth
from ids.predicates import atoms as cells_module
from tests.predicates import strategies as some


def stacked(predicates: Sequence[Expression], table: Table) -> npt.NDArray[np.int8]:
    """Compute each row's signature by K tests, for comparison with the refinement."""
    if not predicates:
        return np.zeros((table.rows, 0), np.int8)
    return np.stack([truth(predicate, table) for predicate in predicates], axis=1)


def check(refinement: Refinement, table: Table) -> npt.NDArray[np.uint32]:
    atoms = refinement.assign(table)
    assert atoms.dtype == np.uint32
    assert atoms.shape == (table.rows,)
    wanted = stacked(refinement.predicates, table)
    np.testing.assert_array_equal(refinement.truths[atoms], wanted)
    np.testing.assert_array_equal(refinement.holds(atoms), wanted == 1)
    assert len(set(atoms.tolist())) == len({row.tobytes() for row in wanted})
    assert all(atom < refinement.atoms for atom in atoms.tolist())
    return atoms


def equal(name: str, value: Any) -> Comparison:
    return Comparison("=", Column(name), Literal(value))


def above(name: str, value: Any) -> Comparison:
    return Comparison(">", Column(name), Literal(value))


def flags(seed: int, rows: int, width: int, share: float = 0.5) -> Table:
    rng = np.random.default_rng(seed)
    columns = {
        f"b{k}": ColumnData(Kind.BOOLEAN, rng.random(rows) < share, rng.random(rows) < 0.9)
        for k in range(width)
    }
    return Table(columns, rows)


def words(cells: list[str | None], extra: Sequence[str] = ()) -> Table:
    return Table({"s": some.column(cells, "text", extra)}, len(cells))


@given(
    some.compositions(),
    st.lists(st.tuples(some.rows(), st.lists(some.TEXTS, max_size=20)), min_size=1, max_size=3),
    st.randoms(use_true_random=False),
)
def test_an_atom_is_what_every_predicate_says_across_batches_releases_and_restores(
    predicates: list[Expression], batches: list[tuple[list[dict[str, Any]], list[str]]], random: Any
) -> None:
    tables = [some.table(rows, extra) for rows, extra in batches]
    refinement = Refinement(predicates)
    live: dict[bytes, int] = {}
    for table in tables:
        try:
            stacked(predicates, table)
        except DataError:
            assume(False)
        atoms = check(refinement, table)
        for atom in set(atoms.tolist()):
            known = live.setdefault(refinement.signature(atom), atom)
            assert known == atom, "a signature keeps its id until it is released"
        gone = [signature for signature in live if random.random() < 0.3]
        refinement.release([live.pop(signature) for signature in gone])

    restored = Refinement(predicates)
    ids = np.array(list(live.values()), np.int64)
    restored.preload(refinement.truths[ids], ids)
    for table in tables:
        check(restored, table)
    for signature, atom in live.items():
        assert restored.signature(atom) == signature


def test_two_dictionary_columns_and_four_predicates_make_nine_atoms() -> None:
    rng = np.random.default_rng(1)
    columns = {
        "region": some.column([f"r{k}" for k in rng.integers(0, 5, 500)], "text"),
        "tier": some.column([f"t{k}" for k in rng.integers(0, 4, 500)], "text"),
    }
    predicates = [
        equal("region", "r1"),
        equal("region", "r2"),
        equal("tier", "t0"),
        equal("tier", "t3"),
    ]
    refinement = Refinement(predicates)
    check(refinement, Table(columns, 500))
    assert refinement.atoms == 9


def test_without_predicates_every_row_is_atom_0() -> None:
    refinement = Refinement([])
    assert refinement.assign(words(["a", "b"])).tolist() == [0, 0]
    assert refinement.atoms == 1
    assert refinement.truths.shape[1] == 0
    assert refinement.signature(0) == b""
    refinement.release([0])
    assert refinement.assign(words(["a", "b"])).tolist() == [0, 0]


def test_an_empty_batch_meets_no_atom() -> None:
    refinement = Refinement([equal("s", "a")])
    assert refinement.assign(words([])).tolist() == []
    assert refinement.atoms == 0
    check(refinement, words(["a", None, "b"]))


def test_a_column_of_nothing_but_null_needs_no_dictionary() -> None:
    refinement = Refinement([equal("s", "a"), IsNull(Column("s"))])
    atoms = check(refinement, words([None, None, None]))
    assert refinement.truths[atoms[0]].tolist() == [-1, 1]


def test_dictionaries_that_grow_shrink_and_change_their_order() -> None:
    predicates: list[Expression] = [equal("s", f"w{k}") for k in range(40)]
    refinement = Refinement([*predicates, Like(Column("s"), "w1%")])
    rng = np.random.default_rng(2)
    for batch in range(30):
        cells = [f"w{k}" for k in rng.integers(0, 3 + 2 * batch, 20)]
        extra = [f"w{k}" for k in rng.permutation(50 if batch % 3 else 0)]
        check(refinement, words([*cells, None], extra))


def test_one_dictionary_object_seen_again_with_few_rows_then_with_many() -> None:
    column = some.column([f"w{k}" for k in range(100)], "text")
    refinement = Refinement([equal("s", f"w{k}") for k in range(0, 100, 7)])
    for few in ([3], [7, 7, 8], [98, 0]):
        check(refinement, Table({"s": column.take(np.array(few))}, len(few)))
    check(refinement, Table({"s": column}, 100))
    check(refinement, Table({"s": column.take(slice(50, 60))}, 10))


@pytest.mark.parametrize("of", ["int", "float"])
def test_cuts_are_exact_at_the_edges_of_the_integers_and_of_the_doubles(of: str) -> None:
    edges = [0, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**63, 10**30, 10**400]
    literals = [*edges, -0.0, 0.5, 2.0**53, 2.0**63, -(2.0**63), 1e308, 5e-324, float("inf")]
    predicates: list[Expression] = [
        Comparison(op, Column("x"), Literal(value)) for value in literals for op in some.OPERATORS
    ]
    predicates.append(In(Column("x"), tuple(map(Literal, [*literals, None]))))
    whole = [0, 1, -1, 2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1, -(2**63), None]
    wild = [0.5, -0.0, 2.0**63, -(2.0**63), 1e308, 5e-324, 1e30]
    infinite = [float("nan"), float("inf"), float("-inf")]
    cells = whole if of == "int" else [*whole, *wild, *infinite]
    check(Refinement(predicates), Table({"x": some.column(cells, of)}, len(cells)))


def test_a_column_may_be_integers_in_one_batch_and_doubles_in_the_next() -> None:
    refinement = Refinement([above("x", 2), above("x", 2.5), equal("x", 3)])
    batches: list[tuple[list[Any], str]] = [
        ([1, 2, 3, 4], "int"),
        ([2.2, 2.7, 3.0, 9.0], "float"),
        ([3, 2], "int"),
    ]
    for cells, of in batches:
        check(refinement, Table({"x": some.column(cells, of)}, len(cells)))


def test_hundreds_of_thresholds_are_searched() -> None:
    rng = np.random.default_rng(3)
    predicates: list[Expression] = [above("x", float(v)) for v in rng.normal(size=300)]
    x = rng.normal(size=1000)
    x[::7] = np.nan
    valid = rng.random(1000) < 0.9
    check(Refinement(predicates), Table({"x": ColumnData(Kind.NUMBER, x, valid)}, 1000))


def test_more_predicates_than_a_word_has_bits() -> None:
    rng = np.random.default_rng(4)
    table = Table(
        {**flags(5, 400, 6).columns, "x": ColumnData(Kind.NUMBER, rng.normal(size=400))}, 400
    )
    predicates: list[Expression] = []
    for k in range(130):
        flag = Column(f"b{k % 6}")
        operands = (flag, above("x", k / 50 - 1.3), Not(Column("b0")))
        predicates.append(And(operands) if k % 2 else Or(operands))
    check(Refinement(predicates), table)


@pytest.mark.parametrize("width", [14, 45, 100])
def test_more_than_a_million_cells_are_numbered_as_they_come(width: int) -> None:
    assert 3**width > 2**20
    refinement = Refinement([Column(f"b{k}") for k in range(width)])
    for batch in range(3):
        atoms = check(refinement, flags(batch, 3000, width, 0.5 if batch else 0.01))
        refinement.release(np.unique(atoms)[::2])
    assert refinement.atoms < 9000


def test_cells_are_forgotten_when_they_grow_too_many_and_atoms_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cells_module, "_DENSE", 16)
    monkeypatch.setattr(cells_module, "_REMEMBERED_CELLS", 16)
    refinement = Refinement([Column(f"b{k}") for k in range(8)])
    first = check(refinement, flags(0, 300, 8))
    refinement.release(
        np.arange(refinement.atoms)[~np.isin(np.arange(refinement.atoms), first[:3])]
    )
    kept = {refinement.signature(atom): atom for atom in first[:3].tolist()}
    for batch in range(1, 6):
        atoms = check(refinement, flags(batch, 300, 8))
        for atom in atoms.tolist():
            assert kept.get(refinement.signature(atom), atom) == atom
        gone = [atom for atom in set(atoms.tolist()) if refinement.signature(atom) not in kept]
        refinement.release(gone)


def test_after_cells_are_numbered_afresh_each_atom_still_knows_its_own_cells() -> None:
    refinement = Refinement([Or((equal("s", f"w{k}"), equal("t", f"w{k}"))) for k in range(20)])
    rng = np.random.default_rng(8)
    for batch in range(1, 21):
        pair = [[f"w{k}" for k in rng.integers(0, batch, 30)] for _ in range(2)]
        columns = {name: some.column(cells, "text") for name, cells in zip("st", pair, strict=True)}
        check(refinement, Table(columns, 30))
        owner = refinement._atom_of_cell
        for atom in range(refinement.atoms):
            chain, cell = [], int(refinement._first[atom])
            while cell >= 0:
                chain.append(cell)
                cell = int(refinement._following[cell])
            assert sorted(chain) == np.flatnonzero(owner == atom).tolist()


def test_a_released_id_is_given_again_and_means_the_new_signature() -> None:
    refinement = Refinement([equal("s", "a"), equal("s", "b")])
    a, b = check(refinement, words(["a", "b"])).tolist()
    refinement.release(np.array([a]))
    (c,) = check(refinement, words(["c"])).tolist()
    assert c == a
    assert refinement.atoms == 2
    again = check(refinement, words(["a", "b", "c"])).tolist()
    assert again[1:] == [b, c]
    assert again[0] == 2


def test_ids_skipped_by_a_restore_are_used_before_new_ones() -> None:
    refinement = Refinement([equal("s", "a")])
    refinement.preload(np.array([[1]], np.int8), [2])
    assert check(refinement, words(["a", "b", None, "a"])).tolist() == [2, 1, 0, 2]
    assert refinement.atoms == 3


def test_what_no_one_assigned_is_not_released() -> None:
    refinement = Refinement([equal("s", "a")])
    refinement.assign(words(["a"]))
    refinement.release([0])
    for wrong in ([0], [5], [-1]):
        with pytest.raises(StateError, match="release only what was assigned"):
            refinement.release(wrong)


def test_a_restore_that_does_not_fit_is_refused() -> None:
    two = np.array([[1], [1]], np.int8)
    with pytest.raises(StateError, match="twice"):
        Refinement([equal("s", "a")]).preload(two, [0, 1])
    with pytest.raises(StateError, match="twice"):
        Refinement([equal("s", "a")]).preload(np.array([[1], [0]], np.int8), [3, 3])
    with pytest.raises(StateError, match="do not fit"):
        Refinement([]).preload(two, [0, 1])
    used = Refinement([equal("s", "a")])
    used.assign(words(["a"]))
    with pytest.raises(StateError, match="already assigned"):
        used.preload(two[:1], [0])


def test_twenty_thousand_operands_on_two_columns_are_two_factors() -> None:
    operands: list[Expression] = [equal("x", k) for k in range(0, 4000, 2)]
    operands += [above("y", k + 10) for k in range(18_000)]
    rng = np.random.default_rng(6)
    columns = {
        "x": ColumnData(Kind.NUMBER, rng.integers(0, 5000, 50)),
        "y": ColumnData(Kind.NUMBER, rng.integers(-100, 20, 50)),
    }
    check(Refinement([Or(tuple(operands))]), Table(columns, 50))


def test_a_condition_on_several_columns_and_its_negation_share_one_test() -> None:
    both = Comparison(">", Column("x"), Column("y"))
    columns = {name: some.column([1, 2, None, 3], "int") for name in "xz"}
    table = Table({**columns, "y": some.column([2, 1, 1, 3], "int")}, 4)
    refinement = Refinement([both, Not(both), And((both, Not(both))), Literal(None)])
    atoms = check(refinement, table)
    assert atoms[0] == atoms[3]
    assert refinement.atoms == 3


def test_a_batch_longer_than_a_block_of_rows() -> None:
    rng = np.random.default_rng(7)
    n = 200_001
    columns = {
        "x": ColumnData(Kind.NUMBER, rng.integers(0, 9, n)),
        "b": ColumnData(Kind.BOOLEAN, rng.random(n) < 0.5, rng.random(n) < 0.9),
    }
    predicates: list[Expression] = [
        above("x", 3),
        Or((Column("b"), equal("x", 8))),
        Comparison("<", Column("x"), Literal(1)),
    ]
    check(Refinement(predicates), Table(columns, n))


def test_strided_and_read_only_columns_are_read() -> None:
    values = np.arange(40)
    values.flags.writeable = False
    column = some.column(["a", "b"] * 20, "text").take(slice(None, None, 2))
    flag = ColumnData(Kind.BOOLEAN, np.arange(40)[::2] > 7, (np.arange(40) % 3 > 0)[::2])
    number = ColumnData(Kind.NUMBER, values[::2], flag.valid)
    table = Table({"s": column, "b": flag, "x": number}, 20)
    check(Refinement([equal("s", "a"), Column("b"), above("x", 5)]), table)
