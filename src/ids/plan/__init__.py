"""Choosing a path: which summaries answer which item. Chooses, never computes."""

from ids.plan.promotion_policy import Policy
from ids.plan.question import (
    Offer,
    Path,
    Question,
    choose,
    choose_offer,
    index_offer,
    named_in,
    names_by_key,
    over_names,
    rows_path,
    sample_offer,
    scan_offer,
)
from ids.plan.script import (
    Schema,
    Step,
    Tables,
    just_text,
    merged_tables,
    nothing_asked,
    planned,
    statements_of,
    unsupported_named,
)
from ids.plan.select import PlannedItem, Registry, SelectPlan, explain, plan_select

__all__ = [
    "Offer",
    "Path",
    "PlannedItem",
    "Policy",
    "Question",
    "Registry",
    "Schema",
    "SelectPlan",
    "Step",
    "Tables",
    "choose",
    "choose_offer",
    "explain",
    "index_offer",
    "just_text",
    "merged_tables",
    "named_in",
    "names_by_key",
    "nothing_asked",
    "over_names",
    "plan_select",
    "planned",
    "rows_path",
    "sample_offer",
    "scan_offer",
    "statements_of",
    "unsupported_named",
]
