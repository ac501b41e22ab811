"""A cache of limited size."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(dict[K, V]):
    """A dict that is emptied when a new key would exceed ``limit`` entries.

    Look-ups cost the same as in a dict. Only item assignment checks the limit, not ``update``.

    >>> squares = BoundedCache(2)
    >>> for number in (1, 2, 3):
    ...     squares[number] = number * number
    >>> squares
    {3: 9}
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= self._limit and key not in self:
            self.clear()
        super().__setitem__(key, value)
