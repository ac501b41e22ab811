"""The sample of a sliding window: what must be drawn is drawn, and every row is as likely."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from itertools import accumulate, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ids.errors import ArgumentError, StateError, UnknownNameError
from ids.model import ColumnData, CountWindow, Kind, Sampling, Table, TimeWindow
from ids.predicates import Measure
from ids.state import WindowSample
from ids.state import window_sample as candidates
from ids.state.window_sample import Chains
from tests.state.samples import KINDS, Stream, chi_square, expected, limit, numbers, subsets

TRIALS = 1000


@pytest.fixture(autouse=True)
def swept_often(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small streams see what large ones do: sweeps, large batches, rows moved to the front."""
    if "bytes" not in request.node.name:
        monkeypatch.setattr(candidates, "_FEW_ROWS", 6)


batches = st.lists(
    st.lists(
        st.tuples(
            st.integers(-6, 4),
            st.integers(0, 3),
            st.sampled_from([-3.0, 0.0, 1.0, 2.0, 2.5, 1e9]),
            st.booleans() | st.just(True),
        ),
        max_size=12,
    ),
    max_size=12,
)
samplings = st.builds(
    Sampling,
    size=st.integers(1, 9),
    strata=st.sampled_from([(), ("group",)]),
    seed=st.integers(0, 2**64 - 1),
    extremes=st.sampled_from([None, 0, 1, 3]),
)


def check(stream: Stream, size: int | None) -> None:
    """The drawing of either measure against sorting all rows inside."""
    rows = stream.inside
    for measure in (0, 1):
        drawing = stream.sample.drawn(measure, size)
        asked = size or stream.sampling.size
        whole, parts = expected(rows, stream.sampling, measure, asked)
        drawn = numbers(drawing)
        assert drawn[: drawing.whole] == whole
        assert drawing.complete == (not parts and len(whole) == len(rows))
        found = {}
        for part, start in enumerate(drawing.starts[:-1]):
            own = drawn[drawing.whole + start : drawing.whole + drawing.starts[part + 1]]
            group = None
            if drawing.strata is not None:
                column = drawing.strata.columns["group"]
                null = column.valid is not None and not column.valid[part]
                assert column.dictionary is not None
                word = column.dictionary[column.values.astype(np.intp)[part]]
                group = 3 if null else "abc".index(word)
            found[group] = own
            inside = [row for row in rows if group is None or row.group == group]
            left = len(inside) - sum(row.sequence in whole for row in inside)
            assert drawing.population[part] == left
        assert found == parts
        if measure:
            by_number = {row.sequence: row for row in rows}
            assert drawing.value.tolist() == [by_number[n].y for n in drawn]
            assert drawing.plays.tolist() == [by_number[n].plays for n in drawn]
            rest = [row.y for row in rows if row.plays and row.sequence not in whole]
            assert drawing.low <= drawing.high
            assert not rest or (drawing.low <= min(rest) and max(rest) <= drawing.high)
            if not drawing.whole and rest:
                assert (drawing.low, drawing.high) == (min(rest), max(rest))


@settings(max_examples=80)
@given(batches, samplings, st.sampled_from([CountWindow(9), CountWindow(30), TimeWindow(8)]))
def test_what_is_drawn_is_what_sorting_all_rows_gives(
    given_batches: list[list[tuple[int, int, float, bool]]],
    sampling: Sampling,
    window: CountWindow | TimeWindow,
) -> None:
    stream = Stream(sampling, window)
    clock = 0
    for number, batch in enumerate(given_batches):
        steps = [max(0, row[0]) for row in batch]
        times = [clock + t for t in accumulate(steps)]
        if isinstance(window, TimeWindow):
            times = [t + min(0, row[0]) for t, row in zip(times, batch, strict=True)]
        clock += sum(steps)
        stream.feed_rows(times, batch)
        check(stream, None if number % 2 else 1 + number % sampling.size)


