"""Checks an engine's arguments, and converts them to and from the JSON stored in a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from ids.errors import ArgumentError
from ids.language import parse_expression, parse_predicate
from ids.model import (
    MAX_DEGREE,
    Changelog,
    CountWindow,
    Expression,
    Promotion,
    Sampling,
    TimeWindow,
    as_whole,
    checked_count,
    checked_flag,
)

Window = CountWindow | TimeWindow | Changelog


@dataclass(frozen=True, slots=True)
class Settings:
    """The arguments of ``ids.Engine``, which documents them; lateness is in microseconds."""

    window: Window
    values: tuple[str, ...]
    order_by: str | None
    lateness: int
    retain: bool
    degree: int
    atom_limit: int
    intersections: tuple[str, ...]
    index: tuple[str, ...] = ()
    sampling: Sampling | None = None
    promotion: Promotion | None = None

    def __post_init__(self) -> None:
        self._check_types()
        if isinstance(self.window, TimeWindow) and self.order_by is None:
            raise ArgumentError("a TimeWindow requires order_by, the column with the event time")
        degree = as_whole(self.degree)
        if degree is None or not 0 <= degree <= MAX_DEGREE:
            raise ArgumentError(
                f"degree {self.degree!r} is out of range", hint=f"choose 0 to {MAX_DEGREE}"
            )
        object.__setattr__(self, "degree", degree)
        object.__setattr__(self, "atom_limit", checked_count("atom_limit", self.atom_limit))
        object.__setattr__(self, "retain", checked_flag("retain", self.retain))
        self._check_requirements()

    def _check_types(self) -> None:
        """Raise if an argument has the wrong type."""
        if not isinstance(self.window, Window):
            raise ArgumentError(
                f"window={self.window!r} is not a window", hint=_suggested_window(self.window)
            )
        if self.order_by is not None and not isinstance(self.order_by, str):
            raise ArgumentError(
                f"order_by={self.order_by!r} is not a column name", hint="give the name of a column"
            )
        if self.sampling is not None and not isinstance(self.sampling, Sampling):
            raise ArgumentError(
                f"sampling={self.sampling!r} is not a Sampling", hint="give ids.Sampling(size=1024)"
            )
        if self.promotion is not None and not isinstance(self.promotion, Promotion):
            raise ArgumentError(
                f"promotion={self.promotion!r} is not a Promotion", hint="give ids.Promotion()"
            )

    def _check_requirements(self) -> None:
        """Raise if an option requires retained rows or a sample and the engine keeps none."""
        if self.index and not self.retain:
            raise ArgumentError("an index requires retained rows", hint="leave retain=False out")
        if self.promotion is not None and not self.retain:
            raise ArgumentError("promotion requires retained rows", hint="leave retain=False out")
        if self.sampling is None:
            if self.promotion is not None and self.promotion.bootstrap == "sample":
                raise ArgumentError(
                    'bootstrap="sample" requires a sample', hint="give sampling=ids.Sampling()"
                )
            return
        if isinstance(self.window, Changelog):
            raise ArgumentError(
                "a Changelog cannot be sampled: its rows leave in any order",
                hint="sample a CountWindow or a TimeWindow",
            )
        if self.sampling.replacement and self.lateness:
            raise ArgumentError(
                "a sample with replacement does not support late rows", hint="leave lateness out"
            )

    def measures(self) -> dict[str, Expression]:
        """Return the parsed measures, keyed by their text."""
        return {text: parse_expression(text) for text in self.values}

    def combinations(self) -> dict[str, Expression]:
        """Return the parsed intersections, keyed by their text."""
        return {text: parse_predicate(text) for text in self.intersections}

    def facts(self) -> dict[str, Any]:
        """Return the settings as a dict that can be stored as JSON."""
        match self.window:
            case CountWindow(size, slide):
                window: list[str | int | None] = ["count", size, slide]
            case TimeWindow():
                window = ["time", self.window.duration, self.window.slide]
            case _:
                window = ["changelog"]
        return {**asdict(self), "window": window}

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Settings:
        """Build the settings from the dict that ``facts`` returned."""
        kind, *rest = facts["window"]
        made = {"count": CountWindow, "time": TimeWindow, "changelog": Changelog}[kind]
        sampling, promotion = facts["sampling"], facts["promotion"]
        texts = {name: tuple(facts[name]) for name in ("values", "intersections", "index")}
        parts = {
            "window": made(*rest),
            "sampling": None if sampling is None else Sampling(**sampling),
            "promotion": None if promotion is None else Promotion(**promotion),
        }
        return cls(**{**facts, **texts, **parts})


def _suggested_window(given: object) -> str:
    rows = as_whole(given)
    if rows is not None and rows > 0:
        return f"give ids.CountWindow({rows})"
    if isinstance(given, str | timedelta):
        return f"give ids.TimeWindow({given!r})"
    return "give ids.CountWindow(1000), ids.TimeWindow('10 minutes') or ids.Changelog()"
