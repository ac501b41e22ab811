"""Statements: what a script says, after parsing and before any table is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from ids.errors import Position
from ids.model.expression import Expression
from ids.model.options import checked_size, refuse_confidence
from ids.model.window import CountWindow, TimeWindow


class Emit(Enum):
    """EMIT CHANGES gives every emit, EMIT FINAL the last one (of each key)."""

    CHANGES = "CHANGES"
    FINAL = "FINAL"


class ItemKind(Enum):
    """What a SELECT item asks for."""

    ATTRIBUTE = "SHAPLEY_ATTRIBUTE"
    DELTA = "SHAPLEY_DELTA"
    AGGREGATE = "AGGREGATE"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A game's name and the measure under it; COUNT(*) has no argument."""

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
        object.__setattr__(self, "size", checked_size(self.size, self.at))
        refuse_confidence(self.confidence, self.at)
        object.__setattr__(self, "confidence", float(self.confidence))


@dataclass(frozen=True, slots=True)
class Item:
    """One column asked for (two more behind it WITH (SHARE, LIFT))."""

    kind: ItemKind
    aggregate: Aggregate
    predicate: Expression | None = None
    parts: tuple[str, ...] = ()
    approximate: Approximate | None = None
    alias: str | None = None
    at: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class WindowClause:
    """PARTITION BY, ORDER BY (the first is the event time), and the frame with its slide."""

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
    """EXPLAIN SELECT …: the plan instead of the rows."""

    select: Select


Statement = Register | Drop | Show | Explain | Select
