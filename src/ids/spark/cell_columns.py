"""Rows to cells in the JVM: one number a row that decides the truth of every predicate.

As in process (``ids.predicates.atoms``) the predicates are split into units by the column they
read, and a column's units sort its values into classes. A row's cell is the mixed-radix number of
its classes; what the predicates are in a cell is worked out on the cell, once a group, not a row.
A column that many constants are compared with is cheaper to group by as it is than to classify
row by row: then its units, too, are worked out on the group.

Which predicates hold on a row is packed into BIGINTs of bits for the way to the workers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ids.model import (
    And,
    Column,
    ColumnData,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTrue,
    Kind,
    Literal,
    Not,
    Or,
    children,
)
from ids.predicates import (
    BooleanFactor,
    ConditionFactor,
    Factor,
    RangeFactor,
    Split,
    TextFactor,
    null_of,
    objects,
    split,
)
from ids.spark.condition_sql import compiled, constant, may_overflow, search
from ids.spark.typed_column import Typed, quoted, spell

TRUTH_BITS = 62

_MANY_CONSTANTS = 16
_LARGEST_CELL = 2**62  # a cell must stay a BIGINT


@dataclass(frozen=True, slots=True)
class Cells:
    """How rows are grouped so that every predicate is constant in a group.

    subjects    (name, SQL) over the columns: values that several classes ask for
    groups      (name, SQL) over columns and subjects: what to group by
    predicates  SQL over the groups' names, one a predicate: TRUE, FALSE or NULL
    """

    subjects: list[tuple[str, str]]
    groups: list[tuple[str, str]]
    predicates: list[str]

    def prepared(self, data: DataFrame) -> DataFrame:
        """Rows with the subjects beside their own columns."""
        if not self.subjects:
            return data
        return data.withColumns({name: F.expr(text) for name, text in self.subjects})


@dataclass(frozen=True, slots=True)
class _Digit:
    """A factor's class as SQL, and what each of its units is in each class."""

    text: str
    truths: npt.NDArray[np.int8]
    names: list[str]


def groupable_columns(predicates: Sequence[Expression], columns: Mapping[str, Typed]) -> list[str]:
    """Text columns that are cheaper to group by than to classify, if they hold few values."""
    factors = [f for f in _split(predicates, columns).factors if isinstance(f, TextFactor)]
    constants = {factor.name: _constants(factor) for factor in factors}
    return [n for n, known in constants.items() if known is None or len(known) > _MANY_CONSTANTS]


def cells_of(
    predicates: Sequence[Expression], columns: Mapping[str, Typed], raw: Collection[str] = ()
) -> Cells:
    """The cells of some bound predicates; columns in ``raw`` are grouped by as they are."""
    parted = _split(predicates, columns)
    subjects: list[tuple[str, str]] = []
    digits: list[_Digit] = []
    groups: list[tuple[str, str]] = []
    units: dict[str, Typed] = {}
    for number, (factor, names) in enumerate(zip(parted.factors, parted.names, strict=True)):
        if isinstance(factor, TextFactor) and factor.name in raw:
            name = f"ids_r{number}"
            groups.append((name, columns[factor.name].text))
            held = {factor.name: Typed(quoted(name), Kind.TEXT)}
            for unit, condition in zip(names, factor.units, strict=True):
                units[unit] = compiled(condition, held)
            continue
        digits.extend(_digits(factor, names, columns, f"ids_s{number}", subjects))
    for text, digit in _packed(digits, groups):
        for position, unit in enumerate(digit.names):
            units[unit] = Typed(_unit(text, digit.truths[:, position]), Kind.BOOLEAN)
    return Cells(subjects, groups, [_truth(skeleton, units) for skeleton in parted.skeletons])


def _truth(condition: Expression, columns: Mapping[str, Typed]) -> str:
    """A condition as BOOLEAN, which Spark does not take NULL for."""
    return f"cast({compiled(condition, columns).text} as boolean)"


def _split(predicates: Sequence[Expression], columns: Mapping[str, Typed]) -> Split:
    kinds = {name: typed.kind or Kind.NUMBER for name, typed in columns.items()}
    return split(predicates, kinds, lambda predicate: may_overflow(predicate, columns))


def _packed(digits: list[_Digit], groups: list[tuple[str, str]]) -> Iterator[tuple[str, _Digit]]:
    """Digits as numbers of as few BIGINTs as hold them; yields how each reads back."""
    numbers: list[list[tuple[int, _Digit]]] = []
    weight = _LARGEST_CELL
    for digit in digits:
        classes = len(digit.truths)
        if weight * classes >= _LARGEST_CELL:
            numbers.append([])
            weight = 1
        numbers[-1].append((weight, digit))
        weight *= classes
    for position, weighted in enumerate(numbers):
        name = f"ids_c{position}"
        groups.append((name, " + ".join(f"({d.text}) * {weight}L" for weight, d in weighted)))
        for weight, digit in weighted:
            yield f"pmod({name} div {weight}L, {len(digit.truths)}L)", digit


def _unit(digit: str, truths: npt.NDArray[np.int8]) -> str:
    """A unit's truth, read off the class."""
    held, unknown = (np.flatnonzero(truths == wanted).tolist() for wanted in (1, -1))
    text = f"{digit} IN ({', '.join(f'{c}L' for c in held)})" if held else "false"
    if not unknown:
        return f"({text})"
    listed = ", ".join(f"{c}L" for c in unknown)
    return f"(CASE WHEN {digit} IN ({listed}) THEN NULL ELSE {text} END)"


