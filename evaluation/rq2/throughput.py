"""A window of summaries that slides over a stream, and two compiled ways to have them every time.

*Incremental*: the rows that left are subtracted and those that came are added. *Per-window scan*:
all rows inside are added up afresh. Both leave the same integers in the same table. It has a row
for each live atom; where all that Algorithm 1 keeps is kept, also one for each predicate's marginal
and one for the window, which are sums of atoms.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from evaluation.bench import Bench
from evaluation.repeated import in_turns
from evaluation.step import REGIONS, SUBJECTS, Findings, Row, Value
from ids.kernels.compiling import compiled
from ids.kernels.digits import accumulate
from ids.kernels.scatter import add_summary
from ids.model.expression import Column, Comparison, Literal
from ids.model.scale import Scale
from ids.predicates.refinement import Refinement
from ids.source import open_table
from ids.state.scaling import cut_column, fit_column

Words = npt.NDArray[np.int64]
Test = tuple[str, str]
"""A predicate: an attribute and the value it must have."""

ATOMS = "atoms"
EVERYTHING = "atoms, marginals, window"
_STEPS = (1, 10, 100)
_GAMES = {"AVG": 1, "VAR": 2}  # the degree of the moments that a game needs: (m, A) or (m, A, B)


def _exclusive(count: int) -> list[Test]:
    """Values of two attributes; all but six, which stand first, in the middle and last, unseen."""
    seen = [("region", region) for region in REGIONS]
    seen += [("endpoint", "/search"), ("endpoint", "/feed")]
    unseen = [("region", f"Edge-{k:02d}") for k in range(count - len(seen))]
    half = len(unseen) // 2
    return [*seen[:2], *unseen[:half], *seen[2:4], *unseen[half:], *seen[4:]]


# As many live atoms as the paper has: 2, 6, 12 and 12.
PREDICATES: dict[int, list[Test]] = {
    1: [("region", "EU-West")],
    4: [("region", "EU-West"), ("region", "US-East"), ("tier", "premium"), ("tier", "basic")],
    16: _exclusive(16),
    64: _exclusive(64),
}


def work(window: int, bench: Bench) -> Findings:
    """Every number of predicates, game, step and what is kept, at one window size."""
    tuples = bench.size.of(quick=400_000, full=1_000_000)
    # A scan costs as much at every slide: a few of them tell what all would take.
    most = bench.size.of(quick=1_000_000, full=4_000_000) // window
    stream = Stream(bench.events(SUBJECTS["synthetic"], window + tuples), "latency")
    rows: list[Row] = []
    settings = list(product(PREDICATES, _GAMES))
    for done, (count, game) in enumerate(settings):
        prepared = stream.prepared(PREDICATES[count], _GAMES[game])
        about: Row = {"predicates": count, "live": prepared.refinement.atoms, "game": game}
        for kept, step in product((ATOMS, EVERYTHING), _STEPS):
            slides = tuples // step
            maintained = Maintained(prepared, window, step, kept)
            scans = max(2, min(most, slides))
            rows.append({**about, **cell(maintained, slides, scans, bench.size.repetitions)})
        bench.said((done + 1) / len(settings))
    return {"rq2_throughput": rows}


def cell(maintained: Maintained, slides: int, scans: int, repetitions: int) -> dict[str, Value]:
    """Both ways side by side, after making sure that they give the same summaries."""
    incremental, scan = maintained.incremental(slides), maintained.scan(scans)
    if not np.array_equal(incremental(), maintained.scan(1, before=slides - 1)()):
        raise AssertionError(f"slides and scan disagree: {maintained.window}, {maintained.step}")
    took = in_turns({"ids": incremental, "scan": scan}, repetitions)
    ids, scanned = took["ids"], took["scan"]
    return {
        "window": maintained.window,
        "step": maintained.step,
        "kept": maintained.kept,
        "slides": slides,
        "scans": scans,
        "ids_tuples_s": ids.rate(slides * maintained.step),
        "scan_tuples_s": scanned.rate(scans * maintained.step),
        "ids_slides_s": ids.rate(slides),
        "scan_slides_s": scanned.rate(scans),
        "speedup": scanned.scaled(1 / scans).over(ids.scaled(1 / slides)),
    }


class Prepared(NamedTuple):
    """What the slide loop reads, found once for each row as in the engine.

    atoms   uint32[n]    each row's atom
    digits  int64[n, D]  each row's value, cut
    scale   how values are cut, and what is kept: degree 1 is (m, A), 2 is (m, A, B)
    """

    refinement: Refinement
    atoms: npt.NDArray[np.uint32]
    digits: Words
    scale: Scale

    @property
    def holds(self) -> npt.NDArray[np.bool_]:
        """bool[live atoms, K]: which predicates hold on which atom."""
        return self.refinement.holds(np.arange(self.refinement.atoms))

    @property
    def centre(self) -> Words:
        """Nothing is subtracted: no power above the second is kept."""
        return np.zeros(self.scale.digits, np.int64)


class Stream:
    """The columns of an Arrow table, and the measure ``value``."""

    def __init__(self, table: pa.Table, value: str) -> None:
        self.table = open_table(table, "events").read(table.column_names)
        self.value: npt.NDArray[np.float64] = table[value].to_numpy()

    def prepared(self, tests: list[Test], degree: int = 2) -> Prepared:
        """Atoms and digits of all rows, on a scale that holds every bit of every value."""
        refinement = Refinement([Comparison("=", Column(c), Literal(v)) for c, v in tests])
        magnitudes = np.abs(self.value)
        extremes = float(magnitudes.max()), float(magnitudes[magnitudes > 0].min())
        scale = fit_column(self.value, *extremes, degree)
        assert scale is not None
        digits = cut_column(self.value, scale)
        return Prepared(refinement, refinement.assign(self.table), digits, scale)


class _Beyond(NamedTuple):
    """The rows that an atom is part of beside its own: from ``starts[atom]`` on, to the next."""

    starts: Words
    rows: Words


@dataclass(frozen=True)
class Maintained:
    """A window of ``window`` rows that slides ``step`` rows at a time over a prepared stream.

    kept  ``ATOMS``, or ``EVERYTHING`` that Algorithm 1 keeps
    """

    prepared: Prepared
    window: int
    step: int
    kept: str

    def incremental(self, slides: int) -> Callable[[], Words]:
        """So many slides, from the first full window on; the table after the last of them.

        Many rows at once are summed by atom before marginals and the window are touched.
        """
        first, given = self.scan(0)(), self._given(0, slides)
        merged = self.kept == EVERYTHING and self.step > 1
        table = first.copy()

        def work() -> Words:
            table[:] = first
            (_merged if merged else _by_row)(table, *given)
            return table

        return work

    def scan(self, slides: int, before: int = 0) -> Callable[[], Words]:
        """The windows of the same slides from number ``before`` + 1 on, each scanned whole.

        With no slide at all it is the first window that is scanned.
        """
        live, count = self.prepared.holds.shape
        rows = live + count + 1 if self.kept == EVERYTHING else live
        table = np.zeros((rows, self.prepared.scale.words), np.int64)
        given = self._given((before + bool(slides)) * self.step, max(1, slides))

        def work() -> Words:
            _scanned(table, *given)
            return table

        return work

    def _given(self, first: int, slides: int) -> tuple[object, ...]:
        """What every kernel is given beside its table, from row ``first`` of the stream on."""
        _, atoms, digits, scale = self.prepared
        beyond = self._beyond() if self.kept == EVERYTHING else None
        moves = self.window, self.step, slides
        return beyond, atoms[first:], digits[first:], *moves, self.prepared.centre, scale.layout

    def _beyond(self) -> _Beyond:
        live, count = self.prepared.holds.shape
        found = [[*(live + np.flatnonzero(held)), live + count] for held in self.prepared.holds]
        starts = np.cumsum([0, *map(len, found)]).astype(np.int64)
        return _Beyond(starts, np.concatenate(found).astype(np.int64))


# A row's sign is a constant wherever this is called: the loop is compiled for each sign.


@njit(inline="always")
def _add(table, beyond, atom, digits, first, step, centre, scratch, layout, sign):
    for i in range(np.uint64(first), np.uint64(first + step)):
        a = np.uint64(atom[i])
        accumulate(table, a, digits[i], centre, scratch, layout, sign)
        if beyond is not None:
            for p in range(np.uint64(beyond.starts[a]), np.uint64(beyond.starts[a + np.uint64(1)])):
                row = np.uint64(beyond.rows[p])
                accumulate(table, row, digits[i], centre, scratch, layout, sign)


@compiled()
def _by_row(table, beyond, atom, digits, window, step, slides, centre, layout):
    """Each row to its atom and to every row beyond: ``scatter.slide`` for steps of any size."""
    scratch = np.zeros_like(centre)
    for t in range(slides):
        gone, come = t * step, t * step + window
        _add(table, beyond, atom, digits, gone, step, centre, scratch, layout, -1)
        _add(table, beyond, atom, digits, come, step, centre, scratch, layout, 1)


@compiled()
def _merged(table, beyond, atom, digits, window, step, slides, centre, layout):
    """The rows of a slide go to a delta by atom, as in the engine, and that goes to the table."""
    scratch = np.zeros_like(centre)
    live = len(beyond.starts) - 1
    delta = np.zeros((live, table.shape[1]), np.int64)
    touched = np.zeros(live, np.bool_)
    for t in range(slides):
        gone, come = t * step, t * step + window
        _add(delta, None, atom, digits, gone, step, centre, scratch, layout, -1)
        _add(delta, None, atom, digits, come, step, centre, scratch, layout, 1)
        for first in (gone, come):
            for i in range(first, first + step):
                touched[atom[i]] = True
        for a in range(live):
            if touched[a]:
                add_summary(table[a], delta[a], layout)
                for p in range(beyond.starts[a], beyond.starts[a + 1]):
                    add_summary(table[beyond.rows[p]], delta[a], layout)
                delta[a] = 0
                touched[a] = False


@compiled()
def _scanned(table, beyond, atom, digits, window, step, windows, centre, layout):
    """Each window by atom, and the atoms to what they are part of; the table of the last one.

    Returns a sum over what all of them found, so that none can be left out as useless.
    """
    scratch = np.zeros_like(centre)
    found = 0
    for t in range(windows):
        table[:] = 0
        _add(table, None, atom, digits, t * step, window, centre, scratch, layout, 1)
        if beyond is not None:
            for a in range(len(beyond.starts) - 1):
                for p in range(beyond.starts[a], beyond.starts[a + 1]):
                    add_summary(table[beyond.rows[p]], table[a], layout)
        found += table[0, 0] + table[0, 1]
    return found
