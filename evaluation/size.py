"""How large a run is: the paper's own sizes, or small ones that say the same in minutes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

__all__ = ["FULL", "QUICK", "Size"]

T = TypeVar("T")


@dataclass(frozen=True)
class Size:
    """A run's size; ``repetitions`` of whatever is timed."""

    name: str
    repetitions: int = 5

    def of(self, *, quick: T, full: T) -> T:
        """The one of two that fits."""
        return quick if self.name == "quick" else full


QUICK = Size("quick")
FULL = Size("full")
