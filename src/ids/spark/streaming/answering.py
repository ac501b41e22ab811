"""Sums to answers on the driver: the closed forms of ``ids.games`` on a few windows, in NumPy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ids.exact import Parts, Sums, Window, attribution, item_of, window_of, worth
from ids.games import Attributed
from ids.model.query import ItemKind
from ids.plan import PlannedItem, SelectPlan
from ids.spark.panes import Item, Layout
from ids.spark.streaming.standing import Instants, Standing

__all__ = ["answer_columns"]


def answer_columns(
    plan: SelectPlan, layout: Layout, windows: Standing, spoken: Instants
) -> dict[str, pa.Array]:
    """The items' columns, one row an emit."""
    answers = _Answers(layout, windows.sums)
    columns: dict[str, pa.Array] = {}
    for item in plan.items:
        if item.kind is ItemKind.AGGREGATE:
            value, missing = answers.aggregate(item)
            columns[item.name] = pa.array(value[spoken.window], mask=missing[spoken.window])
            continue
        found = answers.attributed(item)
        value = np.broadcast_to(found.value, len(windows.first))
        if item.kind is ItemKind.DELTA:
            columns[item.name] = pa.array(_deltas(value, windows, spoken))
        else:
            columns[item.name] = pa.array(value[spoken.window])
        for part, values in (("SHARE", found.share), ("LIFT", found.lift)):
            if part in item.parts:
                spread = np.broadcast_to(values, len(windows.first))
                columns[f"{item.name}_{part.lower()}"] = pa.array(spread[spoken.window])
    return columns


def _deltas(
    value: npt.NDArray[np.float64], windows: Standing, spoken: Instants
) -> npt.NDArray[np.float64]:
    """Less the attribution one slide before: the window's own, but where it opens."""
    before = np.where(windows.before >= 0, value[windows.before], 0.0)
    here = spoken.window
    return value[here] - np.where(spoken.opens, before[here], value[here])


class _Answers:
    """The answers of some windows, each worked out when first asked for."""

    def __init__(self, layout: Layout, sums: npt.NDArray[np.int64]) -> None:
        self._layout = layout
        self._columns = dict(zip(layout.sums, sums, strict=True))
        self._windows: dict[int, Window] = {}
        self._attributed: dict[tuple[str, int, int], Attributed] = {}

    def aggregate(self, item: PlannedItem) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        value, missing = worth(item.game, self._window(item.measure), self._parts(item.measure))
        return value, missing

    def attributed(self, item: PlannedItem) -> Attributed:
        assert item.predicate is not None
        key = (item.game.name, item.measure, item.predicate)
        if key not in self._attributed:
            window, parts = self._window(item.measure), self._parts(item.measure)
            own = item_of(window, self._sums(Item(item.measure, item.predicate)), parts)
            self._attributed[key] = attribution(item.game, window, own, parts)
        return self._attributed[key]

    def _parts(self, number: int) -> Parts:
        return self._layout.parts[number]

    def _window(self, number: int) -> Window:
        if number not in self._windows:
            self._windows[number] = window_of(self._sums(Item(number, None)), self._parts(number))
        return self._windows[number]

    def _sums(self, item: Item) -> Sums:
        parts = self._parts(item.number)
        count, *rest = (self._columns[name] for name in item.columns(parts))
        return Sums(count, rest[: parts.levels], rest[parts.levels :])
