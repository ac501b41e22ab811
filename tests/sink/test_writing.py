"""Outputs: whole or not there, in the format their name says."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ids import sink
from ids.errors import SinkError
from ids.sink import atomic_files as files
from ids.sink import output_file as writing
from ids.source import open_table

TABLE = pa.table(
    {
        "region": pa.array(["EU", "", None]).dictionary_encode(),
        "emit_at": pa.array([0, 1_000_001, None], pa.timestamp("us", "UTC")),
        "n": [1, 2, 3],
        "phi": [0.1, None, 1e300],
    }
)


def plain(table: pa.Table) -> pa.Table:
    return table.set_column(0, "region", table.column("region").cast(pa.string()))


def visible(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


def failing(table: pa.Table, stream: BinaryIO) -> None:
    stream.write(b"half of ")
    raise OSError("No space left on device")


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.jsonl", "OUT.CSV"])
def test_a_file_reads_back_through_our_own_source(tmp_path: Path, name: str) -> None:
    target = tmp_path / name
    assert sink.write(TABLE, target) == 3
    assert visible(tmp_path) == [name]
    columns = open_table(str(target), "out").read(TABLE.column_names).columns
    assert columns["n"].values.tolist() == [1, 2, 3]
    assert columns["phi"].values[[0, 2]].tolist() == [0.1, 1e300]
    assert columns["emit_at"].values[:2].tolist() == [0, 1_000_001]
    region = columns["region"]
    assert region.dictionary is not None and region.valid is not None
    assert region.dictionary[region.values[:2]].tolist() == ["EU", ""]
    assert region.valid.tolist() == [True, True, False]


def test_csv_is_plain(tmp_path: Path) -> None:
    sink.write(TABLE, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines() == [
        "region,emit_at,n,phi",
        '"EU",1970-01-01 00:00:00.000000Z,1,0.1',
        '"",1970-01-01 00:00:01.000001Z,2,',
        ",,3,1e+300",
    ]


def test_a_header_that_needs_quotes_gets_them(tmp_path: Path) -> None:
    sink.write(pa.table({'a,"b': [1]}), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == '"a,""b"\n1\n'


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.jsonl"])
def test_no_rows_are_an_output_too(tmp_path: Path, name: str) -> None:
    assert sink.write(TABLE.slice(0, 0), tmp_path / name) == 0
    assert (tmp_path / name).exists()


@pytest.mark.parametrize("exists", [True, False])
def test_a_directory_gets_a_part_and_a_success(tmp_path: Path, exists: bool) -> None:
    out = tmp_path / "out"
    if exists:
        out.mkdir()
    target = str(out) if exists else f"{out}/"
    for table in (TABLE, TABLE.slice(1)):  # over our own earlier output too
        sink.write(table, target)
        assert visible(out) == ["_SUCCESS", "part-00000.parquet"]
        assert plain(pq.read_table(out)).equals(plain(table))


def test_a_directory_with_other_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("x\n1\n")
    with pytest.raises(SinkError, match=r"already contains mine\.csv; give an empty or a new"):
        sink.resolve(tmp_path)
    with pytest.raises(SinkError):
        sink.write(TABLE, tmp_path)
    assert visible(tmp_path) == ["mine.csv"]


@pytest.mark.parametrize("before", ["the last result", None])
def test_a_failed_run_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    monkeypatch.setattr(writing, "stream_csv", failing)
    target = tmp_path / "out.csv"
    if before is not None:
        target.write_text(before)
    with pytest.raises(SinkError, match=r"cannot write .*out\.csv: No space left on device"):
        sink.write(TABLE, target)
    assert visible(tmp_path) == ([] if before is None else ["out.csv"])
    if before is not None:
        assert target.read_text() == before


def test_a_failed_run_leaves_no_directory_that_looks_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink.write(TABLE, f"{tmp_path}/old/")
    monkeypatch.setattr("pyarrow.parquet.write_table", failing)
    for target in ("old/", "new/"):
        with pytest.raises(SinkError):
            sink.write(TABLE, f"{tmp_path}/{target}")
    assert visible(tmp_path) == ["old"]
    assert plain(pq.read_table(tmp_path / "old")).equals(plain(TABLE))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("out.xlsx", "cannot tell the format of .*out.xlsx; end it with .parquet, .csv or .jsonl"),
        ("out", "cannot tell the format"),
        ("no/such/out.csv", "no such directory: .*no/such; create it first"),
        ("no/such/", "no such directory: .*no; create it first"),
    ],
)
def test_a_target_that_cannot_be_is_refused_before_any_work(
    tmp_path: Path, target: str, message: str
) -> None:
    with pytest.raises(SinkError, match=message):
        sink.resolve(f"{tmp_path}/{target}")
    assert visible(tmp_path) == []


def test_a_link_is_followed_not_replaced(tmp_path: Path) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "real.csv")
    sink.write(TABLE, link)
    assert link.is_symlink()
    assert (tmp_path / "real.csv").is_file()


def test_a_directory_made_whole_appears_at_the_end_or_never(tmp_path: Path) -> None:
    made = tmp_path / "deep" / "made"
    with pytest.raises(SinkError, match="No space"), files.whole_directory(made) as hidden:
        (hidden / "a").touch()
        raise OSError(28, "No space left on device")
    assert list(made.parent.iterdir()) == []
    with files.whole_directory(made) as hidden:
        (hidden / "a").touch()
        assert not made.exists()
    assert [path.name for path in made.iterdir()] == ["a"]
    with pytest.raises(SinkError, match="cannot write"), files.whole_directory(made) as hidden:
        (hidden / "b").touch()
    assert [path.name for path in made.iterdir()] == ["a"]
    assert list(made.parent.iterdir()) == [made]