@settings(max_examples=12)
@given(batches, samplings, st.integers(0, 6))
def test_a_restored_sample_goes_on_as_if_nothing_had_happened(
    given_batches: list[list[tuple[int, int, float, bool]]], sampling: Sampling, cut: int
) -> None:
    windows: list[CountWindow | TimeWindow] = [CountWindow(9), TimeWindow(8)]
    for replacement, window in product((False, True), windows):
        if replacement:
            sampling = Sampling(size=sampling.size, seed=sampling.seed, replacement=True)
        one, other = Stream(sampling, window), Stream(sampling, window)
        for number, batch in enumerate(given_batches):
            for stream in (one, other):
                if number == 1:  # an empty window in between
                    stream.inside = []
                    stream.sample.clear()
                stream.feed_rows([number] * len(batch), batch)
            if number == cut:
                facts = json.loads(json.dumps(one.sample.facts()))
                arrays = {name: array.copy() for name, array in one.sample.arrays().items()}
                one.sample = WindowSample(KINDS, 1, sampling, window)
                one.sample.restore(facts, arrays)
            if number >= cut:
                found, wanted = one.sample.drawn(1), other.sample.drawn(1)
                assert numbers(found) == numbers(wanted)
                assert found.population.tolist() == wanted.population.tolist()


# Batches of a stream, by the times of their rows; the window holds 7 rows at the end of each.
STREAMS: dict[str, tuple[CountWindow | TimeWindow, list[list[int]]]] = {
    "count, row by row": (CountWindow(7), [[t] for t in range(12)]),
    "count, in batches": (CountWindow(7), [list(range(a, a + 5)) for a in range(0, 25, 5)]),
    "count, a large batch": (CountWindow(7), [[0, 1], list(range(2, 60)), [60]]),
    "time, steady": (TimeWindow(7), [[t, t + 1] for t in range(0, 20, 2)]),
    "time, bursts": (TimeWindow(10), [[0] * 30, [5] * 3, [9] * 20, [17] * 2, [19] * 5, [20]]),
    "time, late rows": (TimeWindow(10), [[0] * 9, [8, 9, 12], [3, 5, 12], [2, 14], [7]]),
}


@pytest.mark.parametrize("name", STREAMS)
def test_every_subset_of_the_window_is_as_likely(name: str) -> None:
    assert subsets(lambda seed: run(WindowSample, name, seed), 3, TRIALS) < 0


def run(kind: type[WindowSample], name: str, seed: int) -> tuple[list[int], list[int]]:
    window, times = STREAMS[name]
    stream = Stream(Sampling(size=3, extremes=0, seed=seed), window, kind)
    for batch in times:
        stream.feed(batch)
    if name != "time, bursts":
        assert len(stream.inside) == 7
    return [row.sequence for row in stream.inside], numbers(stream.sample.drawn(0))


class Unforgetting(WindowSample):
    """The mutant whose rows stay when they have left the window."""

    def expire(self, oldest: tuple[int, int] | None, left: Any) -> None:
        self._drawn.clear()
        self._strata.expire(left)


