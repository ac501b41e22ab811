"""What it means that a table of emits is right, and that two of them are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa

from ids.language import parse, parse_predicate
from ids.model import Expression, Select
from tests.oracles.windows import Number, emits

__all__ = ["assert_right", "bits", "expected"]

TOLERANCE = Fraction(1, 10**12)
GAMES = ("SUM", "COUNT", "AVG", "VAR_POP", "VAR_SAMP", "M3", "M4")


def select_of(script: str) -> Select:
    """The last SELECT of a script."""
    found = [each for each in parse(script, games=GAMES) if isinstance(each, Select)]
    return found[-1]


def conditions(registered: Mapping[str, str]) -> dict[str, Expression]:
    return {name: parse_predicate(text) for name, text in registered.items()}


def expected(
    script: str, rows: Sequence[Mapping[str, Any]], registered: Mapping[str, str]
) -> list[dict[str, Any]]:
    """What the oracle says."""
    return emits(select_of(script), rows, conditions(registered))


def assert_right(table: pa.Table, answers: Sequence[Mapping[str, Any]]) -> None:
    """The same rows in the same order; doubles to 1e-12 of what they are made of."""
    assert table.num_rows == len(answers)
    for number, (row, answer) in enumerate(zip(table.to_pylist(), answers, strict=True)):
        assert list(row) == list(answer)
        for name, right in answer.items():
            found = row[name]
            if not isinstance(right, Number):
                assert found == right, (number, name)
            elif right.value is None or found is None:
                assert found is None and right.value is None, (number, name, found, right)
            else:
                off = abs(Fraction(found) - right.value)
                assert off <= TOLERANCE * right.size, (number, name, found, float(right.value))


def bits(table: pa.Table) -> list[tuple[str, list[Any]]]:
    """A table down to the last bit of every double (the sign of a zero included)."""
    return [
        (name, [v.hex() if isinstance(v, float) and name not in "kg" else v for v in column])
        for name, column in table.to_pydict().items()
    ]
