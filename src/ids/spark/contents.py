"""A row's contents, hashed in the JVM: the numbers of ``ids.engine.contents``, bit by bit."""

from __future__ import annotations

from collections.abc import Mapping

from ids.kernels.hashing import START
from ids.model.table import DOUBLE_INTEGERS, Kind
from ids.plan import SelectPlan
from ids.spark.frames import Typed

__all__ = ["CONTENT", "PRIORITY", "content_of", "priority_of", "tie_break_of"]

CONTENT = "ids_h"
PRIORITY = "ids_q"


def content_of(plan: SelectPlan, columns: Mapping[str, Typed]) -> str:
    """The hash of the columns a plan reads, as SQL."""
    each = ", ".join(_hashed(columns[name]) for name in plan.columns)
    return f"xxhash64(cast('{plan.seed}' as bigint), {each})"


def _hashed(column: Typed) -> str:
    """A column's hash; that of NULL is where every hash starts."""
    if column.kind is None:
        return f"{START}L"
    if column.kind is Kind.TEXT:
        return f"xxhash64({column.text})"
    if column.kind is not Kind.NUMBER:
        return f"xxhash64(cast({column.text} as bigint))"
    value = f"cast({column.text} as double)"
    if not column.whole:
        return f"xxhash64({value})"
    # a NULL is passed over: only numbers beyond the doubles are hashed on
    far = f"{column.text} > {DOUBLE_INTEGERS}L OR {column.text} < {-DOUBLE_INTEGERS}L"
    return f"xxhash64({value}, if({far}, {column.text}, NULL))"


def priority_of(content: str, ordinal: str) -> str:
    """The priority of a row by its contents and its number among equal ones, as SQL."""
    return f"xxhash64({content}, {ordinal})"


def tie_break_of(priority: str) -> str:
    """What decides between equal values, as SQL."""
    return f"xxhash64({priority})"
