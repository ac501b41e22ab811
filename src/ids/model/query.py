"""Queries: the statements of a parsed script, before any table is known, and their answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from ids.errors import Position
from ids.model.expression import Expression
from ids.model.options import checked_size, refuse_confidence
from ids.model.window import CountWindow, TimeWindow


class Emit(Enum):
    """EMIT CHANGES returns every emit, EMIT FINAL only the last one (per key)."""

    CHANGES = "CHANGES"
    FINAL = "FINAL"


class ItemKind(Enum):
    """What a SELECT item asks for."""

    ATTRIBUTE = "SHAPLEY_ATTRIBUTE"
    DELTA = "SHAPLEY_DELTA"
    AGGREGATE = "AGGREGATE"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The name of a game and its measure; COUNT(*) has no measure."""

    function: str
    argument: Expression | None
    at: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Approximate:
    """APPROXIMATE USING RESERVOIR SAMPLE size CONFIDENCE confidence."""

    size: int
    confidence: float = 0.95
    at: Position | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", checked_size(self.size))
        refuse_confidence(self.confidence)
        object.__setattr__(self, "confidence", float(self.confidence))


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a SELECT; WITH (SHARE, LIFT) adds two more columns after it."""

    kind: ItemKind
    aggregate: Aggregate
    predicate: Expression | None = None
    parts: tuple[str, ...] = ()
    approximate: Approximate | None = None
    alias: str | None = None
    at: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class WindowClause:
    """PARTITION BY, ORDER BY (the event time comes first), and the frame with its slide."""

    order_by: tuple[str, ...]
    frame: CountWindow | TimeWindow
    partition_by: tuple[str, ...] = ()
    at: Position | None = field(default=None, compare=False)
    columns_at: Mapping[str, Position] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Select:
    """A continuous query."""

    items: tuple[Item, ...]
    table: str
    window: WindowClause
    where: Expression | None = None
    emit: Emit = Emit.CHANGES
    at: Position | None = field(default=None, compare=False)
    table_at: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Register:
    """REGISTER PREDICATE name AS (condition) ON table."""

    name: str
    condition: Expression
    table: str
    at: Position | None = field(default=None, compare=False)
    table_at: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Drop:
    """DROP PREDICATE name ON table."""

    name: str
    table: str
    at: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW PREDICATES."""


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN SELECT …: return the plan instead of the rows."""

    select: Select


Statement = Register | Drop | Show | Explain | Select


class Attribution(NamedTuple):
    """How much of the aggregate a predicate's rows account for; share + lift = value.

    ``share`` is what the same number of average rows would account for, and ``lift`` is the rest.
    ``error`` bounds the value's error at the given ``confidence`` (0 if the value is exact); ``n``
    is the number of rows in the window. ``reason`` explains why the ``mechanism`` was chosen,
    ``rows_expected`` is how many rows it was expected to read and ``rows_read`` how many it read.
    An estimate also has its standard error, and the size and the seed of its sample.

    >>> Attribution(82.5, 19.0, 63.5, "compositional", 0.0, 4, reason="registered names")
    Attribution(value=82.5, share=19.0, lift=63.5, mechanism='compositional', n=4)
    """

    value: float
    share: float
    lift: float
    mechanism: str
    error: float
    n: int
    reason: str = ""
    rows_expected: int = 0
    rows_read: int = 0
    confidence: float = 1.0
    standard_error: float = 0.0
    sample_size: int = 0
    seed: int | None = None

    def __repr__(self) -> str:
        bound = f"error={self.error!r}, confidence={self.confidence!r}, " if self.error else ""
        return (
            f"Attribution(value={self.value!r}, share={self.share!r}, lift={self.lift!r}, "
            f"mechanism={self.mechanism!r}, {bound}n={self.n!r})"
        )
