"""What should hold the rows of a value: sorted blocks, roaring bitmaps, or a word of bits a value?

A window of a million rows slides by a thousand; the column is like a taxi's pick-up zone, Zipf over
260 values and one rare. Each structure is kept up to date, then asked for IN lists of growing
selectivity; an answer is the ascending places of the rows, the same from all. A scan stands beside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from evaluation.benchmarks.record import describe, write
from ids.kernels.postings import emit_bits, mark_places
from ids.model.expression import Column, Comparison, Expression, In, Literal
from ids.model.table import ColumnData, Kind, Table
from ids.predicates.truth import truth
from ids.state.index import Index
from ids.state.retained import Retained

__all__ = ["main"]

WINDOW = 1_000_000
BATCH = 1_000
SLIDES = 262  # four of the largest blocks come and go
ROUNDS = 3
VALUES = 261
RARE = 260
SELECTIVITIES = (2e-5, 1e-3, 0.1, 0.6)
_SPARE = 4096

Zones = npt.NDArray[np.int64]
Measures = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


class Structure(Protocol):
    """Follows a sliding column, and finds the rows of some values."""

    def slide(self, coming: Zones, going: Zones) -> float:
        """Rows come and as many of the oldest go; returns the seconds of its own upkeep."""

    def find(self, values: Sequence[int]) -> Places:
        """The ascending places of the rows of these values, 0 the oldest."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""


class Blocks:
    """Ours: blocks of rows in the order of their values."""

    def __init__(self) -> None:
        self.retained = Retained({"zone": Kind.NUMBER})
        self.index = Index(["zone"], self.retained.kinds)

    def slide(self, coming: npt.NDArray[Any], going: npt.NDArray[Any]) -> float:
        table = Table({"zone": ColumnData(Kind.NUMBER, coming)}, len(coming))
        tags = np.zeros(len(coming), np.uint32)
        self.retained.rows.append(self.retained.block(table, tags, [], [], None))
        self.retained.rows.drop_front(len(going))
        start = perf_counter()
        self.index.follow(self.retained)
        return perf_counter() - start

    def ask(self, condition: Expression) -> Places:
        access = self.index.access(condition, self.retained)
        assert access is not None
        return access.places(self.retained)

    def find(self, values: Sequence[int]) -> Places:
        return self.ask(_among(values))

    def scan(self, condition: Expression) -> Places:
        return np.flatnonzero(truth(condition, self.retained.table()) == 1)

    @property
    def nbytes(self) -> int:
        return self.index.nbytes


class Roaring:
    """A compressed bitmap of row numbers for each value."""

    def __init__(self) -> None:
        self.bitmaps = [BitMap() for _ in range(VALUES)]
        self.first = self.last = 0

    def slide(self, coming: Zones, going: Zones) -> float:
        start = perf_counter()
        for value, rows in _by_value(coming, self.last):
            self.bitmaps[value].update(rows.astype(np.uint32))
        self.last += len(coming)
        for value in np.unique(going).tolist():
            self.bitmaps[value].remove_range(self.first, self.first + len(going))
        self.first += len(going)
        return perf_counter() - start

    def find(self, values: Sequence[int]) -> Places:
        several = [self.bitmaps[value] for value in values]
        rows = several[0] if len(several) == 1 else BitMap.union(*several)
        return np.asarray(rows.to_array()).astype(np.int64) - self.first

    @property
    def nbytes(self) -> int:
        return sum(len(bitmap.serialize()) for bitmap in self.bitmaps)


