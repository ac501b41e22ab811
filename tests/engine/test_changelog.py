"""A changelog: rows come and go as an upstream says, and none goes that was never there."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ids
from ids.errors import StateError
from ids.kernels import places_among

Row = tuple[float | None, str | None, int | None]

# so few that rows are often equal, or equal in all columns but one
rows = st.tuples(
    st.sampled_from([None, 0.0, -0.0, 1.0, 1.5, 1e12]),
    st.sampled_from([None, "EU", "US", ""]),
    st.sampled_from([None, 0, 1]),
)
calls = st.lists(
    st.tuples(st.lists(rows, max_size=5), st.lists(rows, max_size=4), st.booleans()), max_size=8
)
WINDOWS: dict[str, Any] = {
    "changelog": lambda: ids.Engine(ids.Changelog(), "x"),
    "changelog in order": lambda: ids.Engine(ids.Changelog(), "x", order_by="t"),
    "indexed": lambda: ids.Engine(ids.Changelog(), "x", index="region"),
    "count": lambda: ids.Engine(ids.CountWindow(10**6), "x"),
    "time": lambda: ids.Engine(ids.TimeWindow("1 day"), "x", order_by="t"),
}


def table(given: list[Row]) -> dict[str, Any]:
    x, region, k = [row[0] for row in given], [row[1] for row in given], [row[2] for row in given]
    whole = all(each is None or each == int(each) for each in x)
    return {
        "x": [None if v is None else int(v) for v in x] if whole and len(x) % 2 else x,
        "region": region,
        "k": k,
        "t": [7 + (each or 0) for each in k],
    }


def multiset(given: list[Row]) -> Counter[Row]:
    """-0.0 and 0.0 are one key of a dictionary, and so are None and None."""
    return Counter(given)


def same(engine: ids.Engine, inside: Counter[Row]) -> None:
    """The engine says what a recount of the multiset says."""
    assert engine.rows == inside.total()
    if not engine.rows:
        return
    ys = [Fraction(row[0]) for row in inside.elements() if row[0] is not None]
    assert engine.aggregate("COUNT(x)") == len(ys)
    eu = [row for row in inside.elements() if row[1] == "EU"]
    assert engine.attribute("COUNT(*)", "region = 'EU'").value == len(eu)
    own = sum((Fraction(row[0]) for row in eu if row[0] is not None), Fraction(0))
    assert engine.attribute("SUM", "region = 'EU'").value == float(own)
    if ys:
        mean = sum(ys) / len(ys)
        assert engine.aggregate("SUM") == float(sum(ys))
        variance = float(sum((y - mean) ** 2 for y in ys) / len(ys))
        assert engine.aggregate("VAR_POP") == pytest.approx(variance, rel=1e-14, abs=0)


@pytest.mark.parametrize("window", WINDOWS)
@given(calls=calls)
@settings(max_examples=40)
def test_an_engine_holds_the_multiset_of_its_changelog(
    window: str, calls: list[tuple[list[Row], list[Row], bool]], tmp_path_factory: Any
) -> None:
    """Deletes may take rows inside, rows of the same call, or rows that are in neither."""
    engine = WINDOWS[window]()
    engine.apply(inserts=table([(0.0, "EU", 0)]))
    inside = multiset([(0.0, "EU", 0)])
    for inserts, deletes, restarts in calls:
        after = inside + multiset(inserts)
        after.subtract(multiset(deletes))
        missing = {row for row, count in after.items() if count < 0}
        if missing:
            with pytest.raises(StateError, match=r"^deleted row \d+ \(.*\) is not in the") as e:
                engine.apply(inserts=table(inserts), deletes=table(deletes))
            number = int(str(e.value).split()[2])
            assert deletes[number - 1] in missing
        else:
            engine.apply(inserts=table(inserts), deletes=table(deletes))
            inside = +after
        same(engine, inside)
        if restarts:
            path: Path = tmp_path_factory.mktemp("changelog") / "engine.ids"
            engine.checkpoint(path)
            engine = ids.Engine.restore(path)


@pytest.mark.parametrize("settings_", [{}, {"retain": False}])
def test_a_row_that_was_never_there_is_refused_by_default(settings_: dict[str, Any]) -> None:
    engine = ids.Engine(ids.Changelog(), "x", **settings_)
    with pytest.raises(StateError, match="not in the window") as refused:
        engine.apply(inserts={"x": [1, 2, 3]}, deletes={"x": [99]})
    assert "\n" not in str(refused.value)
    assert engine.rows == 0
    engine.apply(inserts={"x": [1, 2, 3]})
    with pytest.raises(StateError, match="not in the window"):
        engine.apply(deletes={"x": [99]})
    with pytest.raises(StateError, match="not in the window"):
        engine.apply(inserts={"x": [4]}, deletes={"x": [1, 2, 3, 1]})
    assert (engine.rows, engine.aggregate("SUM")) == (3, 6.0)
    assert engine.aggregate("VAR_POP") == pytest.approx(2 / 3)


def test_the_error_names_the_row() -> None:
    engine = ids.Engine(ids.Changelog(), "x")
    when = np.array(["2024-05-01T10:00:00"], "M8[us]")
    engine.apply(inserts={"x": [1.5], "region": ["EU"], "at": when, "ok": [True], "k": [None]})
    with pytest.raises(StateError) as refused:
        engine.apply(
            deletes={
                "x": [1.5, 1.5], "region": ["EU", "US"], "at": np.repeat(when, 2),
                "ok": [True, False], "k": [None, None],
            }
        )  # fmt: skip
    assert str(refused.value) == (
        "deleted row 2 (x = 1.5, region = 'US', at = 2024-05-01T10:00:00.000000, ok = False, "
        "k = NULL) is not in the window; the batch was rejected, nothing changed"
    )


def test_of_rows_that_are_equal_in_all_but_one_column_the_right_one_goes() -> None:
    """Also where no predicate and no measure reads that column."""
    engine = ids.Engine(ids.Changelog(), "x")
    engine.apply(inserts={"x": [1.0, 1.0], "id": [7, 8]})
    engine.apply(deletes={"x": [1.0], "id": [8]})
    assert engine.attribute("COUNT(*)", "id = 7").value == 1
    with pytest.raises(StateError, match=r"deleted row 1 \(x = 1.0, id = 8\) is not in the window"):
        engine.apply(deletes={"x": [1.0], "id": [8]})


def test_a_nan_that_no_measure_reads_is_found_again() -> None:
    engine = ids.Engine(ids.Changelog(), "x")
    other = np.array([0x7FF8000000000001], np.uint64).view(np.float64)
    engine.apply(inserts={"x": [1.0, 2.0], "load": np.array([math.nan, 3.0])})
    engine.apply(deletes={"x": [1.0], "load": other})
    assert engine.rows == 1


def test_a_late_row_that_was_dropped_cannot_be_deleted() -> None:
    engine = ids.Engine(ids.CountWindow(5), "x", order_by="t")
    engine.ingest({"x": [1.0, 2.0, 3.0], "t": [10, 4, 11]})
    assert engine.late_rows == 1
    with pytest.raises(StateError, match=r"deleted row 2 \(x = 2.0, t = 4\) is not in the window"):
        engine.apply(deletes={"x": [3.0, 2.0], "t": [11, 4]})
    assert engine.aggregate("SUM") == 4.0


def test_a_row_that_comes_and_goes_in_one_call_shapes_nothing() -> None:
    """Not even the scale: 1e300 and the last bits of 1.1 would not go together."""
    for retain in (True, False):
        engine = ids.Engine(ids.Changelog(), "x", retain=retain)
        engine.apply(inserts={"x": [1.1]})
        engine.apply(inserts={"x": [1e300, 2.2]}, deletes={"x": [1e300]})
        assert (engine.rows, engine.aggregate("SUM")) == (2, 1.1 + 2.2)


@given(
    inside=st.lists(st.integers(-5, 5), min_size=1, max_size=6),
    batches=st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=3), max_size=4),
)
@settings(max_examples=60)
def test_without_rows_no_count_and_no_variance_is_ever_negative(
    inside: list[int], batches: list[list[int]]
) -> None:
    """Deletes are trusted, and refused where no rows could have such sums."""
    engine = ids.Engine(ids.Changelog(), "x", retain=False)
    engine.register("even", "x % 2 = 0")
    engine.apply(inserts={"x": inside})
    count, total = len(inside), sum(inside)
    for deletes in batches:
        try:
            engine.apply(deletes={"x": deletes})
        except StateError as error:
            assert "not in the window" in str(error)
        else:
            count, total = count - len(deletes), total - sum(deletes)
        assert engine.rows == count >= 0
        assert (engine.aggregate("SUM") or 0.0) == total
        assert (engine.aggregate("VAR_POP") or 0.0) >= 0
        assert engine.attribute("COUNT(*)", "even").value >= 0


def test_without_rows_more_players_than_rows_are_refused() -> None:
    engine = ids.Engine(ids.Changelog(), "x", retain=False)
    engine.apply(inserts={"x": [1.0, 2.0]})
    with pytest.raises(StateError, match="not in the window"):
        engine.apply(deletes={"x": np.array([math.nan]), "y": [1]} | {"x": [None]})
    assert engine.rows == 2


@given(
    hashes=st.lists(st.integers(-20, 20), max_size=40),
    wanted=st.lists(st.integers(-20, 20), max_size=10),
)
def test_the_places_among_hashes_are_those_wanted(hashes: list[int], wanted: list[int]) -> None:
    found = places_among(np.array(hashes, np.int64), np.array(wanted, np.int64))
    assert found.tolist() == np.flatnonzero(np.isin(hashes, wanted)).tolist()
