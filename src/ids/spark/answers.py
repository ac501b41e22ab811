"""Answers from a layout's sums: SQL text or NumPy arrays, whichever the sums are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ids.exact import Parts, Sums, Window, attribution, item_of, window_of, worth
from ids.games import Attributed, Game
from ids.plan import PlannedItem
from ids.spark.panes import Item, Layout

__all__ = ["Answers"]


class Answers:
    """The answers of some windows, each worked out when first asked for.

    ``column`` gives the sums of a layout by their names.
    """

    def __init__(self, layout: Layout, column: Callable[[str], Any]) -> None:
        self._layout, self._column = layout, column
        self._windows: dict[int, Window] = {}
        self._attributed: dict[tuple[str, Item], Attributed] = {}

    def aggregate(self, item: PlannedItem) -> tuple[Any, Any]:
        """The aggregate itself, and where it is NULL."""
        return worth(item.game, self._window(item.measure), self._parts(item.measure))

    def attributed(self, item: PlannedItem) -> Attributed:
        """The value, share and lift of what an item asks for."""
        return self.part(item.game, Item(item.measure, item.predicate))

    def part(self, game: Game, item: Item) -> Attributed:
        """The value, share and lift of some rows of the window."""
        key = (game.name, item)
        if key not in self._attributed:
            window, parts = self._window(item.number), self._parts(item.number)
            own = item_of(window, self._sums(item), parts)
            self._attributed[key] = attribution(game, window, own, parts)
        return self._attributed[key]

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
