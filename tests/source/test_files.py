"""Files and directories: the formats, their order, and what is wrong with them in one line."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ids.errors import DataError, SourceError
from ids.model import ColumnData, Kind
from ids.source import Source, open_table

CSV = "at,latency,region\n2024-01-01T00:00:00Z,1.5,EU\n2024-01-01T00:00:00.000001Z,2,N/A\n"


def values(column: ColumnData) -> list[object]:
    found: list[object] = list(column.values.tolist())
    if column.dictionary is not None:
        found = [column.dictionary[code] for code in column.values]
    if column.valid is None:
        return found
    return [v if ok else None for v, ok in zip(found, column.valid, strict=True)]


def column(source: Source, name: str) -> list[object]:
    return values(source.read([name]).columns[name])


def refused(path: Path | str) -> str:
    with pytest.raises(SourceError) as caught:
        open_table(path, "events")
    message = str(caught.value)
    assert "\n" not in message
    return message


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def parquet(path: Path, columns: dict[str, object], row_group_size: int = 2) -> Path:
    pq.write_table(pa.table(columns), path, row_group_size=row_group_size)
    return path


# ── formats ──────────────────────────────────────────────────────────────────────────────────────


def test_a_csv_file_reads(tmp_path: Path) -> None:
    source = open_table(str(written(tmp_path / "events.csv", CSV)), "events")
    assert dict(source.schema) == {"at": Kind.TIME, "latency": Kind.NUMBER, "region": Kind.TEXT}
    assert column(source, "at") == [1_704_067_200_000_000, 1_704_067_200_000_001]
    assert column(source, "latency") == [1.5, 2.0]
    assert column(source, "region") == ["EU", "N/A"]
    assert source.where(1) == "row 2 of events.csv"


def test_only_the_empty_field_of_a_csv_is_null(tmp_path: Path) -> None:
    source = open_table(written(tmp_path / "e.csv", 'a,s,x\n1,"",1.5\n2,,nan\n3,null,\n'), "e")
    assert column(source, "s") == ["", None, "null"]
    assert str(column(source, "x")) == "[1.5, nan, None]"


LAST_FIELDS = ['"b"', "b", "", '""', '"b, c"', '"b"""', '"b\nc"', "7"]


@given(
    st.lists(st.sampled_from(LAST_FIELDS), min_size=2, max_size=2),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["", "u,v", "u,1", '"u",']),
    st.booleans(),
)
def test_the_last_line_of_a_csv_reads_the_same_with_and_without_its_end(
    tmp_path_factory: pytest.TempPathFactory, fields: list[str], end: str, before: str, marked: bool
) -> None:
    folder = tmp_path_factory.mktemp("csv")
    mark = "\ufeff" if marked else ""
    text = mark + end.join(["p,q", *([before] if before else []), ",".join(fields)])
    open_ended = open_table(written(folder / "a.csv", text), "e")
    ended = open_table(written(folder / "b.csv", text + end), "e")
    assert dict(open_ended.schema) == dict(ended.schema)
    for name in ("p", "q"):
        assert column(open_ended, name) == column(ended, name)


def test_a_type_that_changes_late_in_a_csv_is_still_seen(tmp_path: Path) -> None:
    rows = "".join(f"{i}\n" for i in range(3_000_000))
    source = open_table(written(tmp_path / "e.csv", f"x\n{rows}0.5\n"), "e")
    assert source.read(["x"]).columns["x"].values[-1] == 0.5


@pytest.mark.parametrize("extension", ["jsonl", "ndjson", "json", "JSONL"])
def test_json_lines_read(tmp_path: Path, extension: str) -> None:
    lines = (
        '{"at":"2024-01-01T00:00:00.000001Z","x":1,"s":"2024 was good"}\n{"x":2.5,"s":"b","f":true}'
    )
    source = open_table(written(tmp_path / f"e.{extension}", lines), "e")
    assert column(source, "at") == [1_704_067_200_000_001, None]
    assert column(source, "x") == [1.0, 2.5]
    assert column(source, "s") == ["2024 was good", "b"]
    assert column(source, "f") == [None, True]


