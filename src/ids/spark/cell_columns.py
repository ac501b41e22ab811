"""Map each row to a number, its cell, that determines the truth value of every predicate.

As in process (``ids.predicates.atoms``), each predicate is broken down into units: elementary
conditions on one column or one computed value. A factor groups the units on the same column or
value, and divides its values into classes; values of one class have the same truth value in every
unit. A row's cell encodes its classes as one mixed-radix number, with one digit per factor. The
predicates are then evaluated once per cell instead of once per row. If a text column is compared
with many constants, grouping by the column is cheaper than computing its class for every row; its
units are then evaluated per group as well.

For the Python workers, the truth values of a row's predicates are packed into BIGINTs, one bit per
predicate.
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
from ids.spark.expression_sql import (
    Typed,
    compiled,
    constant,
    may_overflow,
    quoted,
    search,
    spell,
)

TRUTH_BITS = 62

_MANY_CONSTANTS = 16
_LARGEST_CELL = 2**62  # a cell must stay a BIGINT


@dataclass(frozen=True, slots=True)
class Cells:
    """Describes how to group rows so that every predicate has the same truth value within a group.

    subjects    (name, SQL) over the columns: values that several classes use
    groups      (name, SQL) over columns and subjects: the expressions to group by
    predicates  SQL over the groups' names, one per predicate: TRUE, FALSE or NULL
    """

    subjects: list[tuple[str, str]]
    groups: list[tuple[str, str]]
    predicates: list[str]

    def prepared(self, data: DataFrame) -> DataFrame:
        """Return the rows with the subjects added as columns."""
        if not self.subjects:
            return data
        return data.withColumns({name: F.expr(text) for name, text in self.subjects})


@dataclass(frozen=True, slots=True)
class _Digit:
    """The SQL for a factor's class, and the truth value of each of its units in each class."""

    text: str
    truths: npt.NDArray[np.int8]
    names: list[str]


def groupable_columns(predicates: Sequence[Expression], columns: Mapping[str, Typed]) -> list[str]:
    """Return the text columns to group by instead of classifying, if they have few values."""
    factors = [f for f in _split(predicates, columns).factors if isinstance(f, TextFactor)]
    constants = {factor.name: _constants(factor) for factor in factors}
    return [n for n, known in constants.items() if known is None or len(known) > _MANY_CONSTANTS]


def cells_of(
    predicates: Sequence[Expression], columns: Mapping[str, Typed], raw: Collection[str] = ()
) -> Cells:
    """Return the cells of bound predicates; columns in ``raw`` are grouped by directly."""
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
    """Write a condition as a BOOLEAN, because Spark does not treat a bare NULL as one."""
    return f"cast({compiled(condition, columns).text} as boolean)"


def _split(predicates: Sequence[Expression], columns: Mapping[str, Typed]) -> Split:
    kinds = {name: typed.kind or Kind.NUMBER for name, typed in columns.items()}
    return split(predicates, kinds, lambda predicate: may_overflow(predicate, columns))


def _packed(digits: list[_Digit], groups: list[tuple[str, str]]) -> Iterator[tuple[str, _Digit]]:
    """Pack digits into as few BIGINTs as possible, and yield the SQL that extracts each digit."""
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
    """Write a unit's truth value as a test of the class number."""
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
    """Yield the digits of a factor, adding the values they are computed from to ``subjects``."""
    match factor:
        case RangeFactor():
            typed = compiled(factor.subject, columns)
            subjects.append((subject, typed.text))
            yield _Digit(_ranged(factor, typed, subject), factor.truths, names)
        case ConditionFactor():
            subjects.append((subject, _truth(factor.subject, columns)))
            # the units' truth values if the condition is FALSE, NULL and TRUE
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
    """Write a row's class, which depends on the truth value of a condition."""
    return f"CASE WHEN {condition} THEN {yes}L WHEN NOT {condition} THEN {no}L ELSE {unknown}L END"


def _ranged(factor: RangeFactor, typed: Typed, subject: str) -> str:
    """Write the class of a number or a timestamp as a binary search among the cut points."""
    whole = typed.whole or typed.kind is Kind.TIME
    kind = typed.kind or Kind.NUMBER
    cuts, class_of, null_class = factor.divide(kind, np.dtype(np.int64 if whole else np.float64))
    spelled = [constant(cut).text for cut in cuts.tolist()]
    found = search(f"{subject} <", spelled, [f"{number}L" for number in class_of])
    return f"CASE WHEN {subject} IS NULL THEN {null_class}L ELSE {found} END"


def _constants(factor: TextFactor) -> list[str] | None:
    """Return the constants a text is compared with; None if a unit needs more than equality."""
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
    """Write a text's class by the constant it equals; all other texts share one class."""
    known = _constants(factor)
    assert known is not None
    unequal = "".join(sorted(known)) + "?"  # longer than any of them
    every = [*known, unequal]
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
    """Return the name of the column with the bits of predicates from 62·number on."""
    return f"ids_w{number}"


def truth_columns(predicates: int) -> list[str]:
    """Return the names of the columns with the bits of ``predicates`` predicates."""
    return [truth_column(number) for number in range(-(-predicates // TRUTH_BITS))]


def packed_truths(predicates: list[str]) -> list[str]:
    """Write the bit columns of predicates that are passed as SQL."""
    found = []
    for number, name in enumerate(truth_columns(len(predicates))):
        own = predicates[number * TRUTH_BITS : (number + 1) * TRUTH_BITS]
        bits = " + ".join(f"if({text}, {1 << bit}L, 0L)" for bit, text in enumerate(own))
        found.append(f"{bits} AS {name}")
    return found


def atoms_of(
    rows: pa.Table, predicates: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_]]:
    """Return each row's atom (combination of truth values) and each atom's true predicates."""
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
