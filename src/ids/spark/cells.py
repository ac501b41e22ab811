"""Rows to cells in the JVM: one number a row that decides the truth of every predicate.

As in process (``ids.predicates.refinement``) the predicates are split into units by the column they
read, and a column's units sort its values into classes. A row's cell is the mixed-radix number of
its classes; what the predicates are in a cell is worked out on the cell, once a group, not a row.
A column that many constants are compared with is cheaper to group by as it is than to classify
row by row: then its units, too, are worked out on the group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ids.model.expression import (
    And,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTrue,
    Literal,
    Not,
    Or,
    children,
)
from ids.model.table import ColumnData, Kind
from ids.predicates.factors import Dictionary, Factor, Flag, Range, Truth, null_of
from ids.predicates.splitting import Split, split
from ids.predicates.vector import objects
from ids.spark.expressions import compiled, may_overflow
from ids.spark.frames import Typed, quoted
from ids.spark.sources.canonical import spell

__all__ = ["Cells", "cells_of", "wordy_columns"]

_MANY_WORDS = 16
_WORD = 2**62  # a cell must stay a BIGINT
_LINEAR = 8


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


@dataclass(frozen=True, slots=True)
class _Digit:
    """A factor's class as SQL, and what each of its units is in each class."""

    text: str
    truths: npt.NDArray[np.int8]
    names: list[str]


def wordy_columns(predicates: Sequence[Expression], columns: Mapping[str, Typed]) -> list[str]:
    """Text columns that are cheaper to group by than to classify, if they hold few values."""
    return [
        factor.name
        for factor in _split(predicates, columns).factors
        if isinstance(factor, Dictionary) and _is_wordy(factor)
    ]


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
        if isinstance(factor, Dictionary) and factor.name in raw:
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
    words: list[list[tuple[int, _Digit]]] = []
    weight = _WORD
    for digit in digits:
        classes = len(digit.truths)
        if weight * classes >= _WORD:
            words.append([])
            weight = 1
        words[-1].append((weight, digit))
        weight *= classes
    for number, word in enumerate(words):
        name = f"ids_c{number}"
        groups.append((name, " + ".join(f"({d.text}) * {weight}L" for weight, d in word)))
        for weight, digit in word:
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
    match factor:
        case Range():
            typed = compiled(factor.subject, columns)
            subjects.append((subject, typed.text))
            yield _Digit(_ranged(factor, typed, subject), factor.truths, names)
        case Truth():
            subjects.append((subject, _truth(factor.subject, columns)))
            text = f"CASE WHEN {subject} THEN 2L WHEN NOT {subject} THEN 0L ELSE 1L END"
            yield _Digit(text, _spread(factor), names)
        case Flag():
            text = columns[factor.name].text
            yes, no, unknown = _flag_classes(factor)
            text = f"CASE WHEN {text} THEN {yes}L WHEN NOT {text} THEN {no}L ELSE {unknown}L END"
            yield _Digit(text, factor.truths, names)
        case Dictionary() if _words(factor) is not None:
            yield _Digit(_worded(factor, columns[factor.name].text), factor.truths, names)
        case _:
            for position, (name, unit) in enumerate(zip(names, factor.units, strict=True)):
                condition = f"{subject}_{position}"
                subjects.append((condition, _truth(unit, columns)))
                text = f"CASE WHEN {condition} THEN 2L WHEN NOT {condition} THEN 0L ELSE 1L END"
                yield _Digit(text, np.array([[0], [-1], [1]], np.int8), [name])


def _spread(factor: Truth) -> npt.NDArray[np.int8]:
    """What the units are where the condition is FALSE, NULL, TRUE."""
    return factor.truths[factor.class_of]


def _flag_classes(factor: Flag) -> tuple[int, int, int]:
    no, yes = factor.judge(factor.name, ColumnData(Kind.BOOLEAN, np.array([False, True])))
    unknown = factor.judge(factor.name, null_of(Kind.BOOLEAN))[0]
    return int(yes), int(no), int(unknown)


def _ranged(factor: Range, typed: Typed, subject: str) -> str:
    """The class of a number or an instant: a search among the cuts."""
    whole = typed.whole or typed.kind is Kind.TIME
    kind = typed.kind or Kind.NUMBER
    cuts, class_of, null_class = factor.divide(kind, np.dtype(np.int64 if whole else np.float64))
    found = _search(subject, cuts, class_of, 0, len(cuts))
    return f"CASE WHEN {subject} IS NULL THEN {null_class}L ELSE {found} END"


def _search(
    subject: str, cuts: npt.NDArray[Any], class_of: npt.NDArray[Any], first: int, last: int
) -> str:
    if last - first <= _LINEAR:
        tests = [
            f"WHEN {subject} < {_cut(cuts[k])} THEN {class_of[k]}L" for k in range(first, last)
        ]
        other = f"{class_of[last]}L"
        return f"CASE {' '.join(tests)} ELSE {other} END" if tests else other
    middle = (first + last) // 2
    below = _search(subject, cuts, class_of, first, middle)
    above = _search(subject, cuts, class_of, middle + 1, last)
    return f"if({subject} < {_cut(cuts[middle])}, {below}, {above})"


def _cut(cut: Any) -> str:
    return compiled(Literal(cut.item()), {}).text


def _is_wordy(factor: Dictionary) -> bool:
    words = _words(factor)
    return words is None or len(words) > _MANY_WORDS


def _words(factor: Dictionary) -> list[str] | None:
    """The constants a text is compared with; None if its units ask for more than equality."""
    words: dict[str, None] = {}
    stack = list(factor.units)
    while stack:
        node = stack.pop()
        match node:
            case And() | Or() | Not() | IsTrue():
                stack.extend(children(node))
            case IsNull(Column()):
                pass
            case Comparison("=" | "<>" | "<=>", Column(), Literal(value)) if _is_word(value):
                words.update({} if value is None else {str(value): None})
            case In(Column(), options) if all(_is_word(option.value) for option in options):
                words.update({str(o.value): None for o in options if o.value is not None})
            case _:
                return None
    return list(words)


def _is_word(value: object) -> bool:
    return value is None or isinstance(value, str)


def _worded(factor: Dictionary, column: str) -> str:
    """The class of a text by the constants it may equal; all other texts are one class."""
    words = _words(factor)
    assert words is not None
    stranger = "".join(sorted(words)) + "?"  # longer than any of them
    every = [*words, stranger]
    codes = np.arange(len(every), dtype=np.int32)
    classes = factor.judge(factor.name, ColumnData(Kind.TEXT, codes, None, objects(every)))
    unknown = int(factor.judge(factor.name, null_of(Kind.TEXT))[0])
    other = int(classes[-1])
    by_class: dict[int, list[str]] = {}
    for word, number in zip(words, classes.tolist(), strict=False):
        if number != other:
            by_class.setdefault(number, []).append(spell(word))
    tests = [f"WHEN {column} IN ({', '.join(w)}) THEN {c}L" for c, w in by_class.items()]
    if unknown != other:
        tests.append(f"WHEN {column} IS NULL THEN {unknown}L")
    return f"CASE {' '.join(tests)} ELSE {other}L END" if tests else f"{other}L"