def test_text_that_only_begins_like_a_timestamp_stays_text(tmp_path: Path) -> None:
    lines = '{"s":"2024-01-01T00:00:00.5Z"}\n{"s":"later"}\n'
    assert open_table(written(tmp_path / "e.jsonl", lines), "e").schema["s"] is Kind.TEXT


def test_parquet_reads_only_the_columns_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = parquet(tmp_path / "e.parquet", {"x": [1, 2, 3], "y": ["a", None, "b"], "x.z": [0] * 3})
    asked: list[list[str]] = []

    class Spy(pq.ParquetFile):  # type: ignore[misc]
        def read(self, columns: list[str]) -> pa.Table:
            asked.append(columns)
            return super().read(columns)

    monkeypatch.setattr("ids.source.files.pq.ParquetFile", Spy)
    source = open_table(path, "e")
    assert (source.rows, asked) == (3, [])
    assert column(source, "x") == [1, 2, 3]
    assert column(source, "y") == ["a", None, "b"]
    assert asked == [["x"], ["y"]]


def test_a_parquet_file_without_rows_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    empty = {"x": pa.array([], pa.float64()), "s": pa.array([], pa.string())}
    pq.write_table(pa.table(empty), path)
    source = open_table(path, "e")
    assert source.rows == 0
    assert (column(source, "x"), column(source, "s")) == ([], [])


def test_columns_of_other_types_are_remembered(tmp_path: Path) -> None:
    source = open_table(parquet(tmp_path / "e.parquet", {"x": [1], "tags": [["a"]]}), "e")
    assert list(source.schema) == ["x"]
    with pytest.raises(DataError, match=r"column 'tags' is a list<.*string>; IDS reads numbers"):
        source.read(["tags"])


# ── directories ──────────────────────────────────────────────────────────────────────────────────


def test_files_of_a_directory_come_in_name_order(tmp_path: Path) -> None:
    parquet(tmp_path / "b.parquet", {"x": [0.5], "s": ["u"]})
    parquet(tmp_path / "a.parquet", {"x": [1, 2, 3], "s": ["v", "u", None]})
    written(tmp_path / "_SUCCESS", "")
    written(tmp_path / ".a.parquet.crc", "junk")
    source = open_table(tmp_path, "e")
    assert source.rows == 4
    assert column(source, "x") == [1.0, 2.0, 3.0, 0.5]
    assert column(source, "s") == ["v", "u", None, "u"]
    where = [source.where(row) for row in (0, 2, 3)]
    assert where == ["row 1 of a.parquet", "row 3 of a.parquet", "row 1 of b.parquet"]


def test_csv_in_many_files_reads_as_in_one(tmp_path: Path) -> None:
    rows = ["1,7,,2024-01-01", "2.5,A1,x,2024-01-02 10:00:00"]
    whole = written(tmp_path / "whole.csv", "n,code,s,t\n" + "\n".join(rows) + "\n")
    folder = tmp_path / "parts"
    folder.mkdir()
    for i, row in enumerate(rows):
        written(folder / f"{i}.csv", f"n,code,s,t\n{row}\n")
    one, many = open_table(whole, "e"), open_table(folder, "e")
    assert dict(one.schema) == dict(many.schema)
    for name in one.schema:
        assert column(one, name) == column(many, name)
    assert column(many, "code") == ["7", "A1"]


def test_empty_json_files_and_missing_keys_are_fine_in_a_directory(tmp_path: Path) -> None:
    written(tmp_path / "a.jsonl", "")
    written(tmp_path / "b.jsonl", '{"x":1,"s":"u"}\n')
    written(tmp_path / "c.jsonl", '{"x":2}\n')
    source = open_table(tmp_path, "e")
    assert column(source, "x") == [1, 2]
    assert column(source, "s") == ["u", None]


