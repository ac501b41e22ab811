"""What a provisional predicate misses: the same whole numbers at every slide, 0 when rebuilt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa

import ids
from evaluation.step import Row

__all__ = ["Missed", "invariance"]

_NAME = "asked"
_LARGEST = 200  # rows of a slide, at most


@dataclass(frozen=True)
class Missed:
    """What the maintained sums of a predicate differ in from exact ones, as whole numbers.

    For every measure: rows, then Σ q and Σ q² in units of the measure's grid.
    """

    sums: tuple[tuple[int, ...], ...]

    @classmethod
    def between(cls, estimated: ids.Engine, exact: ids.Engine) -> Missed:
        """One engine promoted the predicate from its sample, the other always had it."""
        ours, other = estimated._core, exact._core
        assert ours is not None
        assert other is not None
        at = other.membership.names.index(_NAME)
        found = []
        for number, (mine, its) in enumerate(zip(ours.measures, other.measures, strict=True)):
            if ours.provisional:
                (one,) = ours.provisional.values()
                words = one.sums[number][0]
            else:
                (name,) = estimated.promoted
                words = mine.marginals[ours.membership.names.index(name)]
            if mine.scale != its.scale:
                raise AssertionError("sums in different units cannot be compared")
            (rows, sums), (truly, true_sums) = mine.exact(words), its.exact(its.marginals[at])
            found.append((rows - truly, *(a - b for a, b in zip(sums, true_sums, strict=True))))
        return cls(tuple(found))

    @property
    def nothing(self) -> bool:
        """Whether all of them are 0."""
        return not any(any(each) for each in self.sums)


def invariance(
    events: pa.Table,
    value: str,
    condition: str,
    *,
    window: int,
    slides: int,
    sample: int,
    rng: np.random.Generator,
    said: Callable[[float], None] = lambda _: None,
) -> tuple[list[Row], Row]:
    """What is missed after every slide, and in short: the last slide comes after the rebuild.

    The engines have seen every row before the predicate is promoted, and see the first ones again
    afterwards: no value can then be beyond their scale, which would rebuild at once.
    """
    promotion = ids.Promotion(threshold=1, bootstrap="sample", rebuild_after=inf)
    engine = ids.Engine(
        ids.CountWindow(window), value, sampling=ids.Sampling(sample), promotion=promotion
    )
    exact = ids.Engine(ids.CountWindow(window), value)
    exact.register(_NAME, condition)
    for begin in range(0, events.num_rows, window):  # a slide larger than the window is cut
        for each in (engine, exact):
            each.ingest(events.slice(begin, window))
    first = engine.attribute("AVG", condition)
    rows: list[Row] = []
    missed: list[Missed] = []
    place, bounded = 0, True
    for slide in range(slides + 1):
        if slide == slides:
            engine.rebuild()
        missed.append(Missed.between(engine, exact))
        row = _seen(engine, exact, condition)
        bounded = bounded and abs(row["avg"] - row["avg_exact"]) <= row["avg_error"]
        rows.append({"slide": slide, "moved": place, **row})
        size = int(rng.integers(1, _LARGEST + 1))
        delta = events.take(np.arange(place, place + size) % events.num_rows)
        engine.ingest(delta)
        exact.ingest(delta)
        place += size
        said((slide + 1) / (slides + 1))
    short: Row = {
        "window": window,
        "sample": sample,
        "touched": first.touched,
        "slides": slides,
        "moved": rows[-1]["moved"],
        "distinct_errors": len(set(missed[:-1])),
        "began_exact": missed[0].nothing,
        "rebuilt_exact": missed[-1].nothing,
        "bounded": bounded,
        "last_mechanism": rows[-1]["mechanism"],
    }
    return rows, short


def _seen(engine: ids.Engine, exact: ids.Engine, condition: str) -> dict[str, Any]:
    """What whoever asks sees of it: rows counted, and AVG with its bound."""
    counts = [each.attribute("COUNT", condition).value for each in (engine, exact)]
    ours, truly = (each.attribute("AVG", condition) for each in (engine, exact))
    return {
        "mechanism": ours.mechanism,
        "rows_missed": int(counts[0] - counts[1]),
        "rows_exact": int(counts[1]),
        "avg": ours.value,
        "avg_exact": truly.value,
        "avg_error": ours.error,
    }
