from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ids
from ids.errors import SourceError, UnknownNameError
from ids.workloads.catalogue import Recipe
from ids.workloads.manifest import EVENTS, MANIFEST, take_stock
from ids.workloads.replay import Replay

SCHEMA = pa.schema(
    {
        "event_time": pa.timestamp("us", tz="UTC"),
        "region": pa.string(),
        "payment": pa.int64(),
        "latency": pa.float64(),
    }
)
ROW = st.tuples(
    st.integers(-(2**40), 2**40),
    st.none() | st.sampled_from(["", "EU-West", "Zürich", "a\x00b"]),
    st.none() | st.integers(-3, 3),
    st.none() | st.floats(-1e6, 1e6),
)
MILLISECONDS = st.integers(-(10**6), 10**6).map(lambda n: n / 1000)
ROWS = st.lists(ROW, min_size=1, max_size=40)


def table_of(rows: list[tuple]) -> pa.Table:
    arrays = [
        pa.array(column, field.type)
        for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def lay_out(table: pa.Table, cuts: list[int], directory: Path) -> Path:
    """A workload by hand: the table cut into files at those rows."""
    (directory / EVENTS).mkdir(parents=True)
    edges = [0, *sorted({c for c in cuts if 0 < c < table.num_rows}), table.num_rows]
    for i, (begin, end) in enumerate(pairwise(edges)):
        part = directory / EVENTS / f"part-{i:05}.parquet"
        pq.write_table(table.slice(begin, end - begin), part, row_group_size=7)
    manifest = take_stock(directory, Recipe("synthetic", 1, table.num_rows).facts(), {})
    (directory / MANIFEST).write_text(manifest.text(), encoding="utf-8")
    return directory


Place = Callable[..., Path]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A new workload of these rows, cut into files at those places."""
    root = tmp_path_factory.mktemp("replay")

    def make(rows: list[tuple], cuts: list[int] | None = None) -> Path:
        return lay_out(table_of(rows), cuts or [], Path(tempfile.mkdtemp(dir=root)) / "w")

    return make


@given(ROWS, st.lists(st.integers(1, 39), max_size=4), st.integers(1, 50))
def test_the_deltas_are_the_rows_in_order_wherever_files_end(
    fresh: Place, rows: list[tuple], cuts: list[int], size: int
) -> None:
    replay = Replay(fresh(rows, cuts), size)
    deltas = list(replay)
    assert len(deltas) == len(replay)
    assert all(delta.num_rows == size for delta in deltas[:-1])
    assert pa.Table.from_batches(deltas, SCHEMA).equals(table_of(rows))


@given(ROWS, st.lists(st.integers(1, 39), max_size=4), st.integers(1, 50))
def test_the_digest_is_of_the_deltas_and_not_of_the_files(
    fresh: Place, rows: list[tuple], cuts: list[int], size: int
) -> None:
    assert Replay(fresh(rows, cuts), size).digest() == Replay(fresh(rows), size).digest()


@given(ROWS, ROWS, st.integers(1, 50))
@settings(max_examples=100)
def test_other_rows_have_another_digest(
    fresh: Place, rows: list[tuple], others: list[tuple], size: int
) -> None:
    one, two = (Replay(fresh(given), size).digest() for given in (rows, others))
    assert (one == two) == (repr(rows) == repr(others))


@given(ROWS, st.data())
@settings(max_examples=100)
def test_a_null_is_not_a_zero_and_a_letter_not_its_neighbours(
    fresh: Place, rows: list[tuple], data: st.DataObject
) -> None:
    row = data.draw(st.integers(0, len(rows) - 1))
    time, region, payment, latency = rows[row]
    other = (
        time,
        None if region is not None else "",
        None if payment is not None else 0,
        None if latency is not None else 0.0,
    )
    changed = data.draw(st.integers(1, 3))
    mixed = tuple(other[i] if i == changed else rows[row][i] for i in range(4))
    altered = [*rows[:row], mixed, *rows[row + 1 :]]
    assert Replay(fresh(altered), 5).digest() != Replay(fresh(rows), 5).digest()


def test_deltas_of_another_size_are_another_sequence(fresh: Place) -> None:
    directory = fresh([(i, "EU-West", 1, 1.0) for i in range(20)])
    digests = {Replay(directory, size).digest() for size in (1, 5, 7, 20)}
    assert len(digests) == 4
    assert Replay(directory, 20).digest() == Replay(directory, 20).digest()


def test_a_replay_can_begin_again(fresh: Place) -> None:
    replay = Replay(fresh([(i, None, i, float(i)) for i in range(30)], [11, 20]), 4)
    first, second = (b"".join(d.serialize().to_pybytes() for d in replay) for _ in range(2))
    assert first == second


@given(
    st.lists(st.tuples(st.sampled_from(["EU", "US"]), MILLISECONDS), min_size=1),
    st.integers(1, 12),
    st.integers(1, 20),
)
@settings(max_examples=40)
def test_an_engine_fed_by_a_replay_answers_as_a_query_does(
    fresh: Place, drawn: list[tuple[str, float]], size: int, window: int
) -> None:
    replay = Replay(fresh([(i, r, None, x) for i, (r, x) in enumerate(drawn)], [3, 9]), size)
    engine = ids.Engine(ids.CountWindow(window), "latency", order_by="event_time")
    engine.register("eu", "region = 'EU'")
    assert replay.feed(engine) == len(drawn)
    answer = ids.sql(
        "SELECT SHAPLEY_ATTRIBUTE(AVG(latency), region = 'EU') AS mean, "
        "SHAPLEY_ATTRIBUTE(VAR_POP(latency), region = 'EU') AS variance FROM events "
        f"WINDOW w AS (ORDER BY event_time ROWS {window} PRECEDING) EMIT FINAL",
        events=str(replay.events),
    )
    assert engine.attribute("AVG", "eu").value == answer["mean"][0].as_py()
    assert engine.attribute("VAR_POP", "eu").value == answer["variance"][0].as_py()


def test_any_callable_can_be_fed_with_some_of_the_columns(fresh: Place) -> None:
    replay = Replay(fresh([(i, "EU", 1, float(i)) for i in range(10)]), 3, ["latency", "region"])
    taken: list[pa.RecordBatch] = []
    assert replay.feed(taken.append) == 10
    assert [delta.num_rows for delta in taken] == [3, 3, 3, 1]
    assert taken[0].schema.names == ["latency", "region"]
    values = np.concatenate([delta.column(0).to_numpy() for delta in taken])
    assert values.tolist() == list(range(10))


def test_what_is_not_as_it_was_made_is_not_replayed(fresh: Place, tmp_path: Path) -> None:
    directory = fresh([(i, "EU", 1, float(i)) for i in range(10)])
    with pytest.raises(UnknownNameError, match="did you mean 'latency'"):
        Replay(directory, 3, ["latencey"])
    with pytest.raises(SourceError, match="at least 1"):
        Replay(directory, 0)
    with pytest.raises(SourceError, match="holds no workload"):
        Replay(tmp_path, 3)
    shutil.copy(directory / MANIFEST, directory / EVENTS / "part-00009.parquet")
    with pytest.raises(SourceError, match=r"part-00009\.parquet: extra"):
        Replay(directory, 3)
