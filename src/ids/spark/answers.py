"""Answers from a layout's sums: SQL text or NumPy arrays, whichever the sums are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ids.exact import (
    LIMB_BITS,
    Parts,
    Powers,
    Sums,
    Window,
    attribution,
    big_attribution,
    big_worth,
    from_limbs,
    item_of,
    window_of,
    worth,
)
from ids.games import Attributed, Game
from ids.model.query import ItemKind
from ids.plan import PlannedItem, SelectPlan
from ids.spark.panes import Item, Layout

__all__ = ["Answers", "exact_columns"]


class Answers:
    """The answers of some windows, each worked out when first asked for.

    ``column`` gives the sums of a layout by their names.
    """

    def __init__(self, layout: Layout, column: Callable[[str], Any]) -> None:
        self._layout, self._column = layout, column
        self._windows: dict[int, Window] = {}
        self._powers: dict[Item, Powers] = {}
        self._attributed: dict[tuple[str, Item], Attributed] = {}

    def aggregate(self, item: PlannedItem) -> tuple[Any, Any]:
        """The aggregate itself, and where it is NULL."""
        parts = self._parts(item.measure)
        if parts.wide:
            window = self._integers(Item(item.measure, None))
            return big_worth(item.game, window), window.rows < item.game.nulls
        return worth(item.game, self._window(item.measure), parts)

    def attributed(self, item: PlannedItem) -> Attributed:
        """The value, share and lift of what an item asks for."""
        return self.part(item.game, Item(item.measure, item.predicate))

    def part(self, game: Game, item: Item) -> Attributed:
        """The value, share and lift of some rows of the window."""
        key = (game.name, item)
        if key not in self._attributed:
            self._attributed[key] = self._worked_out(game, item)
        return self._attributed[key]

    def _worked_out(self, game: Game, item: Item) -> Attributed:
        parts = self._parts(item.number)
        if parts.wide:
            whole = self._integers(Item(item.number, None))
            return big_attribution(game, whole, self._integers(item))
        window = self._window(item.number)
        return attribution(game, window, item_of(window, self._sums(item), parts), parts)

    def _integers(self, item: Item) -> Powers:
        """The sums as Python integers; only of arrays."""
        if item not in self._powers:
            parts, sums = self._parts(item.number), self._sums(item)
            powers = [from_limbs(limbs) for limbs in (sums.first, sums.second) if limbs]
            unit = parts.exponent - LIMB_BITS * parts.levels
            self._powers[item] = Powers(sums.count, powers, unit)
        return self._powers[item]

    def _parts(self, number: int) -> Parts:
        return self._layout.parts[number]

    def _window(self, number: int) -> Window:
        if number not in self._windows:
            self._windows[number] = window_of(self._sums(Item(number, None)), self._parts(number))
        return self._windows[number]

    def _sums(self, item: Item) -> Sums:
        parts = self._parts(item.number)
        count, *rest = (self._column(name) for name in item.columns(parts))
        return Sums(count, rest[: parts.levels], rest[parts.levels :])


def exact_columns(plan: SelectPlan, answers: Answers, windows: int) -> dict[str, pa.Array]:
    """The items' exact answers as columns, of a layout whose sums are arrays.

    A SHAPLEY_DELTA has this window's attribution, for the caller to subtract the one before.
    """
    columns: dict[str, pa.Array] = {}
    for item in plan.items:
        if item.kind is ItemKind.AGGREGATE:
            value, missing = answers.aggregate(item)
            columns[item.name] = pa.array(value, mask=missing)
            continue
        found = answers.attributed(item)
        parts = {item.name: found.value}
        for part, values in (("SHARE", found.share), ("LIFT", found.lift)):
            if part in item.parts:
                parts[f"{item.name}_{part.lower()}"] = values
        columns |= {name: pa.array(np.broadcast_to(v, windows)) for name, v in parts.items()}
    return columns
