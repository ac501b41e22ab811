"""Sampling: what an engine is asked to keep for questions that need not be exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ids.errors import ScriptError

__all__ = ["BOUNDS", "Sampling", "extremes_of"]

# Each is sharpened for sampling without replacement (Serfling) where that is how rows were drawn.
BOUNDS = ("bernstein", "hoeffding")
_LARGEST = 2**24


@dataclass(frozen=True, slots=True)
class Sampling:
    """A uniform sample of the rows inside the window, kept while it slides.

    size             r: rows drawn (of each stratum, where there are strata)
    strata           columns: every combination of their values is sampled by itself
    replacement      draw with replacement: chain-sample for a CountWindow, priority-sample for a
                     TimeWindow; else (the default) the r highest of one random priority a row
    seed             the same seed and the same rows give the same sample
    bound            ``bernstein`` (by the sample's own spread) or ``hoeffding`` (by range alone)
    control_variate  lean on the exact totals of y and y², at the price of halving the sample
    extremes         rows with the largest and with the smallest values taken whole, so many of
                     each, so that a few outliers do not set the range that a bound depends on;
                     None: an eighth of the size (none with replacement)
    """

    size: int = 1024
    strata: Sequence[str] = ()
    replacement: bool = False
    seed: int = 0
    bound: str = "bernstein"
    control_variate: bool = False
    extremes: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "strata", _names(self.strata))
        if not 1 <= self.size <= _LARGEST:
            raise ScriptError(f"a sample of {self.size} rows", hint=f"choose 1 to {_LARGEST:,}")
        if self.bound not in BOUNDS:
            raise ScriptError(f"unknown bound {self.bound!r}", hint=f"choose {' or '.join(BOUNDS)}")
        if self.extremes is not None and self.extremes < 0:
            raise ScriptError("extremes cannot be negative")
        if self.replacement and (self.strata or self.extremes):
            raise ScriptError(
                "strata and extremes are kept without replacement", hint="leave replacement out"
            )

    @property
    def taken_whole(self) -> int:
        """How many rows of the largest values (and of the smallest) are taken whole."""
        if self.replacement:
            return 0
        return extremes_of(self.size) if self.extremes is None else self.extremes


def extremes_of(size: int) -> int:
    """The rows taken whole on either side, where nobody says otherwise."""
    return size // 8


def _names(given: Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