class Words:
    """A row of bits for each value, over a ring of the window's rows."""

    def __init__(self) -> None:
        self.bits = np.zeros((VALUES, (WINDOW + _SPARE) // 64), np.uint64)
        self.size = self.bits.shape[1] * 64
        self.first = self.last = 0

    def slide(self, coming: Zones, going: Zones) -> float:
        start = perf_counter()
        for value, rows in _by_value(coming, self.last):
            mark_places(rows % self.size, self.bits[value])
        self.last += len(coming)
        gone = np.arange(self.first // 64, (self.first + len(going)) // 64)
        self.bits[:, gone % self.bits.shape[1]] = 0
        self.first += len(going)
        return perf_counter() - start

    def find(self, values: Sequence[int]) -> Places:
        bits = self.bits[values[0]]
        if len(values) > 1:
            bits = np.bitwise_or.reduce(self.bits[values], axis=0)
        head = self.first % self.size // 64
        places = np.empty(int(np.bitwise_count(bits).sum()), np.int64)
        count = emit_bits(bits[head:], places)
        emit_bits(bits[:head], places[count:])
        places[:count] += head * 64 - self.first % self.size
        places[count:] += self.size - self.first % self.size
        return places[np.searchsorted(places[:64], 0) :]

    @property
    def nbytes(self) -> int:
        return self.bits.nbytes


def main() -> None:
    """Measure, keep, show."""
    zones, values = _zones(WINDOW + ROUNDS * SLIDES * BATCH)
    structures: dict[str, Structure] = {
        "sorted blocks": Blocks(), "roaring": Roaring(), "packed words": Words(),
    }  # fmt: skip
    upkeep = _kept(structures, zones)
    measures = np.random.default_rng(2).lognormal(2.5, 0.6, len(zones))
    doubles = Blocks()  # each its own, asked for ranges: nothing for a bitmap
    upkeep |= _kept({"sorted blocks, doubles": doubles}, measures)
    questions = [
        _asked(structures, doubles, (zones[-WINDOW:], measures[-WINDOW:]), values, share)
        for share in SELECTIVITIES
    ]
    bytes_of = {**structures, "sorted blocks, doubles": doubles}
    kept = {
        name: {"ns_per_row": ns, "bytes_per_row": bytes_of[name].nbytes / WINDOW}
        for name, ns in upkeep.items()
    }
    _show(kept, questions)
    write(
        {
            "name": "index_structures", "window": WINDOW, "batch": BATCH, "slides": SLIDES,
            "rounds": ROUNDS, "kept": kept, "questions": questions,
            "pyroaring": version("pyroaring"), **describe(),
        }
    )  # fmt: skip


def _asked(
    structures: dict[str, Structure], doubles: Blocks, window: tuple[Zones, Measures],
    shares: npt.NDArray[np.float64], share: float,
) -> dict[str, Any]:  # fmt: skip
    """One selectivity put to everyone, after all have been seen to agree."""
    zones, measures = window
    chosen = _chosen(shares, share)
    expected = np.flatnonzero(np.isin(zones, chosen))
    above = Comparison(">", Column("zone"), Literal(float(np.quantile(measures, 1 - share))))
    blocks = structures["sorted blocks"]
    assert isinstance(blocks, Blocks)
    contenders: dict[str, Callable[[], Places]] = {
        **{name: partial(structure.find, chosen) for name, structure in structures.items()},
        "scan": partial(blocks.scan, _among(chosen)),
    }
    for name, work in contenders.items():
        assert np.array_equal(work(), expected), name
    contenders["sorted blocks, doubles"] = partial(doubles.ask, above)
    contenders["scan, doubles"] = partial(doubles.scan, above)
    assert np.array_equal(doubles.ask(above), doubles.scan(above))
    spent = {name: _best(work) * 1e6 for name, work in contenders.items()}
    return {"selectivity": share, "rows": len(expected), "values": len(chosen), "us": spent}


def _zones(rows: int) -> tuple[Zones, npt.NDArray[np.float64]]:
    """Zipf over 260 values and one that is rare; and how often each comes."""
    share = np.append(1.0 / np.arange(1, VALUES), 0.0)
    share *= (1 - 2e-5) / share.sum()
    share[RARE] = 2e-5
    rng = np.random.default_rng(1)
    return rng.choice(VALUES, rows, p=share).astype(np.int64), share


def _chosen(share: npt.NDArray[np.float64], wanted: float) -> list[int]:
    """Values that together make the selectivity, the most frequent that fit first."""
    chosen: list[int] = []
    left = wanted * 1.02
    for value in np.argsort(-share).tolist():
        if share[value] <= left and (value != RARE or not chosen):
            chosen.append(value)
            left -= share[value]
        if left < 0.05 * wanted:
            break
    return sorted(chosen)


def _among(values: Sequence[int]) -> Expression:
    if len(values) == 1:
        return Comparison("=", Column("zone"), Literal(values[0]))
    return In(Column("zone"), tuple(Literal(value) for value in values))


def _by_value(zones: Zones, first: int) -> list[tuple[int, Zones]]:
    """The row numbers of each value."""
    order = np.argsort(zones, kind="stable")
    found, starts = np.unique(zones[order], return_index=True)
    return list(zip(found.tolist(), np.split(order + first, starts[1:]), strict=True))


def _kept(structures: dict[str, Any], column: npt.NDArray[Any]) -> dict[str, float]:
    """Fill each structure, slide it; the best round's ns a row."""
    nothing = column[:0]
    for structure in structures.values():
        for start in range(0, WINDOW, 100_000):
            structure.slide(column[start : start + 100_000], nothing)
    best = dict.fromkeys(structures, float("inf"))
    for turn in range(ROUNDS):
        for name, structure in structures.items():
            spent = 0.0
            for slide in range(turn * SLIDES, (turn + 1) * SLIDES):
                at = slide * BATCH
                coming = column[WINDOW + at : WINDOW + at + BATCH]
                spent += structure.slide(coming, column[at : at + BATCH])
            best[name] = min(best[name], spent / (SLIDES * BATCH) * 1e9)
    return best


def _best(work: Callable[[], object]) -> float:
    """Seconds of one call: the best of some bursts."""
    start = perf_counter()
    work()
    burst = max(1, min(500, int(0.01 / (perf_counter() - start))))
    best = float("inf")
    for _ in range(9):
        start = perf_counter()
        for _ in range(burst):
            work()
        best = min(best, (perf_counter() - start) / burst)
    return best


def _show(kept: dict[str, dict[str, float]], questions: list[dict[str, Any]]) -> None:
    print("| structure | kept, ns/row | bytes/row |\n|---|---:|---:|")
    for name, cost in kept.items():
        print(f"| {name} | {cost['ns_per_row']:.0f} | {cost['bytes_per_row']:.2f} |")
    names = list(questions[0]["us"])
    print("\n| selectivity | rows | " + " | ".join(names) + " |")
    print("|---" + "|---:" * (len(names) + 1) + "|")
    for one in questions:
        times = " | ".join(f"{one['us'][name]:,.1f} µs" for name in names)
        print(f"| {one['selectivity']:g} | {one['rows']:,} | {times} |")
