from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ids.cli.workload import workload as verbs
from ids.errors import SourceError, UnknownNameError
from ids.workloads.catalogue import SEED, Recipe, ingredients, recipe
from ids.workloads.manifest import EVENTS, MANIFEST, TRUTH, Manifest, differences, take_stock
from ids.workloads.standing import standing

RECIPE = Recipe("synthetic", 7, 30)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "made"
    (made / EVENTS).mkdir(parents=True)
    for i in range(3):
        part = made / EVENTS / f"part-{i:05}.parquet"
        pq.write_table(pa.table({"latency": [float(i)] * 10}), part)
    (made / TRUTH).write_text("{}")
    manifest = take_stock(made, RECIPE.facts(), {"ids": "0.1.0", "spark": "4"})
    (made / MANIFEST).write_text(manifest.text(), encoding="utf-8")
    return made


def call(*arguments: str) -> object:
    return verbs(list(arguments), prog_name="ids workload", standalone_mode=False)


def test_a_manifest_reads_back_as_it_was_written(directory: Path) -> None:
    manifest = Manifest.read(directory)
    assert manifest == take_stock(directory, RECIPE.facts(), {"ids": "0.1.0", "spark": "4"})
    assert (manifest.rows, len(manifest.events), len(manifest.files)) == (30, 3, 4)
    assert manifest.schema == {"latency": "double"}
    assert differences(directory) == []


def test_who_made_it_is_part_of_no_hash(directory: Path) -> None:
    ours = json.loads((directory / MANIFEST).read_text())
    others = json.loads(take_stock(directory, RECIPE.facts(), {"spark": "5"}).text())
    assert ours["sha256"] == others["sha256"]
    assert ours["made_by"] != others["made_by"]


@given(st.data())
def test_verify_sees_any_flipped_bit(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    made = tmp_path_factory.mktemp("flip")
    (made / EVENTS).mkdir()
    part = made / EVENTS / "part-00000.parquet"
    pq.write_table(pa.table({"x": [1.0, 2.0]}), part)
    (made / MANIFEST).write_text(take_stock(made, RECIPE.facts(), {}).text())
    content = bytearray(part.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    part.write_bytes(content)
    assert differences(made) == ["events/part-00000.parquet: altered"]


def test_verify_says_what_differs_and_ends_with_one(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("verify", str(directory)) in (0, None)
    assert "synthetic: 30 rows in 3 files" in capsys.readouterr().out
    (directory / EVENTS / "part-00000.parquet").unlink()
    (directory / EVENTS / "part-00001.parquet").write_bytes(b"PAR1")
    (directory / EVENTS / ".hidden").touch()
    assert call("verify", str(directory)) == 1
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "events/.hidden: extra",
        "events/part-00000.parquet: missing",
        "events/part-00001.parquet: altered",
    ]
    assert said.err.count("\n") == 1
    assert "differs from its manifest in 3 files; prepare it again" in said.err


@pytest.mark.parametrize(
    ("was", "now"), [('"rows": 10', '"rows": 11'), ('"seed": 7', '"seed": 8'), ('"format"', '"f"')]
)
def test_an_altered_manifest_is_refused(directory: Path, was: str, now: str) -> None:
    text = (directory / MANIFEST).read_text()
    assert was in text
    (directory / MANIFEST).write_text(text.replace(was, now, 1))
    with pytest.raises(SourceError, match="prepare it again"):
        differences(directory)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"workload": 3}', "\x00", "null"])
def test_what_is_no_manifest_is_refused_in_one_line(directory: Path, text: str) -> None:
    (directory / MANIFEST).write_text(text)
    with pytest.raises(SourceError, match="it is no manifest"):
        Manifest.read(directory)


def test_a_standing_workload_is_left_alone_and_any_other_refused(
    directory: Path, tmp_path: Path
) -> None:
    found = standing(RECIPE, directory)
    assert found is not None and found.rows == 30
    assert standing(RECIPE, tmp_path / "new") is None
    (tmp_path / "empty").mkdir()
    assert standing(RECIPE, tmp_path / "empty") is None
    with pytest.raises(SourceError, match="holds another workload"):
        standing(Recipe("synthetic", 8, 30), directory)
    with pytest.raises(SourceError, match="holds no workload"):
        standing(RECIPE, tmp_path)
    with pytest.raises(SourceError, match="make it first"):
        standing(RECIPE, tmp_path / "no" / "such")
    with pytest.raises(SourceError, match="is a file"):
        standing(RECIPE, directory / MANIFEST)
    (directory / TRUTH).write_text("{ }")
    with pytest.raises(SourceError, match=r"truth\.json: altered"):
        standing(RECIPE, directory)


def test_prepare_says_that_a_workload_already_stands(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = call("prepare", "synthetic", "--out", str(directory), "--seed", "7", "--rows", "30")
    said = capsys.readouterr()
    assert code in (0, None)
    assert "already there and whole; it was left alone" in said.err
    assert "30 rows in 3 files" in said.out


def test_list_names_the_four(capsys: pytest.CaptureFixture[str]) -> None:
    call("list")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["synthetic", "stress", "auction", "nyc"]
    assert "2,000,000" in lines[0] and "400,000" in lines[1] and "1,500,000" in lines[2]


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
    assert recipe("nyc", files=ingredients([trips], None)).sources[-1].name == beside.name
