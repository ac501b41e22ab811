"""Sums to answers on the driver: the closed forms of ``ids.games`` on a few windows, in NumPy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ids.model.query import ItemKind
from ids.plan import SelectPlan
from ids.spark.answers import Answers, exact_columns
from ids.spark.panes import Layout
from ids.spark.streaming.standing import Instants, Standing

__all__ = ["answer_columns"]


def answer_columns(
    plan: SelectPlan, layout: Layout, windows: Standing, spoken: Instants
) -> dict[str, pa.Array]:
    """The items' columns, one row an emit.

    An item to be sampled has its exact attribution, a change too: that is taken of estimates.
    """
    answers = Answers(layout, dict(zip(layout.sums, windows.sums, strict=True)).__getitem__)
    columns = exact_columns(plan, answers, len(windows.first))
    chosen = pa.array(spoken.window)
    found = {name: column.take(chosen) for name, column in columns.items()}
    for item in plan.items:
        if item.kind is ItemKind.DELTA and item.approximate is None:
            value = columns[item.name].to_numpy()
            found[item.name] = pa.array(_deltas(value, windows, spoken))
    return found


def _deltas(
    value: npt.NDArray[np.float64], windows: Standing, spoken: Instants
) -> npt.NDArray[np.float64]:
    """Less the attribution one slide before: the window's own, but where it opens."""
    before = np.where(windows.before >= 0, value[windows.before], 0.0)
    here = spoken.window
    return value[here] - np.where(spoken.opens, before[here], value[here])
