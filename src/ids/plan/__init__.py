"""Choosing a path: which summaries answer which item. Chooses, never computes."""

from ids.plan.explaining import explain
from ids.plan.registry import Registry
from ids.plan.select import PlannedItem, SelectPlan, plan_select

__all__ = ["PlannedItem", "Registry", "SelectPlan", "explain", "plan_select"]
