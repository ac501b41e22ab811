"""A question, and its plan: the stream's own SELECT with one item, at one instant."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

from ids.errors import ScriptError
from ids.games import GAMES, find
from ids.language import parse, parse_aggregate, parse_predicate
from ids.model.query import Approximate, Drop, Item, ItemKind, Register, Select
from ids.model.sampling import checked_seed
from ids.model.table import unused
from ids.model.window import TimeWindow
from ids.plan import Registry, SelectPlan, plan_select
from ids.plan.script import unsupported_named
from ids.spark.files import is_remote
from ids.spark.limits import refuse_beyond_panes
from ids.spark.streaming.retained.current import steadily
from ids.spark.streaming.retained.rows import KeptRows

__all__ = ["InstantPlan", "StreamQuestion", "answer_names", "check"]


@dataclass(frozen=True, slots=True)
class InstantPlan(SelectPlan):
    """The plan of a window whose rows are known: all of them in one pane, at one instant.

    ORDER BY is a column beside the table's own that holds this instant.

    read  the columns that the query over all instants would read; samples are drawn by them
    """

    read: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read, each once."""
        return self.read


@dataclass(frozen=True, slots=True)
class StreamQuestion:
    """What is asked of a stream's window; an estimate from ``sample`` rows, where it is given."""

    aggregate: str
    predicate: str
    sample: int | None = None
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checked_seed(self.seed))

    def planned(self, kept: KeptRows) -> InstantPlan:
        """Bind it to the columns that are kept and to what the stream's script registers."""
        item = self._item()
        registry, selects = Registry(), []
        for statement in parse(kept.script, tuple(GAMES)):
            match statement:
                case Register():
                    registry.register(statement)
                case Drop():
                    registry.drop(statement)
                case Select():
                    selects.append(statement)
        (select,) = selects
        kinds = {name: typed.kind for name, typed in kept.columns.items()}
        with unsupported_named(kept.unsupported):
            plan = plan_select(replace(select, items=(item,)), kinds, registry)
        refuse_beyond_panes(plan)
        _refuse_clashes(plan)
        return self._instant(plan, kept.slide, unused("now", kept.columns))

    def _instant(self, plan: SelectPlan, slide: int, now: str) -> InstantPlan:
        same = {field.name: getattr(plan, field.name) for field in fields(plan)}
        return InstantPlan(
            **same
            | {
                "items": tuple(replace(item, tells_spread=True) for item in plan.items),
                "where": None,  # what it refuses was not kept
                "order_by": (now,),
                "window": TimeWindow(slide, slide),
                "seed": self.seed,
                "read": plan.columns,
            }
        )

    def _item(self) -> Item:
        asked = parse_aggregate(self.aggregate, tuple(GAMES))
        if asked.argument is None and find(asked.function).degree:
            hint = f"write {asked.function}(column)"
            raise ScriptError(f"{asked.function} of which measure?", asked.at, hint)
        condition, parts = parse_predicate(self.predicate), ("SHARE", "LIFT")
        sampled = None if self.sample is None else Approximate(self.sample, self.confidence)
        return Item(ItemKind.ATTRIBUTE, asked, condition, parts, sampled, "answer")


def check(checkpoint: str | Path, question: StreamQuestion) -> None:
    """Refuse what cannot be asked, as far as that is known without Spark."""
    if not is_remote(checkpoint):
        steadily(checkpoint, lambda current: question.planned(current.kept))


def answer_names(plan: SelectPlan) -> list[str]:
    """The columns of an answer behind its keys."""
    spread = ["error", "standard_error"] if plan.sampled else []
    return ["emit_at", "n", "value", "share", "lift", *spread]


def _refuse_clashes(plan: SelectPlan) -> None:
    for name in plan.partition_by:
        if name.lower() in answer_names(plan):
            raise ScriptError(
                f"PARTITION BY {name!r} clashes with a column of the answer",
                hint="rename the column, and start the stream anew",
            )
