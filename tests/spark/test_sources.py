"""Tables come into Spark as the in-process reader has them: names, types, NULLs, order."""

from __future__ import annotations

import datetime
import decimal
import json
import os
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from ids.errors import IdsError, SourceError
from ids.source import inferred_schema as sampling
from ids.spark import read, translated
from ids.spark.expression_sql import typed
from ids.spark.frame import ORIGIN, with_origin
from ids.spark.session import session_of
from tests.spark.parity import in_process, on_spark

# Spark takes half a second for a table, so an example holds many columns.
few = settings(max_examples=3, suppress_health_check=list(HealthCheck))

CELLS = [
    ["1", "-5", " 7 ", "9223372036854775807", "00012"],
    ["1", "1e5", ".5", "5.", "-0.0", "nan", "inf", "-inf", "Infinity", "1E-320", "0.1"],
    ["9223372036854775808", "1", "+5"],
    ["true", "FALSE", "True", "1", "0"],
    ["2024-01-01", "1960-02-29", "2024-01-01 10"],
    ["2024-01-01T00:00", "2024-01-01 00:00:01.5", "1960-01-01 00:00:00.000001"],
    ["2024-01-01T00:00:00.123456789", "1960-01-01 00:00:00.999999999"],
    ["2024-01-01T00:00:00+01:00", "2024-01-01 00:00:00Z", "2024-01-01T00:00:00.25-0530"],
    ["2024-01-01T10:00Z", "2024-01-01 10:00+01", "2024-01-01 10:00-05:30"],
    ["a", "é", "'", "NULL", "N/A", "  ", "x ", "\\", "1d"],
    ['""', "x", '"5"', "6", '"a ""b"" c"', '"a,b"', '"\\"', '"\n"', '"a\r\nb"'],
]
VALUES: list[st.SearchStrategy[Any]] = [
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6),
    st.sampled_from(["2024-01-01T00:00:00.5Z", "1960-02-29T23:59:59.000001+01:00"]),
    st.sampled_from(["2024-03-31 02:30:00", "1960-02-29T23:59:59.123456789"]),
    st.just({"nested": 1}),
]
TYPES: list[tuple[pa.DataType, st.SearchStrategy[int]]] = [
    (pa.int8(), st.integers(-(2**7), 2**7 - 1)),
    (pa.uint8(), st.integers(0, 2**8 - 1)),
    (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    (pa.uint16(), st.integers(0, 2**16 - 1)),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.uint32(), st.integers(0, 2**32 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.uint64(), st.integers(0, 2**63 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.date32(), st.integers(-(10**4), 10**5)),
    (pa.timestamp("s"), st.integers(-(10**9), 10**10)),
    (pa.timestamp("ms", "UTC"), st.integers(-(10**12), 10**13)),
    (pa.timestamp("us"), st.integers(-(10**15), 10**16)),
    (pa.timestamp("us", "America/New_York"), st.integers(-(10**15), 10**16)),
    (pa.timestamp("ns"), st.integers(-(10**18), 10**18)),
    (pa.timestamp("ns", "UTC"), st.integers(-(10**18), 10**18)),
    (pa.time64("us"), st.integers(0, 10**6)),
    (pa.duration("us"), st.integers(0, 10**6)),
]


def rows_of(cells: st.SearchStrategy[Any], n: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.one_of(st.none(), cells), min_size=n, max_size=n)


@few
@given(
    st.lists(st.sampled_from(CELLS), min_size=32, max_size=32).flatmap(
        lambda families: st.tuples(*[rows_of(st.sampled_from(f), 6) for f in families])
    )
)
def test_a_csv_file_is_the_same_table(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, columns: Any
) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    lines = [",".join(["row", *(f"c{i}" for i in range(len(columns)))])]
    lines += [",".join(["1", *(v or "" for v in row)]) for row in zip(*columns, strict=True)]
    path.write_bytes(("\n".join(lines) + "\n").encode())
    assert on_spark(spark, path) == in_process(path)


@pytest.mark.parametrize("breaks", [False, True], ids=["in one line", "over two lines"])
def test_the_last_line_of_a_csv_file_is_the_same_row(
    spark: SparkSession, tmp_path: Path, breaks: bool
) -> None:
    word = '"b\nc"' if breaks else '"b"'
    lasts = [f"{word},", f'{word},""', f"a,{word}", f",{word}", ",", '"",', '"x,",', '"x""",', "a,"]
    family = product(lasts, ["\n", "\r\n", "\r"], [True, False], ["", "\ufeff"])
    for number, (last, end, ended, mark) in enumerate(family):
        text = mark + end.join(["p,q", "u,v", last]) + (end if ended else "")
        (tmp_path / f"{number:03}.csv").write_bytes(text.encode())
    found = on_spark(spark, tmp_path)
    assert found == in_process(tmp_path)
    assert found["q"][1][:8] == ["v", None] * 4


@few
@given(st.tuples(*[rows_of(values, 6) for values in VALUES * 3]), st.booleans())
def test_a_json_lines_file_is_the_same_table(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, columns: Any, absent: bool
) -> None:
    path = tmp_path_factory.mktemp("jsonl") / "t.jsonl"
    names = [f"c{i}" for i in range(len(columns))]
    with path.open("w", encoding="utf-8") as file:
        for row in zip(*columns, strict=True):
            held = {n: v for n, v in zip(names, row, strict=True) if not (absent and v is None)}
            file.write(json.dumps({"row": 1, **held}, ensure_ascii=False) + "\n")
    assert on_spark(spark, path) == in_process(path)


@few
@given(
    st.tuples(*[rows_of(values, 5) for _, values in TYPES]),
    rows_of(st.floats(width=32), 5),
    rows_of(st.text(st.characters(codec="utf-8"), max_size=6), 5),
)
def test_a_parquet_file_is_the_same_table(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    columns: Any,
    floats: list[float | None],
    texts: list[str | None],
) -> None:
    path = tmp_path_factory.mktemp("parquet") / "t.parquet"
    table = {
        f"{type_} {i}": pa.array(values, pa.int64()).cast(type_)
        if not pa.types.is_uint64(type_)
        else pa.array(values, type_)
        for i, ((type_, _), values) in enumerate(zip(TYPES, columns, strict=True))
        if not (pa.types.is_date(type_) or pa.types.is_integer(type_))
    }
    table |= {
        f"{type_} {i}": pa.array(values, pa.int32() if pa.types.is_date(type_) else type_).cast(
            type_
        )
        for i, ((type_, _), values) in enumerate(zip(TYPES, columns, strict=True))
        if pa.types.is_date(type_) or pa.types.is_integer(type_)
    }
    table |= {
        "f": pa.array(floats, pa.float32()),
        "d": pa.array(floats, pa.float64()),
        "a.b": pa.array(texts),
        "it's `odd`\\": pa.array(texts, pa.large_string()).dictionary_encode(),
        "nothing": pa.nulls(5),
        "list": pa.array([[1]] * 5),
        "bytes": pa.array([b"x"] * 5),
    }
    pq.write_table(pa.table(table), path, row_group_size=2)
    assert on_spark(spark, path) == in_process(path)


def test_decimals_are_the_nearest_doubles(spark: SparkSession, tmp_path: Path) -> None:
    values = [decimal.Decimal(f"{i * 7919}.{abs(i) % 100:02d}") * 10**9 for i in range(-200, 200)]
    pq.write_table(pa.table({"d": pa.array(values, pa.decimal128(30, 2))}), tmp_path / "d.parquet")
    _, bits = on_spark(spark, tmp_path / "d.parquet")["d"]
    truth = pa.table({"d": [float(v) for v in values]})
    pq.write_table(truth, tmp_path / "f.parquet")
    assert bits == in_process(tmp_path / "f.parquet")["d"][1]


def test_int96_is_an_instant_in_utc(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"t": pa.array([0, -1, 10**15 + 1], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "t.parquet", use_deprecated_int96_timestamps=True)
    assert on_spark(spark, tmp_path / "t.parquet") == in_process(tmp_path / "t.parquet")


def test_files_that_store_a_column_differently_are_one_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    parts = {
        "2 b.parquet": {"a": pa.array([1, 2], pa.int32()), "b": ["x", "y"], "c": [1, 2]},
        "2!a.parquet": {"b": pa.array(["z"]).dictionary_encode(), "a": [1.5]},
        "10é+%.parquet": {"b": ["z"], "a": [2**53 + 1]},
        "_hidden.parquet": {"b": ["no"]},
    }
    for name, columns in parts.items():
        pq.write_table(pa.table(columns), tmp_path / name)
    (tmp_path / "below").mkdir()
    assert on_spark(spark, tmp_path) == in_process(tmp_path)


def test_csv_files_may_have_their_columns_in_any_order(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "b{1}.csv").write_text("x,y\n1,2\n")
    (tmp_path / "a[*].csv").write_text("y,x\n3,a\n4,b\n")
    (tmp_path / "c.csv").write_text("")
    (tmp_path / "d.csv").write_bytes(b"\xef\xbb\xbfx,y,z\r\n,6,7\r\n")
    assert on_spark(spark, tmp_path) == in_process(tmp_path)


def test_rows_keep_their_order_over_many_tasks(spark: SparkSession, tmp_path: Path) -> None:
    for part in range(3):
        table = pa.table({"i": list(range(part * 4000, (part + 1) * 4000))})
        pq.write_table(table, tmp_path / f"{part}.parquet", row_group_size=500)
    spark.conf.set("spark.sql.files.maxPartitionBytes", "2000")
    try:
        frame = read(spark, tmp_path)
        assert frame.rdd.getNumPartitions() > 6
        held = frame.repartition(5).orderBy(ORIGIN).select("i").toArrow().column("i")
        plain = with_origin(spark.read.parquet(str(tmp_path)))
        same = plain.repartition(5).orderBy(ORIGIN).select("i").toArrow().column("i")
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert held.to_pylist() == list(range(12000))
    assert same.to_pylist() == list(range(12000))


def test_any_dataframe_has_an_order(spark: SparkSession) -> None:
    frame = with_origin(spark.range(0, 1000, 1, 7))
    assert with_origin(frame) is frame
    ids = frame.repartition(3).orderBy(ORIGIN).toArrow().column("id").to_pylist()
    assert ids == list(range(1000))


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_no_time_zone_of_a_session_moves_an_instant(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    (tmp_path / "t.csv").write_text("t,z\n2024-03-10 02:30:00,2024-03-10T02:30:00Z\n")
    table = pa.table(
        {"t": pa.array([1710037800 * 10**6], pa.timestamp("us")), "d": [datetime.date(2024, 3, 10)]}
    )
    pq.write_table(table, tmp_path / "t.parquet")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        for name in ("t.csv", "t.parquet"):
            assert on_spark(spark, tmp_path / name) == in_process(tmp_path / name)
        held = spark.read.parquet(str(tmp_path / "t.parquet"))
        fields = held.schema.fields
        frame = held.selectExpr(
            *(f"{typed(f.name, f.dataType.simpleString())} AS {f.name}" for f in fields)
        )
        assert frame.dtypes == [("t", "timestamp"), ("d", "timestamp")]
        assert frame.selectExpr("unix_micros(d)").first() == (1710028800 * 10**6,)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_of_a_large_file_the_beginning_decides_and_what_does_not_fit_is_named(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "_BUDGET", 100)
    monkeypatch.setattr(sampling, "_LEAST", 100)
    path = tmp_path / "events.csv"
    path.write_text('x,"say ""hi"""\n' + '1,"a\nb"\n' * 100 + "1.5,c\n")
    frame = read(spark, path)
    assert frame.dtypes[:2] == [("x", "bigint"), ('say "hi"', "string")]
    with pytest.raises(IdsError) as refusal, translated():
        frame.toArrow()
    assert str(refusal.value) == (
        "column 'x' of events.csv contains 1.5, which is not a whole number; "
        "correct it, or declare the column STRING"
    )
    declared = on_spark(spark, path, schema="x DOUBLE")
    assert declared == in_process(path)


def test_a_ragged_row_after_the_sample_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "_BUDGET", 100)
    monkeypatch.setattr(sampling, "_LEAST", 100)
    for name, good, bad in [
        ("a b.csv", "1,2\n", "3\n"),
        ("j.jsonl", '{"x": 1}\n', '{"x": 2.5}\n'),
        ("k.jsonl", '{"x": 1}\n', '{"x":\n'),
    ]:
        path = tmp_path / name
        path.write_text(("x,y\n" if name.endswith("csv") else "") + good * 200 + bad)
        frame = read(spark, path)
        with pytest.raises(SourceError, match="not match its columns") as refusal, translated():
            frame.toArrow()
        assert str(path) in str(refusal.value)


def test_nanoseconds_in_a_session_that_cannot_read_them_say_what_to_set(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = pa.table({"t": pa.array([1], pa.timestamp("ns")), "x": [1]})
    pq.write_table(table, tmp_path / "t.parquet")
    setting = "spark.sql.legacy.parquet.nanosAsLong"
    spark.conf.set(setting, "false")
    try:
        frame = read(spark, tmp_path / "t.parquet")
        assert frame.select("x").collect() == [(1,)]
        with pytest.raises(IdsError, match=f"nanoseconds.*{setting}=true; set it"), translated():
            frame.select("t").collect()
    finally:
        spark.conf.set(setting, "true")


def test_what_cannot_be_read_is_refused_as_in_process(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "t.txt").write_text("x")
    (tmp_path / "e.csv").write_text("")
    for name in ("nowhere.csv", "t.parquet", "t.txt", "e.csv"):
        with pytest.raises(SourceError) as here:
            in_process(tmp_path / name)
        with pytest.raises(SourceError) as there:
            read(spark, tmp_path / name)
        assert str(there.value) == str(here.value)
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match="contains numbers, but is declared STRING"):
        read(spark, tmp_path / "a.parquet", schema="a STRING")
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(SourceError, match="has no column 'b', which the schema declares"):
        read(spark, tmp_path / "a.csv", schema="b INT")
    with pytest.raises(SourceError, match="is declared ARRAY<INT>; IDS reads BIGINT"):
        read(spark, tmp_path / "a.csv", schema="a ARRAY<INT>")


@pytest.mark.parametrize("format_", ["csv", "jsonl", "parquet"])
def test_a_stream_reads_what_a_batch_reads(
    spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for part in range(3):
        path = folder / f"p {part}.{format_}"
        rows = range(part * 200, (part + 1) * 200)
        if format_ == "parquet":
            table = pa.table({"i": list(rows), "s": ["é"] * 200})
            pq.write_table(table, path, row_group_size=50)
        elif format_ == "csv":
            path.write_text("i,s\n" + "".join(f"{i},é\n" for i in rows))
        else:
            path.write_text("".join(f'{{"i": {i}, "s": "é"}}\n' for i in rows))
        os.utime(path, (part, part))  # files arrive in this order
    stream = read(spark, folder, stream=True, options={"maxFilesPerTrigger": "1"})
    assert stream.isStreaming
    seen: list[tuple[int, int, str]] = []

    def keep(batch: DataFrame, number: int) -> None:
        placed = with_origin(batch).repartition(3).orderBy(ORIGIN)
        seen.extend((number, row.i, row.s) for row in placed.select("i", "s").collect())

    checkpoint = str(tmp_path / "ck")
    writer = stream.writeStream.option("checkpointLocation", checkpoint).foreachBatch(keep)
    writer.trigger(availableNow=True).start().awaitTermination()
    assert [(i, s) for _, i, s in seen] == [(i, "é") for i in range(600)]
    assert [number for number, _, _ in seen] == sorted(n for n in range(3) for _ in range(200))


def test_the_session_is_that_of_the_tables(spark: SparkSession) -> None:
    other = spark.newSession()
    assert session_of([spark.range(1), "a.csv"]) is spark
    assert session_of([other.range(1)]) is other
    assert session_of([], spark) is spark
    assert session_of(["a.csv"]) is SparkSession.getActiveSession()
    with pytest.raises(SourceError, match="different Spark sessions; create them in one"):
        session_of([spark.range(1), other.range(1)])
