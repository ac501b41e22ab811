"""Declared columns: their types, what does not fit them, and texts that mean NULL."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ids
from ids.cli.app import invoke
from ids.errors import DataError, IdsError, SourceError
from ids.model import ColumnData, Kind, microseconds_of, parse_timestamp
from ids.source import Declared, Source, declared, open_table, plain_types
from ids.source.declared_schema import converted

COUNTED = "SELECT SUM(x) AS s FROM e WINDOW w AS (ORDER BY ts ROWS 2 PRECEDING) EMIT CHANGES"
RANGED = COUNTED.replace("ROWS 2", "RANGE INTERVAL '1' HOUR").replace(
    ") EMIT", " SLIDE INTERVAL '1' HOUR) EMIT"
)
HOUR = 3_600_000_000


def texts(values: list[str | None]) -> ColumnData:
    source = open_table(pa.table({"v": pa.array(values, pa.string())}), "t")
    return source.read(["v"]).columns["v"]


def plain(column: ColumnData) -> list[Any]:
    values: list[Any] = column.values.tolist()
    if column.dictionary is not None:
        values = [column.dictionary[code] for code in column.values]
    if column.valid is None:
        return values
    return [value if ok else None for value, ok in zip(values, column.valid, strict=True)]


def read(source: Source, name: str) -> list[Any]:
    return plain(source.read([name]).columns[name])


# ── schemas as they are written ──────────────────────────────────────────────────────────────────


def test_a_schema_reads_as_spark_writes_it() -> None:
    schema = "ts: EPOCH_MILLIS, `a ``b`` , c` decimal(10, 2), n Int, f FLOAT, s varchar(3)"
    columns = declared(schema)
    assert columns["a `b` , c"] == "decimal(10, 2)"
    types = ["EPOCH_MILLIS", "DOUBLE", "BIGINT", "DOUBLE", "STRING"]
    assert list(plain_types(columns).values()) == types


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("ts", "cannot parse the schema 'ts'; write it as 'a STRING, b DOUBLE, t TIMESTAMP'"),
        ("", "cannot parse the schema ''"),
        ("a INT, a INT", "declares 'a' twice; remove one"),
        ("a EPOCH_SECOND", "unknown type EPOCH_SECOND for column 'a' in the schema; did you mean"),
        ("a ARRAY<INT>", "column 'a' is declared ARRAY<INT>; IDS reads BIGINT, DOUBLE, STRING"),
    ],
)
def test_a_schema_that_cannot_be_read_is_refused(schema: str, message: str) -> None:
    with pytest.raises(SourceError) as refused:
        open_table({"a": [1]}, "t", declared(schema))
    assert message in str(refused.value)


def test_a_schema_belongs_to_a_table() -> None:
    assert Declared.of("a INT", "NA", ["e"]).columns("e") == {"a": "INT"}
    with pytest.raises(SourceError, match=r"does not name its table; give schema=\{'e': …\}"):
        Declared.of("a INT", (), ["e", "f"])
    with pytest.raises(SourceError, match="for 'f', which is not a table; known: events"):
        Declared.of({"f": "a INT"}, (), ["events"])


@pytest.mark.parametrize(
    ("values", "type_", "message"),
    [
        (
            [1, 2],
            "TIMESTAMP",
            "contains numbers, but is declared TIMESTAMP; declare it EPOCH_",
        ),
        ([1, 2], "STRING", "contains numbers, but is declared STRING; correct its type"),
        ([True], "DOUBLE", "contains Booleans, but is declared DOUBLE"),
        (
            [datetime(2024, 1, 1)],
            "EPOCH_MILLIS",
            "contains timestamps, but is declared EPOCH",
        ),
    ],
)
def test_a_column_that_is_never_of_its_declared_type_is_refused(
    values: list[Any], type_: str, message: str
) -> None:
    with pytest.raises(SourceError) as refused:
        open_table({"v": values}, "t", {"v": type_})
    assert str(refused.value).startswith(f"column 'v' of table 't' {message}")
    with pytest.raises(SourceError, match="table 't' has no column 'w', which the schema declares"):
        open_table({"v": values}, "t", {"w": type_})


# ── values ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("type_", "kind", "fitting", "others"),
    [
        ("BIGINT", Kind.NUMBER, {"1": 1, "+5": 5, " -7\t": -7, "007": 7}, ["1.5", "x", str(2**63)]),
        ("DOUBLE", Kind.NUMBER, {"1": 1.0, ".5": 0.5, "5.": 5.0, "-1e3": -1e3}, ["1d", "NA", "."]),
        ("BOOLEAN", Kind.BOOLEAN, {"TRUE": True, "0": False, "false": False}, ["yes", "2"]),
        (
            "EPOCH_SECONDS",
            Kind.TIME,
            {"1700000000": 17 * 10**14, "-0.5": -500_000, "1.000001": 1_000_001},
            ["1700000000000", "nan", "2024-01-01"],
        ),
        ("EPOCH_MILLIS", Kind.TIME, {"1700000000123": 1700000000123000}, ["253402300800000"]),
        ("EPOCH_MICROS", Kind.TIME, {"-1": -1, "253402300799999999": 253402300799999999}, ["1e18"]),
    ],
)
def test_texts_are_read_in_their_declared_type_and_what_does_not_fit_is_told(
    type_: str, kind: Kind, fitting: dict[str, Any], others: list[str]
) -> None:
    found = converted(texts([*fitting, None, " ", *others]), type_)
    assert found.column.kind is kind
    wanted = [*fitting.values(), None, None, *[None] * len(others)]
    assert plain(found.column) == wanted
    assert found.unfit.tolist() == list(range(len(fitting) + 2, len(wanted)))
    assert found.texts == others


@given(
    st.lists(
        st.tuples(
            st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 28)),
            st.sampled_from(["", "Z", "UTC", " Z", "+01", "-0530", " +18:00", "-00:30"]),
            st.sampled_from(["T", " "]),
            st.integers(0, 9),
        ),
        min_size=1,
    )
)
def test_timestamps_of_every_spelling_are_instants(rows: list[tuple[Any, ...]]) -> None:
    written = []
    for instant, zone, between, digits in rows:
        fraction = f".{instant.microsecond:06d}999"[: digits + 1] if digits else ""
        written.append(f"{instant:%H:%M:%S}{fraction}{zone}")
        written[-1] = f"{instant.year:04d}-{instant:%m-%d}{between}{written[-1]}"
    found = converted(texts([*written, "2024-02-30", "2024-01-01 24:00", "10:00"]), "TIMESTAMP")
    assert found.texts == ["2024-02-30", "2024-01-01 24:00", "10:00"]
    expected = [parse_timestamp(text) for text in written]
    assert plain(found.column)[:-3] == [e and microseconds_of(e) for e in expected]


@given(
    st.lists(st.none() | st.floats()).map(lambda n: pa.array(n, pa.float64()))
    | st.lists(st.none() | st.integers(-(2**60), 2**60)).map(lambda n: pa.array(n, pa.int64()))
)
def test_numbers_are_read_as_times(column: pa.Array) -> None:
    source = open_table(pa.table({"v": column}), "t", {"v": "EPOCH_SECONDS"})
    least, largest = -62135596800, 253402300799
    for number, found in zip(column.to_pylist(), read(source, "v"), strict=True):
        if number is None or not least <= number <= largest:
            assert found is None
        else:
            assert abs(timedelta(microseconds=found).total_seconds() - number) < 1e-4


def test_every_format_reads_declared_times(tmp_path: Path) -> None:
    rows = {"ts": [1_700_000_000_123, 1_700_003_600_000], "x": [1, 2]}
    (tmp_path / "e.csv").write_text("ts,x\n1700000000123,1\n1700003600000,2\n")
    lines = [json.dumps({"ts": t, "x": x}) for t, x in zip(rows["ts"], rows["x"], strict=True)]
    (tmp_path / "e.jsonl").write_text("\n".join(lines))
    pq.write_table(pa.table(rows), tmp_path / "e.parquet")
    tables = [rows, pa.table(rows), *(tmp_path / f"e.{end}" for end in ("csv", "jsonl", "parquet"))]
    answers = [ids.sql(RANGED, e=table, schema="ts EPOCH_MILLIS") for table in tables]
    assert answers[0]["emit_at"].to_pylist() == [
        datetime(2023, 11, 14, 23, tzinfo=UTC),
        datetime(2023, 11, 15, 0, tzinfo=UTC),
    ]
    for answer in answers:
        assert answer.equals(answers[0])


def test_the_command_line_declares_columns_and_nulls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.sql").write_text(RANGED)
    (tmp_path / "e.csv").write_text("ts,x\n1700000000,NA\n1700000000.5,2\nnever,3\n")
    run = ["run", str(tmp_path / "q.sql"), "--table", f"e={tmp_path / 'e.csv'}"]
    run += ["--engine", "local", "--null", "NA", "--null", "-"]
    assert invoke(run) == 1
    assert capsys.readouterr().err.startswith(
        "error: RANGE must be ordered by a timestamp, 'ts' is text at line 1, column 49; "
        "row 3 of e.csv contains 'never', which is not a number; "
        "read it as NULL with --null 'never', or declare --schema 'ts DOUBLE'"
    )
    run += ["--schema", "ts EPOCH_SECONDS, x BIGINT"]
    assert invoke(run) == 1
    assert capsys.readouterr().err == (
        "error: 'never' of 'ts' is not EPOCH_SECONDS of the years 1 to 9999 in e, row 3 of e.csv; "
        "leave such rows out with WHERE, or set them aside with --bad-rows DIR\n"
    )
    assert invoke([*run, "--bad-rows", str(tmp_path / "bad")]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["2023-11-14 23:00:00.000000Z,2,2"]
    assert invoke([*run[:-1], "f=ts STRING"]) == 2
    assert "there is no --table named 'f'" in capsys.readouterr().err


# ── what does not fit, and what is NULL ──────────────────────────────────────────────────────────

MESSY = "ts,x,y\n2024-01-01 10:00:00,1,7\n2024-01-01 10:30:00,NA,-\n2024-01-01 11:00:00,5,9\n"


def test_a_value_that_does_not_fit_is_named_or_its_row_set_aside(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text(MESSY)
    schema = {"e": "x DOUBLE, y BIGINT"}
    with pytest.raises(DataError) as refused:
        ids.sql(COUNTED, e=tmp_path / "e.csv", schema=schema)
    assert str(refused.value) == (
        "'NA' of 'x' is not a number in e, row 2 of e.csv; leave such rows out with WHERE, "
        "or set them aside with bad_rows='DIR'"
    )
    kept = ids.sql(COUNTED, e=tmp_path / "e.csv", schema=schema, bad_rows=tmp_path / "bad")
    assert kept["s"].to_pylist() == [1.0, 6.0]
    (aside,) = pq.read_table(tmp_path / "bad" / "e.parquet").to_pylist()
    assert aside["ids_reason"] == "'NA' of 'x' is not a number"
    assert aside["ids_row"] == "row 2 of e.csv"
    # no query that reads only y, or leaves the row out, has a bad row
    for script in (
        COUNTED.replace("SUM(x)", "COUNT(*)"),
        COUNTED.replace("FROM e", "FROM e WHERE x > 0"),
    ):
        assert ids.sql(script, e=tmp_path / "e.csv", schema=schema).num_rows in (2, 3)


def test_texts_that_are_declared_to_mean_null_are_null(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text(MESSY + '2024-01-01 12:00:00,2,"-"\n')
    source = open_table(tmp_path / "e.csv", "e", {}, ["NA", "-"])
    assert read(source, "x") == [1, None, 5, 2]
    assert read(source, "y") == ["7", None, "9", None]  # one was quoted, so the column is text
    declared_too = open_table(tmp_path / "e.csv", "e", {"y": "BIGINT"}, ["-"])
    assert read(declared_too, "y") == [7, None, 9, None]
    assert read(declared_too, "x") == ["1", "NA", "5", "2"]
    (tmp_path / "e.jsonl").write_text('{"s": "NA"}\n{"s": "2024-01-01T10:00:00.5Z"}\n')
    assert read(open_table(tmp_path / "e.jsonl", "e", {}, ["NA"]), "s")[0] is None
    found = ids.sql(COUNTED, e=tmp_path / "e.csv", null="NA")
    assert found["s"].to_pylist() == [1.0, 1.0, 5.0, 7.0]


# ── columns that are text by one value ───────────────────────────────────────────────────────────

WAY_OUT = "write it as 2024-01-31 12:00:00, or declare schema='ts TIMESTAMP' and set such rows"
TIMES = {
    "no zone": (
        ["2024-01-01T10:00:00Z", "2024-01-01T11:00:00", "2024-01-01T12:00:00Z"],
        "row 2 of e.csv contains '2024-01-01T11:00:00', which has no zone, unlike the others; "
        "declare schema='ts TIMESTAMP'",
    ),
    "a zone": (
        ["2024-01-01T10:00:00", "2024-01-01T11:00:00", "2024-01-01T12:00:00+02:00"],
        "row 3 of e.csv contains '2024-01-01T12:00:00+02:00', which has a zone, unlike the others; "
        "declare schema='ts TIMESTAMP'",
    ),
    "days first": (
        ["2024-01-01 10:00:00", "2024-01-02 10:00:00", "01/02/2024 10:00"],
        f"row 3 of e.csv contains '01/02/2024 10:00', which is not a timestamp; {WAY_OUT}",
    ),
    "all days first": (
        ["31/01/2024 10:00", "01/02/2024 10:00", "02/02/2024 10:00"],
        f"row 1 of e.csv contains '31/01/2024 10:00', which is not a timestamp; {WAY_OUT}",
    ),
    "months by name": (
        ["Jan 31 2024 10:00", "1 Feb 2024 10:00", "02-Mar-2024"],
        "row 1 of e.csv contains 'Jan 31 2024 10:00', which is not a timestamp",
    ),
    "one missing": (
        ["2024-01-01 10:00:00", "unknown", "2024-01-02 10:00:00"],
        "row 2 of e.csv contains 'unknown', which is not a timestamp",
    ),
}


@pytest.mark.parametrize(("times", "hint"), TIMES.values(), ids=TIMES.keys())
def test_times_that_were_read_as_text_are_refused_with_the_value_that_made_them_so(
    tmp_path: Path, times: list[str], hint: str
) -> None:
    (tmp_path / "e.csv").write_text("ts,x\n" + "".join(f"{time},1\n" for time in times))
    for script, fact in (
        (COUNTED, "'ts' has timestamps as text, which sort as text at line 1, column 49; "),
        (RANGED, "RANGE must be ordered by a timestamp, 'ts' is text at line 1, column 49; "),
    ):
        with pytest.raises(IdsError) as refused:
            ids.sql(script, e=tmp_path / "e.csv")
        assert str(refused.value).startswith(fact + hint)
    as_text = ids.sql(COUNTED, e=tmp_path / "e.csv", schema="ts STRING")
    assert as_text["emit_at"].to_pylist() == sorted(times)


def test_times_in_texts_of_a_typed_table_are_refused_and_other_texts_order(tmp_path: Path) -> None:
    with pytest.raises(IdsError, match=r"has timestamps as text.*; declare schema='ts TIMESTAMP'"):
        ids.sql(COUNTED, e={"ts": ["2024-01-01", "2024-01-02"], "x": [1, 2]})
    declared_times = ids.sql(COUNTED, e={"ts": ["2024-01-02"], "x": [1]}, schema="ts TIMESTAMP")
    assert declared_times["emit_at"].to_pylist() == [datetime(2024, 1, 2, tzinfo=UTC)]
    ulids = ["01HKX3", "01HKX5", "2024-01-15-0001"]
    found = ids.sql(COUNTED, e={"ts": ulids, "x": [1, 2, 3]})
    assert found["emit_at"].to_pylist() == ulids
    (tmp_path / "e.csv").write_text("ts,x\na,1\n,2\n")
    with pytest.raises(DataError, match="NULL event time 'ts'"):
        ids.sql(COUNTED, e=tmp_path / "e.csv")


@pytest.mark.parametrize(
    "script",
    [
        COUNTED,
        COUNTED.replace("SUM(x)", "SUM(x + 1)"),
        COUNTED.replace("SUM(x)", "SHAPLEY_ATTRIBUTE(COUNT(*), x > 3)"),
        COUNTED.replace("FROM e", "FROM e WHERE x < 3"),
    ],
)
def test_numbers_that_were_read_as_text_name_the_value_that_made_them_so(
    tmp_path: Path, script: str
) -> None:
    (tmp_path / "e.csv").write_text(MESSY)
    with pytest.raises(IdsError) as refused:
        ids.sql(script, e=tmp_path / "e.csv")
    assert str(refused.value).endswith(
        "; row 2 of e.csv contains 'NA', which is not a number; read it as NULL with null='NA', "
        "or declare schema='x DOUBLE' and set such rows aside with bad_rows='DIR'"
    )
    assert "x is text" in str(refused.value)


def test_a_column_of_nothing_takes_any_declared_type() -> None:
    nothing = {"ts": pa.nulls(2), "x": [1, 2]}
    source = open_table(nothing, "t", {"ts": "TIMESTAMP"})
    assert (source.schema["ts"], read(source, "ts")) == (Kind.TIME, [None, None])
    for type_ in ("STRING", "BOOLEAN", "BIGINT"):
        column = open_table(nothing, "t", {"ts": type_}).read(["ts"]).columns["ts"]
        assert column.valid is not None and not column.valid.any()
        assert len(np.asarray(column.values)) == 2
