from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.cli import app
from evaluation.workloads import Recipe, ingredients, recipe
from evaluation.workloads.manifest import (
    EVENTS,
    MANIFEST,
    Manifest,
    differences,
    standing,
    take_stock,
)
from ids.cli.app import invoke
from ids.demo import SEED
from ids.errors import SinkError, SourceError, UnknownNameError

RECIPE = Recipe("synthetic", 7, 30)
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
    st.none() | st.sampled_from(["", "EU-West", "Zürich", 'a"b,\n', "NULL"]),
    st.none() | st.integers(-3, 3),
    st.none() | st.floats(allow_nan=False),
)
ROWS = st.lists(ROW, min_size=1, max_size=20)
Call = Callable[..., tuple[int, str, str]]


def lay_out(directory: Path, *parts: pa.Table) -> Path:
    """A workload by hand: a file for each table."""
    (directory / EVENTS).mkdir(parents=True)
    for i, part in enumerate(parts):
        pq.write_table(part, directory / EVENTS / f"part-{i:05}.parquet")
    take_stock(directory, RECIPE)
    return directory


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    parts = [pa.table({"latency": [float(i)] * 10}) for i in range(3)]
    return lay_out(tmp_path / "made", *parts)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    def called(*arguments: object) -> tuple[int, str, str]:
        code = invoke(["workload", *map(str, arguments)], app, "python -m evaluation")
        return code, *capsys.readouterr()

    return called


def table_of(rows: list[tuple]) -> pa.Table:
    columns = zip(zip(*rows, strict=True), SCHEMA, strict=True)
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in columns], schema=SCHEMA)


def seal(root: pytest.TempPathFactory, *parts: pa.Table) -> str:
    return Manifest.read(lay_out(root.mktemp("w") / "w", *parts)).sha256


# ── the hashes ───────────────────────────────────────────────────────────────────────────────────


def test_a_manifest_reads_back_as_it_was_written(directory: Path) -> None:
    manifest = Manifest.read(directory)
    assert manifest == take_stock(directory, RECIPE)
    assert (manifest.rows, len(manifest.files)) == (30, 3)
    assert manifest.schema == {"latency": "double"}
    assert differences(directory) == []


@given(ROWS, ROWS, st.integers(0, 20))
@settings(max_examples=60)
def test_the_hash_is_of_the_rows_and_not_of_the_files(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple], others: list[tuple], cut: int
) -> None:
    whole, other = table_of(rows), table_of(others)
    parts = (whole.slice(0, cut), whole.slice(cut))
    ours = seal(tmp_path_factory, whole)
    assert seal(tmp_path_factory, *parts) == ours
    assert (seal(tmp_path_factory, other) == ours) == (repr(rows) == repr(others))


@given(ROWS, st.data())
@settings(max_examples=60)
def test_a_null_is_not_a_zero_nor_an_empty_text(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple], data: st.DataObject
) -> None:
    row, column = data.draw(st.integers(0, len(rows) - 1)), data.draw(st.integers(1, 3))
    altered = [list(each) for each in rows]
    altered[row][column] = (0, "", 0, 0.0)[column] if rows[row][column] is None else None
    now = table_of([tuple(each) for each in altered])
    assert seal(tmp_path_factory, now) != seal(tmp_path_factory, table_of(rows))


