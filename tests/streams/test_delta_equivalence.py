"""After hundreds of thousands of slides the window is what a recount of its rows would say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

import ids
from ids.games import find
from ids.kernels.slide import slide
from ids.model import ColumnData, Kind, Scale, Table, lowest_bit
from ids.state import Summaries, cut_column
from tests.oracles import shapley
from tests.streams.exact import GAMES, Whole, wholes

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SLIDES = 300_000
WINDOW = 80
CHECKS = 200


def lognormal(rng: np.random.Generator, n: int) -> Floats:
    return rng.lognormal(3.0, 1.0, n)


def stress(rng: np.random.Generator, n: int) -> Floats:
    return rng.normal(1e9, 1e-3, n)


def heavy_tailed_integers(rng: np.random.Generator, n: int) -> Floats:
    return np.minimum(np.floor(10.0 * rng.pareto(0.7, n)), 2.0**53)


def drifting(rng: np.random.Generator, n: int) -> Floats:
    return np.linspace(0.0, 1e9, n) + rng.normal(0.0, 1.0, n)


def with_a_sentinel(rng: np.random.Generator, n: int) -> Floats:
    values = rng.normal(50.0, 5.0, n)
    values[n // 2] = 2.0**63
    return values


def bursting(rng: np.random.Generator, n: int) -> Floats:
    """Small values, then large ones: a batch at the border holds both, its window later but one."""
    large = np.arange(n) // 300 % 2 == 0
    return rng.normal(1.0, 0.1, n) * np.where(large, 1e12, 1e-3)


STREAMS = [bursting, lognormal, stress, heavy_tailed_integers, drifting, with_a_sentinel]


def near(found: float | None, exact: Fraction, size: Fraction) -> bool:
    assert found is not None
    return abs(Fraction(found) - exact) <= Fraction(1e-13) * size


def table(values: Floats, k: Ints) -> Table:
    columns = {"x": ColumnData(Kind.NUMBER, values), "k": ColumnData(Kind.NUMBER, k)}
    return Table(columns, len(values))


def compare(engine: ids.Engine, values: Floats, k: Ints) -> None:
    """The engine's aggregates and attributions, beside those of the rows inside."""
    whole = Whole(values)
    assert engine.rows == len(values)
    for game in GAMES:
        exact = whole.worth(game)
        assert near(engine.aggregate(game), exact, abs(exact))
        for name, members in (("few", k == 0), ("most", k < 3)):
            found, attributed = engine.attribute(game, name), whole.attribute(game, members)
            assert near(found.value, attributed.value, attributed.size)
            assert near(found.share, attributed.share, attributed.size)
            assert near(found.lift, attributed.lift, attributed.size)


def begun(window: int) -> ids.Engine:
    engine = ids.Engine(window=ids.CountWindow(window), value="x")
    engine.register("few", "k = 0")
    engine.register("most", "k < 3")
    return engine


@pytest.mark.parametrize("stream", STREAMS)
def test_batches_slid_through_the_engine_leave_no_drift(stream: object) -> None:
    assert callable(stream)
    rng = np.random.default_rng(7)
    values, k = stream(rng, SLIDES), rng.integers(0, 4, SLIDES)
    checked = set(rng.choice(SLIDES // WINDOW, CHECKS, replace=False).tolist())
    engine = begun(WINDOW)
    stop, slides = 0, 0
    while stop < SLIDES:
        start, stop = stop, min(SLIDES, stop + int(rng.integers(1, 2 * WINDOW)))
        engine.ingest(table(values[start:stop], k[start:stop]))
        slides += 1
        if slides in checked or stop == SLIDES:
            compare(engine, values[max(0, stop - WINDOW) : stop], k[max(0, stop - WINDOW) : stop])


@pytest.mark.parametrize("stream", STREAMS)
def test_a_large_window_is_as_exact(stream: object) -> None:
    assert callable(stream)
    rng = np.random.default_rng(11)
    size = 10_000
    values, k = stream(rng, 3 * size), rng.integers(0, 4, 3 * size)
    engine = begun(size)
    for stop in range(777, 3 * size, 777):
        engine.ingest(table(values[stop - 777 : stop], k[stop - 777 : stop]))
        if stop in (777 * 5, 777 * 20, 777 * 38):
            inside = slice(max(0, stop - size), stop)
            compare(engine, values[inside], k[inside])


def slid(values: Floats, atom: npt.NDArray[np.uint32], window: int) -> Summaries:
    """The state after sliding one row at a time over all of it."""
    scale = Scale.fit(values, float(np.abs(values).max()), 2, lowest=lowest_bit(values))
    state = Summaries(scale, 0, 4)
    digits = cut_column(values, scale)
    slide(state.atoms, atom, digits, window, state.centre, scale.layout)
    state.window = state.merged(np.arange(4))
    return state


@pytest.mark.parametrize("stream", STREAMS)
def test_one_row_at_a_time_leaves_no_drift(stream: object) -> None:
    assert callable(stream)
    rng = np.random.default_rng(13)
    values, atom = stream(rng, SLIDES), rng.integers(0, 4, SLIDES).astype(np.uint32)
    for stop in [*rng.integers(1, SLIDES, 20).tolist(), SLIDES]:
        state = slid(values[:stop], atom[:stop], WINDOW)
        inside = slice(max(0, stop - WINDOW), stop)
        whole = Whole(values[inside])
        for game in GAMES:
            exact = whole.worth(game)
            if whole.N > 1:
                assert near(state.worth(find(game)), exact, abs(exact))
            found = state.answer(state.atoms, 2, find(game))
            attributed = whole.attribute(game, atom[inside] == 2)
            for one, other in zip(found, attributed, strict=True):
                assert near(one, other, attributed.size)


def test_ten_million_slides_end_in_the_last_window_integer_for_integer() -> None:
    rng = np.random.default_rng(17)
    slides, window = 10_000_000, 1_000
    values = stress(rng, slides)
    atom = (np.arange(slides) % 4).astype(np.uint32)
    state = slid(values, atom, window)
    unit = state.scale.grid
    for a in range(4):
        rows = values[-window:][atom[-window:] == a]
        whole, exponent = wholes(rows.tolist())
        m, (A, B) = state.exact(state.atoms[a])
        shift = exponent - unit
        assert shift >= 0
        assert (m, A, B) == (
            len(rows),
            sum(whole) << shift,
            sum(q * q for q in whole) << (2 * shift),
        )


def test_the_quick_exact_window_is_the_oracle() -> None:
    rng = np.random.default_rng(19)
    values, members = rng.normal(1e9, 1e-3, 30), rng.random(30) < 0.4
    whole = Whole(values)
    for game in GAMES:
        chosen = np.flatnonzero(members).tolist()
        exact = shapley.closed_form(game, values.tolist(), chosen)
        assert whole.attribute(game, members).value == exact
