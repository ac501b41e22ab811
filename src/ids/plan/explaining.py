"""EXPLAIN: a plan in words, one line a step, in the order a row meets them."""

from __future__ import annotations

from ids.model.query import ItemKind
from ids.model.rendering import quoted, render
from ids.model.window import CountWindow, span
from ids.plan.select import PlannedItem, SelectPlan

__all__ = ["explain"]

# What the state holds for every power sum up to the degree, in the paper's letters.
_SUMS = ("m rows", "A = Σ y", "B = Σ y²")
_MECHANISMS = {
    "marginal": "marginal (registered)",
    "compositional": "compositional (of registered predicates)",
    "inline": "inline (a condition of this query)",
}


def explain(plan: SelectPlan) -> list[str]:
    """The plan in words; O(size of the plan)."""
    lines = [f"read {quoted(plan.table)}: {', '.join(map(quoted, plan.columns))}"]
    if plan.where is not None:
        lines.append(f"keep the rows where {render(plan.where)}")
    lines += _window_lines(plan)
    if plan.predicates:
        several = _counted(len(plan.predicates), "predicate")
        lines.append(f"refine into atoms by {several}, a bit each")
        lines += [f"  bit {bit}: {render(p)}" for bit, p in enumerate(plan.predicates)]
    lines += _sum_lines(plan)
    for item in plan.items:
        lines += [f"{quoted(item.name)} = {_item(item, plan)}"]
    lines.append(f"emit {_emitted(plan)}")
    return lines


def _window_lines(plan: SelectPlan) -> list[str]:
    window = plan.window
    keys = f" of each {', '.join(map(quoted, plan.partition_by))}" if plan.partition_by else ""
    order = ", ".join(map(quoted, plan.order_by))
    if isinstance(window, CountWindow):
        newest = "row" if window.size == 1 else f"{window.size:,} rows"
        return [f"window: the newest {newest}{keys}, ordered by {order}"]
    held = f"the rows{keys} in (t - {span(window.duration)}, t], ordered by {order}"
    assert window.slide is not None
    return [f"window: {held}", f"  t: every whole {_each(span(window.slide))} since 1970 UTC"]


def _sum_lines(plan: SelectPlan) -> list[str]:
    lines = []
    for measure, degree in zip(plan.measures, plan.degrees, strict=True):
        kept = _SUMS[: degree + 1] if degree <= 2 else (_SUMS[0], f"Σ y … Σ y^{degree}")
        of = "" if measure is None else f" of y = {render(measure)}"
        lines.append(f"keep exactly, for each atom: {', '.join(kept)}{of}")
    return lines


def _item(item: PlannedItem, plan: SelectPlan) -> str:
    measure = plan.measures[item.measure]
    aggregate = f"{item.game.name}({'*' if measure is None else render(measure)})"
    if item.predicate is None:
        return aggregate
    parts = f" with {' and '.join(item.parts).lower()}" if item.parts else ""
    asked = f"{item.kind.value}({aggregate}, {item.asked}){parts}"
    change = "the change since one slide before, " if item.kind is ItemKind.DELTA else ""
    if item.approximate is not None:
        size, percent = item.approximate.size, 100.0 * item.approximate.confidence
        rows = _counted(size, "row")
        return f"{asked}: {change}sample of {rows}, bound at {percent:.12g} %"
    return f"{asked}: {change}bit {item.predicate}, {_MECHANISMS[item.mechanism]}, exact"


def _emitted(plan: SelectPlan) -> str:
    each = " of each key" if plan.partition_by else ""
    if plan.final:
        return f"the last answer{each}"
    if isinstance(plan.window, CountWindow):
        slide = plan.window.slide
        return f"an answer after every {_each(_counted(slide, 'row'))}{each}"
    return f"an answer{each} at every t whose window is not empty"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _each(counted: str) -> str:
    """``1 row`` as it stands after "every"."""
    return counted.removeprefix("1 ")