def _digits(
    factor: Factor,
    names: list[str],
    columns: Mapping[str, Typed],
    subject: str,
    subjects: list[tuple[str, str]],
) -> Iterator[_Digit]:
    """A factor's classes; what they are worked out of is added to ``subjects``."""
    match factor:
        case RangeFactor():
            typed = compiled(factor.subject, columns)
            subjects.append((subject, typed.text))
            yield _Digit(_ranged(factor, typed, subject), factor.truths, names)
        case ConditionFactor():
            subjects.append((subject, _truth(factor.subject, columns)))
            # what the units are where the condition is FALSE, NULL, TRUE
            yield _Digit(_by_truth(subject, 2, 0, 1), factor.truths[factor.class_of], names)
        case BooleanFactor():
            no, yes = factor.classify(
                factor.name, ColumnData(Kind.BOOLEAN, np.array([False, True]))
            )
            (unknown,) = factor.classify(factor.name, null_of(Kind.BOOLEAN))
            text = _by_truth(columns[factor.name].text, yes, no, unknown)
            yield _Digit(text, factor.truths, names)
        case TextFactor() if _constants(factor) is not None:
            yield _Digit(_by_constant(factor, columns[factor.name].text), factor.truths, names)
        case _:
            for position, (name, unit) in enumerate(zip(names, factor.units, strict=True)):
                condition = f"{subject}_{position}"
                subjects.append((condition, _truth(unit, columns)))
                text = _by_truth(condition, 2, 0, 1)
                yield _Digit(text, np.array([[0], [-1], [1]], np.int8), [name])


def _by_truth(condition: str, yes: int, no: int, unknown: int) -> str:
    """The class of a row by what a condition is."""
    return f"CASE WHEN {condition} THEN {yes}L WHEN NOT {condition} THEN {no}L ELSE {unknown}L END"


def _ranged(factor: RangeFactor, typed: Typed, subject: str) -> str:
    """The class of a number or an instant: a search among the cuts."""
    whole = typed.whole or typed.kind is Kind.TIME
    kind = typed.kind or Kind.NUMBER
    cuts, class_of, null_class = factor.divide(kind, np.dtype(np.int64 if whole else np.float64))
    spelled = [constant(cut).text for cut in cuts.tolist()]
    found = search(f"{subject} <", spelled, [f"{number}L" for number in class_of])
    return f"CASE WHEN {subject} IS NULL THEN {null_class}L ELSE {found} END"


def _constants(factor: TextFactor) -> list[str] | None:
    """The constants a text is compared with; None if its units ask for more than equality."""
    found: dict[str, None] = {}
    stack = list(factor.units)
    while stack:
        node = stack.pop()
        match node:
            case And() | Or() | Not() | IsTrue():
                stack.extend(children(node))
                continue
            case IsNull(Column()):
                continue
            case Comparison("=" | "<>" | "<=>", Column(), Literal(value)):
                values: list[object] = [value]
            case In(Column(), options):
                values = [option.value for option in options]
            case _:
                return None
        if not all(value is None or isinstance(value, str) for value in values):
            return None
        found.update({str(value): None for value in values if value is not None})
    return list(found)


def _by_constant(factor: TextFactor, column: str) -> str:
    """The class of a text by the constants it may equal; all other texts are one class."""
    known = _constants(factor)
    assert known is not None
    stranger = "".join(sorted(known)) + "?"  # longer than any of them
    every = [*known, stranger]
    codes = np.arange(len(every), dtype=np.int32)
    classes = factor.classify(factor.name, ColumnData(Kind.TEXT, codes, None, objects(every)))
    unknown = int(factor.classify(factor.name, null_of(Kind.TEXT))[0])
    other = int(classes[-1])
    by_class: dict[int, list[str]] = {}
    for text, number in zip(known, classes.tolist(), strict=False):
        if number != other:
            by_class.setdefault(number, []).append(spell(text))
    tests = [f"WHEN {column} IN ({', '.join(t)}) THEN {c}L" for c, t in by_class.items()]
    if unknown != other:
        tests.append(f"WHEN {column} IS NULL THEN {unknown}L")
    return f"CASE {' '.join(tests)} ELSE {other}L END" if tests else f"{other}L"


def truth_column(number: int) -> str:
    """The column of predicates 62·number and on: a bit each, set where it holds."""
    return f"ids_w{number}"


def truth_columns(predicates: int) -> list[str]:
    """The columns of so many predicates."""
    return [truth_column(number) for number in range(-(-predicates // TRUTH_BITS))]


def packed_truths(predicates: list[str]) -> list[str]:
    """The truths of some predicates, given as SQL, as named SQL of their columns of bits."""
    found = []
    for number, name in enumerate(truth_columns(len(predicates))):
        own = predicates[number * TRUTH_BITS : (number + 1) * TRUTH_BITS]
        bits = " + ".join(f"if({text}, {1 << bit}L, 0L)" for bit, text in enumerate(own))
        found.append(f"{bits} AS {name}")
    return found


def atoms_of(
    rows: pa.Table, predicates: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_]]:
    """Each row's atom, and which predicates hold on it: a combination of truths is an atom."""
    codes = np.zeros(rows.num_rows, np.int64)
    held = np.zeros((1, 0), np.bool_)
    for number, name in enumerate(truth_columns(predicates)):
        met, own = np.unique(rows.column(name).to_numpy(), return_inverse=True)
        joint, codes = np.unique(codes * len(met) + own, return_inverse=True)
        before, mine = np.divmod(joint, len(met))
        bits = np.arange(min(TRUTH_BITS, predicates - number * TRUTH_BITS))
        fresh = (met[mine][:, None] >> bits & 1).astype(np.bool_)
        held = np.concatenate([held[before], fresh], axis=1)
    return codes.astype(np.uint32), held
