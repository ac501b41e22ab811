"""Sums to answers in the JVM: the closed forms of ``ids.games``, written out as columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import DoubleType, StringType, StructField

from ids.exact import Program
from ids.games import Attributed
from ids.model.query import ItemKind
from ids.model.scale import MAX_ROWS
from ids.plan import PlannedItem, SelectPlan
from ids.spark.answers import Answers
from ids.spark.panes import COUNT, Layout, applied
from ids.spark.sources.canonical import spell

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "aggregate_text",
    "answered",
    "exact_names",
    "item_names",
    "nameless",
    "narrow",
    "output_fields",
    "output_names",
    "part_texts",
    "text_of",
]

_TOO_WIDE = spell(
    f"a window has more than the {MAX_ROWS:,} rows that are summed exactly; choose a shorter window"
)


def nameless(plan: SelectPlan) -> SelectPlan:
    """The plan with numbers for aliases: inside of Spark no alias meets a column of ours."""
    items = [replace(item, name=f"ids_e{number}") for number, item in enumerate(plan.items)]
    return replace(plan, items=tuple(items))


def output_names(plan: SelectPlan) -> list[str]:
    """The columns of the items, in the order they were asked."""
    return [field.name for field in output_fields(plan)]


def output_fields(plan: SelectPlan) -> list[StructField]:
    """The columns of the items with their types, in the order they were asked."""
    fields: list[StructField] = []
    for item in plan.items:
        fields += [StructField(name, DoubleType()) for name in item_names(item)]
        if item.approximate is not None:
            told = ("error", "standard_error") if item.tells_spread else ("error",)
            fields += [StructField(f"{item.name}_{each}", DoubleType()) for each in told]
            fields.append(StructField(f"{item.name}_mechanism", StringType()))
    return fields


def exact_names(plan: SelectPlan) -> list[str]:
    """The columns of the items' exact answers."""
    return [name for item in plan.items for name in item_names(item)]


def item_names(item: PlannedItem) -> list[str]:
    """The columns of an item's exact answer."""
    return [item.name, *(f"{item.name}_{part.lower()}" for part in item.parts)]


def narrow(data: DataFrame) -> DataFrame:
    """The same windows, none of them with more rows than are summed exactly."""
    wide = f"{COUNT} > {MAX_ROWS}L"
    return data.filter(f"CASE WHEN {wide} THEN raise_error({_TOO_WIDE}) IS NULL ELSE true END")


def answered(
    plan: SelectPlan, layout: Layout, data: DataFrame, kept: list[str], before: str | None = None
) -> DataFrame:
    """One column an output name beside the ``kept`` ones, in place of the sums.

    The plan is a ``nameless`` one.
    A SHAPLEY_DELTA is the difference from the sums whose names begin with ``before``; without
    these it is this window's attribution, for the caller to subtract the one before.
    """
    program = Program("ids_v")
    now = Answers(layout, program.column)
    then = Answers(layout, lambda name: program.column(f"{before}{name}"))
    texts: dict[str, str] = {}
    for item in plan.items:
        if item.kind is ItemKind.AGGREGATE:
            texts[item.name] = aggregate_text(now, item)
            continue
        texts |= part_texts(item, now.attributed(item))
        if item.kind is ItemKind.DELTA and before is not None:
            earlier = text_of(then.attributed(item).value)
            texts[item.name] = f"({texts[item.name]} - {earlier})"
    columns = [f"cast({texts[name]} as double) AS {name}" for name in exact_names(plan)]
    return applied(narrow(data), program).selectExpr(*kept, *columns)


def aggregate_text(answers: Answers, item: PlannedItem) -> str:
    """The aggregate itself, NULL where SQL says so."""
    value, missing = answers.aggregate(item)
    return f"CASE WHEN {missing.text} THEN NULL ELSE {text_of(value)} END"


def part_texts(item: PlannedItem, found: Attributed) -> dict[str, str]:
    """The attribution and its parts, by the names of their columns."""
    parts = {"SHARE": found.share, "LIFT": found.lift}
    values = [found.value, *(parts[part] for part in item.parts)]
    return {name: text_of(value) for name, value in zip(item_names(item), values, strict=True)}


def text_of(value: Any) -> str:
    """A symbol's SQL; a number that no column takes part in stands for itself."""
    return getattr(value, "text", None) or f"double('{float(value)!r}')"
