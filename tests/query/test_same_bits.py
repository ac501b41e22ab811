"""What must not show in the answers: the order of the input, its format, the number of threads."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ids
from ids.query import replay as emitting
from tests.query.agreement import bits
from tests.query.queries import (
    REGISTER,
    REGISTERED,
    Query,
    Row,
    arrow,
    predicates,
    queries,
    tables,
)


def chunked(table: pa.Table) -> pa.Table:
    pieces = [table.slice(i, 1) for i in range(table.num_rows)] or [table]
    return pa.concat_tables(pieces)


def coded(table: pa.Table) -> pa.Table:
    """Text behind dictionaries, of another one in each chunk."""
    halves = [table.slice(0, table.num_rows // 2), table.slice(table.num_rows // 2)]
    for name in ("s", "k"):
        where = table.column_names.index(name)
        halves = [half.set_column(where, name, half[name].dictionary_encode()) for half in halves]
    return pa.concat_tables(halves)


def pandas(table: pa.Table) -> Any:
    whole = {pa.int64(): pytest.importorskip("pandas").Int64Dtype()}
    return table.to_pandas(types_mapper=whole.get)


def polars(table: pa.Table) -> Any:
    return pytest.importorskip("polars").from_arrow(table)


def lists(table: pa.Table) -> dict[str, list[Any]]:
    return {
        name: column.to_pylist() for name, column in zip(table.column_names, table, strict=True)
    }


def parquet(table: pa.Table, path: Path) -> Path:
    pa.parquet.write_table(table, path / "t.parquet", row_group_size=7)
    return path / "t.parquet"


def csv(table: pa.Table, path: Path) -> Path:
    pa.csv.write_csv(table, path / "t.csv")
    return path / "t.csv"


def folder(table: pa.Table, path: Path) -> Path:
    half = table.num_rows // 2
    (path / "t").mkdir(exist_ok=True)
    pa.parquet.write_table(table.slice(0, half), path / "t" / "a.parquet")
    pa.parquet.write_table(table.slice(half), path / "t" / "b.parquet")
    return path / "t"


IN_MEMORY: tuple[Callable[[pa.Table], Any], ...] = (chunked, coded, pandas, polars, lists)
ON_DISK: tuple[Callable[[pa.Table, Path], Path], ...] = (parquet, csv, folder)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=tables(), data=st.data())
def test_the_format_of_a_table_does_not_show(
    tmp_path: Path, rows: list[Row], data: st.DataObject
) -> None:
    script = REGISTER + str(data.draw(queries(len(rows))))
    table = arrow(rows)
    right = bits(ids.sql(script, t=table))
    for given_as in IN_MEMORY:
        assert bits(ids.sql(script, t=given_as(table))) == right, given_as.__name__
    for written_as in ON_DISK:
        assert bits(ids.sql(script, t=written_as(table, tmp_path))) == right, written_as.__name__


@given(rows=tables(), data=st.data())
def test_the_order_of_the_input_shows_only_among_equal_keys(
    rows: list[Row], data: st.DataObject
) -> None:
    query = data.draw(queries(len(rows)))
    order = query.window.split("ORDER BY ")[1].split(" R")[0].split(", ")
    keys = [tuple(row[name] for name in order) for row in rows]
    shuffled = data.draw(st.permutations(range(len(rows))))
    # each place keeps its key; equal keys take the rows that have it in the order of the input
    waiting = {key: [i for i, k in enumerate(keys) if k == key] for key in keys}
    moved = [rows[waiting[keys[i]].pop(0)] for i in shuffled]
    script = REGISTER + str(query)
    assert bits(ids.sql(script, t=arrow(moved))) == bits(ids.sql(script, t=arrow(rows)))


WORK = REGISTER + str(
    Query(
        (
            "SHAPLEY_ATTRIBUTE(AVG(x), p0 WITH (SHARE, LIFT))",
            "SHAPLEY_DELTA(VAR_SAMP(x), p1 AND NOT p2)",
            "SHAPLEY_ATTRIBUTE(M4(y), p3)",
            "SHAPLEY_ATTRIBUTE(COUNT(*), y > 0)",
            "VAR_POP(x + y)",
        ),
        "{window}",
    )
)
WINDOWS = (
    "ORDER BY at ROWS 40 PRECEDING",
    "PARTITION BY k ORDER BY at ROWS 25 PRECEDING SLIDE 3 ROWS",
    "PARTITION BY g, b ORDER BY at RANGE INTERVAL 60 SECOND PRECEDING SLIDE INTERVAL 5 SECOND",
)


def many_rows(rows: int = 900) -> pa.Table:
    rng = np.random.default_rng(4)
    return pa.table(
        {
            "at": pa.array(np.sort(rng.integers(-300, 300, rows)) * 10**6, pa.timestamp("us")),
            "x": pa.array(10.0 ** rng.uniform(-6, 9, rows), mask=rng.random(rows) < 0.1),
            "y": rng.integers(-3, 4, rows),
            "s": rng.choice(["a", "ab", ""], rows),
            "b": pa.array(rng.random(rows) < 0.5, mask=rng.random(rows) < 0.1),
            "k": rng.choice(["EU", "US"], rows),
            "g": rng.integers(0, 2, rows),
        }
    )


def in_parts(count: int) -> Callable[..., list[tuple[int, int]]]:
    def cut(emits: Any) -> list[tuple[int, int]]:
        cuts = [len(emits.arrived) * k // count for k in range(count + 1)]
        return [(a, b) for a, b in pairwise(cuts) if b > a]

    return cut


@pytest.mark.parametrize("window", WINDOWS)
def test_the_number_of_parts_does_not_show(window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script, table = WORK.format(window=window), many_rows()
    right = bits(ids.sql(script, t=table))
    for count in (1, 2, 3, 7):
        monkeypatch.setattr(emitting, "_thread_parts", in_parts(count))
        assert bits(ids.sql(script, t=table)) == right, count


@pytest.mark.parametrize("window", WINDOWS)
def test_the_size_of_a_block_does_not_show(window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script, table = WORK.format(window=window), many_rows()
    monkeypatch.setattr("ids.query.evaluate.answer_every_row", lambda *_: None)
    right = bits(ids.sql(script, t=table))
    # a block is never shorter than 64 emits
    for most in (64, 100, 333):
        monkeypatch.setattr(emitting, "_LARGEST_BLOCK", most)
        assert bits(ids.sql(script, t=table)) == right, most


def engine_of(query: str, degree: int) -> ids.Engine:
    frame = query.split()
    window: ids.CountWindow | ids.TimeWindow
    if frame[0] == "ROWS":
        window = ids.CountWindow(int(frame[1]))
    else:
        window = ids.TimeWindow(f"{frame[2]} seconds", f"{frame[7]} seconds")
    engine = ids.Engine(window=window, value=["x", "y", "x + y"], order_by="at", degree=degree)
    for name, condition in REGISTERED.items():
        engine.register(name, condition)
    return engine


FRAMES = (
    *("ROWS 1 PRECEDING", "ROWS 7 PRECEDING", "ROWS 100 PRECEDING"),
    "RANGE INTERVAL 8 SECOND PRECEDING SLIDE INTERVAL 4 SECOND",
)
GAMES = ("SUM(x)", "AVG(x)", "AVG(x + y)", "VAR_POP(x)", "VAR_SAMP(y)", "COUNT(*)", "COUNT(x)")


@settings(max_examples=60)
@given(
    rows=tables(),
    frame=st.sampled_from(FRAMES),
    game=st.sampled_from(GAMES),
    predicate=predicates(),
    batches=st.integers(1, 4),
)
def test_an_engine_fed_the_same_rows_gives_the_same_answers(
    rows: list[Row], frame: str, game: str, predicate: str, batches: int
) -> None:
    rows = sorted(rows, key=lambda row: row["at"])
    asked = f"SHAPLEY_ATTRIBUTE({game}, {predicate} WITH (SHARE, LIFT)) AS phi"
    found = ids.sql(REGISTER + str(Query((asked,), f"ORDER BY at {frame}")), t=arrow(rows))
    engine = engine_of(frame, 2)
    for batch in np.array_split(np.arange(len(rows)), batches):
        engine.ingest(arrow([rows[i] for i in batch]))
    answer = engine.attribute(game, predicate)
    if not rows:
        assert answer.n == found.num_rows == 0
        return
    last = found.slice(found.num_rows - 1).to_pylist()[0]
    assert answer.n == last["n"]
    parts = {"phi": answer.value, "phi_share": answer.share, "phi_lift": answer.lift}
    # a question multiplies by 1/N where a query divides by N: a rounding apart
    apart = 4e-16 * (abs(answer.share) + abs(answer.lift)) if game.startswith("VAR") else 0.0
    for part, right in parts.items():
        assert abs(right - last[part]) <= apart