def test_a_column_on_which_files_disagree_is_out(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", {"x": [1], "only": [1], "odd": [1]})
    parquet(tmp_path / "b.parquet", {"x": [1], "odd": ["a"]})
    source = open_table(tmp_path, "e")
    assert list(source.schema) == ["x"]
    assert source.unsupported["only"] == "missing from b.parquet"
    assert source.unsupported["odd"] == "number in a.parquet, but text in b.parquet"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "contains no data files; IDS reads .parquet"),
        (["_SUCCESS", ".hidden.csv"], "contains no data files"),
        (["a.csv", "b.jsonl"], "mixes formats (a.csv, b.jsonl)"),
        (["a.csv", "notes.txt"], "notes.txt has an unknown format"),
    ],
)
def test_a_directory_that_is_no_table_is_refused(
    tmp_path: Path, names: list[str], message: str
) -> None:
    for name in names:
        written(tmp_path / name, CSV)
    assert message in refused(tmp_path)


def test_a_partitioned_directory_is_refused_not_half_read(tmp_path: Path) -> None:
    (tmp_path / "year=2024").mkdir()
    written(tmp_path / "a.csv", CSV)
    assert "is partitioned (year=2024)" in refused(tmp_path)


# ── what is wrong with a file ────────────────────────────────────────────────────────────────────


def test_a_missing_file_names_its_nearest_neighbour(tmp_path: Path) -> None:
    written(tmp_path / "events.csv", CSV)
    assert refused(tmp_path / "event.csv").endswith("event.csv; did you mean 'events.csv'?")
    assert refused(tmp_path / "no" / "event.csv").startswith("no such file or directory")


def test_a_wrong_extension_is_refused(tmp_path: Path) -> None:
    assert "e.txt has an unknown format; IDS reads" in refused(written(tmp_path / "e.txt", CSV))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("e.csv", "", "e.csv is empty"),
        ("e.csv", "\n\n", "e.csv is empty"),
        ("e.csv", "a,b\n1,2\n3\n4,5\n", "row 2 of {} has 1 fields, but the header has 2"),
        ("e.csv", 'a,b\n1,2\n3,"x\n4,5\n', "e.csv ends inside a quoted field"),
        ("e.csv", "a,a\n1,2\n", "e.csv has two columns 'a'"),
        ("e.jsonl", "", "e.jsonl is empty"),
        ("e.jsonl", "\n", "e.jsonl has no columns"),
        ("e.jsonl", '{"a":1}\n{"a":', "line 2 of {} is not one JSON object"),
        ("e.json", '[{"a":1},\n{"a":2}]', "line 1 of {} is not one JSON object"),
        ("e.jsonl", '{"a":1}\n{"a":"x"}\n', "Column(/a) changed from number to string"),
        ("e.parquet", "PAR1 and no more", "e.parquet is not a complete Parquet file"),
        ("e.parquet", "", "e.parquet is not a complete Parquet file"),
    ],
)
def test_a_damaged_file_is_named_in_one_line(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    path = written(tmp_path / name, text)
    assert message.format(path) in refused(path)


def test_a_quote_inside_a_field_is_no_damage(tmp_path: Path) -> None:
    source = open_table(written(tmp_path / "e.csv", 'a,b\n5" disk,1\n'), "e")
    assert column(source, "a") == ['5" disk']


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.99])
def test_half_a_parquet_file_is_refused(tmp_path: Path, keep: float) -> None:
    path = parquet(tmp_path / "e.parquet", {"x": list(range(1000))})
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * keep)])
    assert "e.parquet is not a complete Parquet file" in refused(path)


def test_a_parquet_file_damaged_inside_is_refused_when_it_is_read(tmp_path: Path) -> None:
    path = parquet(tmp_path / "e.parquet", {"x": [str(i) for i in range(1000)]}, 1000)
    whole = bytearray(path.read_bytes())
    whole[4:400] = b"\xff" * 396
    path.write_bytes(whole)
    with pytest.raises(SourceError, match=r"e\.parquet"):
        open_table(path, "e").read(["x"])