@given(st.data())
def test_verify_sees_any_flipped_bit(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    made = lay_out(tmp_path_factory.mktemp("flip") / "w", pa.table({"x": [1.0, 2.0]}))
    part = made / EVENTS / "part-00000.parquet"
    content = bytearray(part.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    part.write_bytes(content)
    assert differences(made) == ["events/part-00000.parquet: altered"]


@pytest.mark.parametrize(
    ("was", "now"), [('"rows": 30', '"rows": 31'), ('"seed": 7', '"seed": 8'), ('"files"', '"f"')]
)
def test_an_altered_manifest_is_refused(directory: Path, was: str, now: str) -> None:
    text = (directory / MANIFEST).read_text()
    assert was in text
    (directory / MANIFEST).write_text(text.replace(was, now))
    with pytest.raises(SourceError, match="prepare the workload anew"):
        differences(directory)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"workload": 3}', "\x00", "null"])
def test_what_is_no_manifest_is_refused_in_one_line(directory: Path, text: str) -> None:
    (directory / MANIFEST).write_text(text)
    with pytest.raises(SourceError, match="is altered or of another version; prepare"):
        Manifest.read(directory)


def test_a_standing_workload_is_left_alone_and_any_other_refused(
    directory: Path, tmp_path: Path
) -> None:
    found = standing(RECIPE, directory)
    assert found is not None and found.rows == 30
    assert standing(RECIPE, tmp_path / "new") is None
    (tmp_path / "empty").mkdir()
    assert standing(RECIPE, tmp_path / "empty") is None
    with pytest.raises(SourceError, match=r"another workload \(synthetic, seed 7, 30 rows\)"):
        standing(Recipe("synthetic", 8, 30), directory)
    with pytest.raises(SourceError, match="holds no workload"):
        standing(RECIPE, tmp_path)
    assert standing(RECIPE, tmp_path / "no" / "such") is None  # it will be made
    with pytest.raises(SinkError, match="is a file"):
        standing(RECIPE, directory / MANIFEST)
    (directory / "notes.txt").touch()
    with pytest.raises(SourceError, match=r"notes\.txt: extra"):
        standing(RECIPE, directory)


# ── the recipe ───────────────────────────────────────────────────────────────────────────────────


def test_a_recipe_takes_what_its_workload_takes(tmp_path: Path) -> None:
    assert recipe("Stress") == Recipe("stress", SEED, 400_000)
    with pytest.raises(UnknownNameError, match="unknown workload 'syntetic'; did you mean"):
        recipe("syntetic")
    with pytest.raises(SourceError, match="name them with --from"):
        recipe("nyc")
    with pytest.raises(SourceError, match="drop --from"):
        recipe("auction", files=(tmp_path / "x.parquet",))
    with pytest.raises(SourceError, match="drop --rows"):
        recipe("nyc", rows=3, files=(tmp_path / "x.parquet",))


def test_the_zone_table_is_found_beside_the_trips_or_asked_for(tmp_path: Path) -> None:
    trips = tmp_path / "taxi"
    trips.mkdir()
    for name in ("b.parquet", "a.parquet"):
        pq.write_table(pa.table({"x": [1]}), trips / name)
    with pytest.raises(SourceError, match="--zones"):
        ingredients([trips], None)
    with pytest.raises(SourceError, match="--from"):
        ingredients([], tmp_path / "zones.csv")
    beside = tmp_path / "taxi_zone_lookup.csv"
    beside.write_text("LocationID,Borough\n1,EWR\n")
    assert ingredients([trips / "b.parquet", trips / "a.parquet"], None) == (
        trips / "a.parquet",
        trips / "b.parquet",
        beside,
    )
    assert recipe("nyc", files=ingredients([trips], None)).sources[-1].endswith(f"  {beside.name}")


# ── the command line ─────────────────────────────────────────────────────────────────────────────


def test_verify_says_what_differs_and_ends_with_one(call: Call, directory: Path) -> None:
    code, out, err = call("verify", directory)
    assert (code, err) == (0, "")
    assert out.startswith("synthetic: 30 rows in 3 files, every hash as in ")
    (directory / EVENTS / "part-00000.parquet").unlink()
    (directory / EVENTS / "part-00001.parquet").write_bytes(b"PAR1")
    (directory / EVENTS / ".hidden").touch()
    code, out, err = call("verify", directory)
    assert code == 1
    assert out.splitlines() == [
        "events/.hidden: extra",
        "events/part-00000.parquet: missing",
        "events/part-00001.parquet: altered",
    ]
    assert err.count("\n") == 1
    assert "differs from its manifest in 3 files; prepare it again" in err


def test_prepare_says_that_a_workload_already_stands(call: Call, directory: Path) -> None:
    code, out, err = call("prepare", "synthetic", "--out", directory, "--seed", 7, "--rows", 30)
    assert code == 0
    assert "already there and whole; it was left alone" in err
    assert "30 rows in 3 files" in out


def test_a_mistake_is_told_before_spark_is_started(call: Call, tmp_path: Path) -> None:
    code, _, err = call("prepare", "sinthetic", "--out", tmp_path / "w")
    assert (code, err) == (1, "error: unknown workload 'sinthetic'; did you mean 'synthetic'?\n")
    code, _, err = call("prepare", "stress", "--out", tmp_path / "w", "--master", "lcal")
    assert code == 2 and "not a Spark master: 'lcal'" in err
    code, out, _ = call()
    assert code == 0 and "Usage: python -m evaluation workload" in out


def test_list_names_the_four(call: Call) -> None:
    lines = call("list")[1].splitlines()
    assert [line.split()[0] for line in lines] == ["synthetic", "stress", "auction", "nyc"]
    assert "2,000,000" in lines[0] and "400,000" in lines[1] and "1,500,000" in lines[2]