@pytest.mark.parametrize("name", STREAMS)
def test_the_statistic_catches_a_sample_that_forgets_the_cutoff(name: str) -> None:
    assert subsets(lambda seed: run(Unforgetting, name, seed), 3, TRIALS // 2) > 0


def test_extremes_leave_the_rest_as_likely_even_where_values_are_equal() -> None:
    """Ties broken by priority would take the high ones whole, and draw the others too seldom."""

    def draw(seed: int) -> tuple[list[int], list[int]]:
        stream = Stream(Sampling(size=2, extremes=2, seed=seed), CountWindow(12))
        for start in range(0, 30, 3):
            rows = range(start, start + 3)
            stream.feed(list(rows), values=[5.0 if row % 2 else 1.0 + row % 4 for row in rows])
        drawing = stream.sample.drawn(1)
        drawn = numbers(drawing)
        assert drawing.whole == 4
        rest = sorted({row.sequence for row in stream.inside} - set(drawn[:4]))
        return rest, drawn[4:]

    assert subsets(draw, 2, TRIALS) < 0


@pytest.mark.parametrize("window", [CountWindow(6), TimeWindow(6)])
def test_with_replacement_every_pair_of_rows_is_as_likely(window: CountWindow | TimeWindow) -> None:
    counts: Counter[tuple[int, ...]] = Counter()
    for seed in range(2 * TRIALS):
        stream = Stream(Sampling(size=2, replacement=True, seed=seed), window)
        for start, rows in ((0, 4), (4, 1), (5, 9), (14, 2)):
            stream.feed(list(range(start, start + rows)))
        drawing = stream.sample.drawn(1)
        assert drawing.replacement
        assert drawing.population.tolist() == [6]
        y = [row.y for row in stream.inside]
        assert (drawing.low, drawing.high) == (min(y), max(y))
        counts[tuple(numbers(drawing))] += 1
    assert all(10 <= row <= 15 for pair in counts for row in pair)
    assert chi_square(counts.values(), 2 * TRIALS, 36) < limit(35)


@pytest.mark.parametrize("rows", [1, 3, 6, 7, 30])
def test_a_chain_is_uniform_while_the_window_fills_and_after(rows: int) -> None:
    chains = Chains(copies=20_000, window=6, seed=5)
    for _ in range(rows):
        chains.arrive(np.arange(1))
    inside = min(rows, 6)
    counts = np.bincount(chains.first() - (rows - inside + 1), minlength=inside)
    assert len(counts) == inside
    assert chi_square(counts, 20_000, inside) < limit(max(1, inside - 1))


def test_the_rows_of_chains_are_kept_as_long_as_they_are_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(candidates, "_SLACK", 1)  # sweep whenever there is anything to sweep
    stream = Stream(Sampling(size=30, replacement=True, seed=3), CountWindow(60))
    chains = Chains(copies=30, window=60, seed=3)
    for rows in [1, 1, 3, 7, 40, 1, 2, 1, 1, 5, 1, 1, 1, 12] * 6:
        stream.feed([0] * rows)
        chains.arrive(np.arange(rows))
        assert numbers(stream.sample.drawn(1)) == (chains.first() - 1).tolist()


def test_restored_chains_know_how_far_the_window_is_filled() -> None:
    one = Chains(50, 9, seed=1)
    one.arrive(np.arange(40))
    one.begin()
    one.arrive(np.arange(3))
    other = Chains(50, 9, seed=1)
    other.restore(json.loads(json.dumps(one.facts())), one.arrays())
    one.arrive(np.arange(4))
    other.arrive(np.arange(4))
    assert one.first().tolist() == other.first().tolist()


# A count window of 8 over a stream whose share of stratum 0 changes: 5 of its rows are inside.
SHARES = [0] * 8 + [1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 0]


def stratum_0(draw: Callable[[int], list[int]], trials: int) -> float:
    """The statistic over the rows of stratum 0 inside, of which one is drawn."""
    first = len(SHARES) - 8
    inside = [row for row in range(first, len(SHARES)) if SHARES[row] == 0]
    return subsets(lambda seed: (inside, draw(seed)), 1, trials)


def test_a_stratum_is_sampled_uniformly_whatever_its_share_of_the_window() -> None:
    def stratified(seed: int) -> list[int]:
        sampling = Sampling(size=1, strata=("group",), extremes=0, seed=seed)
        stream = Stream(sampling, CountWindow(8))
        for start in range(0, len(SHARES), 4):
            rows = range(start, min(start + 4, len(SHARES)))
            stream.feed(list(rows), [SHARES[row] for row in rows])
        drawing = stream.sample.drawn(0)
        assert drawing.strata is not None
        part = drawing.strata.columns["group"].values.tolist().index(0)
        return [numbers(drawing)[part]]

    assert stratum_0(stratified, TRIALS) < 0


def chained(seed: int) -> list[int]:
    """The mutant: a chain-sample run inside the stratum, with its rows inside for a window."""
    rng = np.random.default_rng(seed)
    chain: list[int] = []
    arrived = awaited = 0
    for row, stratum in enumerate(SHARES):
        if stratum == 0:
            arrived += 1
            inside = SHARES[max(0, row - 7) : row + 1].count(0)
            leaves = bool(chain) and chain[0] == row - 8
            adopts = not leaves and rng.random() < 1 / inside
            if adopts or not chain or arrived == awaited:
                chain = [row] if adopts else [*chain, row]
                awaited = arrived + int(rng.integers(1, inside + 1))
        chain = [link for link in chain if link > row - 8]
    return chain[:1]


def guessed(window: int) -> Callable[[int], list[int]]:
    """Our own chains, told that the stratum has so many rows inside."""
    own = [row for row, stratum in enumerate(SHARES) if stratum == 0]

    def draw(seed: int) -> list[int]:
        chains = Chains(1, window, seed)
        chains.arrive(np.arange(len(own)))
        head = own[int(chains.first()[0]) - 1]
        return [head] if head >= len(SHARES) - 8 else []

    return draw


def test_the_statistic_catches_a_chain_sample_inside_a_stratum() -> None:
    trials = 4000
    assert stratum_0(chained, trials) > 0
    assert stratum_0(guessed(4), trials) > 0
    assert stratum_0(guessed(8), trials) > 0
    assert stratum_0(guessed(5), trials) < 0, "right by luck: no window is right at all times"


# ── ends ─────────────────────────────────────────────────────────────────────────────────────────


def plain(rows: int, size: int = 4, **facts: Any) -> Stream:
    stream = Stream(Sampling(size=size, **facts), CountWindow(50))
    if rows:
        stream.feed(list(range(rows)))
    return stream


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("window", [CountWindow(5), TimeWindow(5)])
def test_an_empty_window_gives_a_complete_drawing_of_nothing(
    window: CountWindow | TimeWindow, replacement: bool
) -> None:
    sample = WindowSample(KINDS, 1, Sampling(replacement=replacement), window)
    emptied = Stream(Sampling(replacement=replacement), window)
    emptied.feed([1, 2, 3])
    emptied.sample.expire(None, np.zeros(0, np.int32))
    for one, measure in product((sample, emptied.sample), (0, 1)):
        drawing = one.drawn(measure)
        assert (drawing.rows.rows, drawing.whole, drawing.complete) == (0, 0, True)
        assert drawing.starts.tolist() == [0]
        assert set(drawing.rows.columns) == set(KINDS)
        assert (drawing.low, drawing.high) == (0.0, 0.0)


def test_one_row_is_the_whole_window() -> None:
    drawing = plain(1).sample.drawn(1)
    assert (numbers(drawing), drawing.whole, drawing.complete) == ([0], 1, True)
    twice = plain(1, replacement=True).sample.drawn(1, 3)
    assert (numbers(twice), twice.population.tolist()) == ([0, 0, 0], [1])


def test_a_window_smaller_than_the_sample_is_held_whole() -> None:
    drawing = plain(30, size=64).sample.drawn(1)
    assert drawing.complete
    assert numbers(drawing) == list(range(30))
    assert len(drawing.population) == 0


def test_a_few_players_among_many_rows_are_all_taken_whole() -> None:
    stream = Stream(Sampling(size=4, extremes=3), CountWindow(50))
    plays = [row in (5, 11, 17, 40) for row in range(45)]
    stream.feed(list(range(45)), plays=plays)
    drawing = stream.sample.drawn(1)
    assert numbers(drawing)[: drawing.whole] == [5, 11, 17, 40]
    assert (drawing.low, drawing.high) == (0.0, 0.0)
    assert drawing.population.tolist() == [41]


def test_no_more_rows_are_given_than_are_kept() -> None:
    sample = plain(30).sample
    assert len(numbers(sample.drawn(0, 3))) == 3
    with pytest.raises(ArgumentError, match="a sample of 5 rows: 4 are kept; ask for 1 to 4"):
        sample.drawn(0, 5)
    with pytest.raises(ArgumentError, match="a sample of 0 rows"):
        sample.drawn(0, 0)


def test_a_stratum_must_be_a_column() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'group'"):
        WindowSample(KINDS, 1, Sampling(strata=("gruop",)), CountWindow(5))


def test_the_same_seed_gives_the_same_sample_and_another_another() -> None:
    same = [numbers(plain(45, seed=7).sample.drawn(1)) for _ in range(2)]
    assert same[0] == same[1]
    assert numbers(plain(45, seed=8).sample.drawn(1)) != same[0]


def test_chains_refuse_rows_out_of_order_and_stay_as_they_were() -> None:
    stream = plain(10, replacement=True)
    before = numbers(stream.sample.drawn(1))
    with pytest.raises(StateError, match="rows out of order: a sample with replacement"):
        stream.feed([3])
    assert numbers(stream.sample.drawn(1)) == before


def test_a_cleared_sample_takes_the_rows_inside_again() -> None:
    stream = Stream(Sampling(size=4, strata=("group",)), CountWindow(20))
    stream.feed(list(range(30)), [row % 4 for row in range(30)])
    before = numbers(stream.sample.drawn(1))
    rows, stream.inside = stream.inside, []
    stream.sample.clear()
    assert stream.sample.drawn(1).complete
    stream.enter(rows)
    assert numbers(stream.sample.drawn(1)) == before


def test_strata_of_arrivednull_and_nan_are_told_apart() -> None:
    kinds = {"x": Kind.NUMBER, "b": Kind.BOOLEAN}
    sample = WindowSample(kinds, 0, Sampling(size=2, strata=("x", "b")), CountWindow(100))
    x = np.array([1.0, np.nan, -0.0, 0.0, 1.0, np.nan, 1.0])
    valid = np.array([True, True, True, True, False, True, True])
    b = np.array([True, True, True, True, True, True, False])
    first = Table(
        {"x": ColumnData(Kind.NUMBER, x, valid), "b": ColumnData(Kind.BOOLEAN, b)}, len(x)
    )
    one, nan, zero, also, null, again, other = sample.strata_of(first).tolist()
    assert (nan, zero) == (again, also)
    assert len({one, nan, zero, null, other}) == 5
    wholes = Table(
        {
            "x": ColumnData(Kind.NUMBER, np.array([1, 0])),
            "b": ColumnData(Kind.BOOLEAN, np.array([True, True])),
        },
        2,
    )
    assert sample.strata_of(wholes).tolist() == [one, zero]


def test_strata_that_are_gone_are_forgotten() -> None:
    sample = WindowSample({"x": Kind.NUMBER}, 0, Sampling(size=1, strata=("x",)), CountWindow(100))
    inside = np.zeros(0, np.int32)
    for start in range(0, 20_000, 100):
        rows = Table({"x": ColumnData(Kind.NUMBER, np.arange(start, start + 100))}, 100)
        codes = sample.strata_of(rows)
        sample.insert(rows, [], None, np.arange(start, start + 100), codes)
        sample.expire((0, start), inside)
        inside = codes
        drawing = sample.drawn(0)
        assert drawing.complete
        assert drawing.rows.columns["x"].values.tolist() == list(range(start, start + 100))
    assert len(sample._strata.population) < 3000


@pytest.mark.parametrize(("size", "window"), [(256, 20_000), (1024, 20_000), (1024, 100_000)])
def test_bytes_grow_as_r_log_n_over_r(size: int, window: int) -> None:
    sample = WindowSample({"x": Kind.NUMBER}, 1, Sampling(size=size), CountWindow(window))
    rng = np.random.default_rng(1)
    most = 0
    batch = 2_000
    for start in range(0, 3 * window, batch):
        x = rng.lognormal(2.0, 1.0, batch)
        rows = Table({"x": ColumnData(Kind.NUMBER, x)}, batch)
        arrived, codes = np.arange(start, start + batch), np.zeros(batch, np.int32)
        sample.insert(rows, [Measure(x, None, 0.0)], None, arrived, codes)
        gone = max(0, start + batch - window) - max(0, start - window)
        sample.expire((0, max(0, start + batch - window)), np.zeros(gone, np.int32))
        most = max(most, sample.nbytes)
    row = 4 + 8 + 1 + 8 + 8 + 8 + 1  # stratum, x, its validity, sequence, priority, y, plays
    assert most < 8 * row * (size + size * np.log(window / size)) + 8_192 * row
