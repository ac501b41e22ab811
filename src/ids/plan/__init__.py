"""Choosing a path: which summaries answer which item. Chooses, never computes."""

from ids.plan.explaining import explain
from ids.plan.registry import Registry
from ids.plan.script import (
    Schema,
    Step,
    Tables,
    just_text,
    nothing_asked,
    planned,
    statements_of,
)
from ids.plan.select import PlannedItem, SelectPlan, plan_select

__all__ = [
    "PlannedItem",
    "Registry",
    "Schema",
    "SelectPlan",
    "Step",
    "Tables",
    "explain",
    "just_text",
    "nothing_asked",
    "plan_select",
    "planned",
    "statements_of",
]
