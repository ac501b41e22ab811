"""Declared columns on Spark: the same types, NULLs, bad rows and refusals as in process."""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import ids
from ids.errors import IdsError
from ids.source import EPOCHS, open_table, to_table
from ids.source.declared_schema import Retyped
from ids.spark.expression_sql import UNFIT
from ids.spark.table_reader import retyped
from tests.source.test_declared import COUNTED, MESSY, RANGED, TIMES
from tests.spark.tables import same

NUMBERS = ["BIGINT", "DOUBLE", *EPOCHS]
ODD_TEXTS = [
    *("", "  ", " 7\t", "NA", None, "nan", "NaN", "-inf", "+Infinity", "1d", "0x1", "1e400"),
    *("1e-400", "5.", ".5", ".", "+", "1e", "1e+5", "+5", "--5", "9223372036854775807"),
    *("9223372036854775808", "-9223372036854775808", "0" * 40 + "7", "0" * 37 + "1", "1" * 39),
    *("true", "tRue", "1", "0", "false", "yes", "1700000000", "1700000000.1234565", "٣", "1_0"),
    *("253402300799.999999", "253402300799.9999999", "253402300800", "-62135596800"),
    *("-62135596800.000001", "1700000000000", "0.0078125", "5e-7", "2.5e-6", "-1.55e-05"),
    *("2024-01-01 10", "2024-01-01T", "2024", "10:00", "2024-01-01 10:00 Europe/Berlin"),
]


def written_instant(rng: random.Random) -> str:
    """An instant in some spelling, which may be wrong."""
    year = rng.choice(["1960", "1970", "2024", "9999", "0001"])
    text = f"{year}-{rng.choice(['1', '02', '12', '13'])}-{rng.choice(['1', '29', '31', '00'])}"
    if rng.random() < 0.1:
        return text
    text += rng.choice("T ") + rng.choice(["0", "09", "23", "24"])
    text += f":{rng.choice(['00', '5', '59', '60'])}"
    if rng.random() < 0.7:
        text += f":{rng.choice(['00', '7', '59', '60'])}"
        if rng.random() < 0.6:
            text += "." + "".join(rng.choices("0123456789", k=rng.randint(1, 10)))
    zones = ["", "", "Z", " Z", "UTC", " UTC", "+01", "+0530", "-05:30", " +18:00", "-18:01", "+1"]
    return text + rng.choice(zones)


def test_values_are_the_same_in_every_declared_type(spark: SparkSession) -> None:
    rng = random.Random(1)
    texts = [*ODD_TEXTS, *(written_instant(rng) for _ in range(800))]
    texts += [repr(rng.uniform(-6e10, 2.5e11)) for _ in range(200)]
    doubles = [None, float("nan"), float("inf"), -0.0, 1e300, *(k / 128 for k in range(-50, 50))]
    doubles += [(k + 0.5) / 1e6 for k in range(-100, 100)]
    doubles += [rng.uniform(-1e12, 3e11) for _ in range(300)]
    edges = [253402300799, -62135596801, 253402300799999999, 253402300800000000, 2**63 - 1]
    longs = [None, 0, -1, *edges, *(rng.randint(-(10**12), 10**12) for _ in range(200))]
    for values, held, types in (
        (texts, pa.string(), [*NUMBERS, "BOOLEAN", "TIMESTAMP"]),
        (doubles, pa.float64(), NUMBERS),
        (longs, pa.int64(), NUMBERS),
    ):
        column = pa.array(values, held)
        table = pa.table({**dict.fromkeys(types, column), "row": pa.array(range(len(values)))})
        source = open_table(table, "t", {t: t for t in types})
        assert isinstance(source, Retyped)
        here = to_table(source.read(source.schema))
        frame = retyped(spark.createDataFrame(table), {t: t for t in types}, "t").orderBy("row")
        there = frame.toArrow()
        for type_ in types:
            expected = pa.table({"v": values, "found": here[type_]})
            found = pa.table({"v": values, "found": there[type_].cast(here[type_].type)})
            same(_plain(expected), _plain(found))
            reasons = there[UNFIT + type_].to_pylist()
            told = {row: reason for row, reason in enumerate(reasons) if reason is not None}
            unfit = source.unfit([type_])
            assert told.keys() == unfit.keys()
            assert held == pa.float64() or told == unfit


def _plain(table: pa.Table) -> pa.Table:
    """Without NaN, which equals nothing, in the columns that ``same`` compares."""
    found = table["found"]
    if pa.types.is_floating(found.type):
        found = found.cast(pa.string())
    return pa.table({"v": table["v"].cast(pa.string()), "found": found})


def outcome(run: Any, script: str, table: Any, options: dict[str, Any], aside: Path) -> Any:
    """What a run gives, rows and bad rows; or the line that refuses it, whatever the table."""
    if "bad_rows" in options:
        options = {**options, "bad_rows": aside}
    try:
        found = run(script, e=table, **options)
        rows = found if isinstance(found, pa.Table) else found.toArrow()
    except IdsError as error:
        return re.sub(r"table 'e'|\S*e\.(csv|jsonl|parquet)", "e", str(error))
    kept = aside / "e.parquet"
    reasons = pq.read_table(kept)["ids_reason"].to_pylist() if kept.exists() else []
    return rows.to_pylist(), reasons


def test_files_with_declared_columns_and_nulls_answer_as_in_process(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "e.csv").write_text(MESSY + '2024-01-01T11:15:00Z,2,"-"\n')
    rows = [{"ts": 1_700_000_000 + k * 0.5, "x": k} for k in range(5)]
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ticks = pa.array([1_700_000_000_000, 1_700_003_600_123], pa.int64())
    pq.write_table(pa.table({"ts": ticks, "x": [1.0, 2.0]}), tmp_path / "e.parquet")
    frame = spark.read.parquet(str(tmp_path / "e.parquet"))
    cases: list[tuple[Any, Any, dict[str, Any]]] = [
        ("e.csv", None, {"schema": "ts TIMESTAMP, x DOUBLE"}),
        ("e.csv", None, {"schema": "ts TIMESTAMP, x DOUBLE", "bad_rows": "bad"}),
        ("e.csv", None, {"schema": {"e": "ts TIMESTAMP"}, "null": "NA"}),
        ("e.csv", None, {"schema": "ts TIMESTAMP, y INT, x INT", "null": ["NA", "-"]}),
        ("e.csv", None, {"null": "NA"}),
        ("e.csv", None, {"schema": "ts STRING"}),
        ("e.csv", None, {"schema": "tz STRING"}),
        ("e.jsonl", None, {"schema": "ts EPOCH_SECONDS"}),
        ("e.jsonl", None, {"schema": "x EPOCH_SECONDS, ts EPOCH_MILLIS"}),
        ("e.parquet", frame, {"schema": "ts EPOCH_MILLIS"}),
        ("e.parquet", frame, {"schema": "ts EPOCH_SECONDS", "bad_rows": "bad"}),
        ("e.parquet", frame, {"schema": "ts TIMESTAMP"}),
        ({"ts": ["2024-01-01", "?"], "x": [1, 2]}, None, {"schema": "ts TIMESTAMP"}),
        ({"ts": ["2024-01-01", "?"], "x": [1, 2]}, None, {}),
    ]
    for number, (place, other, options) in enumerate(cases):
        table = tmp_path / place if isinstance(place, str) else place
        script, aside = COUNTED if number % 2 else RANGED, tmp_path / str(number)
        here = outcome(ids.sql, script, table, options, aside / "here")
        for given in [table] if other is None else [table, other]:
            there = outcome(ids.spark.sql, script, given, options, aside / str(given is other))
            assert there == here, (place, options)


def test_times_that_were_read_as_text_are_refused_as_in_process(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "e.csv"
    for times, _ in TIMES.values():
        path.write_text("ts,x\n" + "".join(f"{time},1\n" for time in times))
        for script in (RANGED, COUNTED):
            with pytest.raises(IdsError) as here:
                ids.sql(script, e=path)
            with pytest.raises(IdsError) as there:
                ids.spark.sql(script, spark=spark, e=path)
            assert str(there.value) == str(here.value)
    frame = spark.createDataFrame(pa.table({"ts": ["2024-01-01", "2024-01-02"], "x": [1, 2]}))
    with pytest.raises(IdsError, match="'ts' has timestamps as text"):
        ids.spark.sql(COUNTED, e=frame)


def test_a_stream_takes_declared_columns_and_sets_aside_what_does_not_fit(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    rows = [f"{1_700_000_000 + 600 * k}.25,{k}" for k in range(40)]
    for number, (a, b) in enumerate([(0, 15), (15, 40)]):
        lines = [*rows[a:b], "1700000000,NA", "never,7"] if number else rows[a:b]
        path = tmp_path / "in" / f"{number}.csv"
        path.write_text("ts,x\n" + "\n".join(lines) + "\n")
        os.utime(path, (1_000_000_000 + number,) * 2)
    whole = tmp_path / "e.csv"
    whole.write_text("ts,x\n" + "\n".join(rows) + "\n")
    for script in (RANGED, COUNTED):
        running = ids.spark.start(
            script,
            checkpoint=tmp_path / f"ck{script == RANGED}",
            available_now=True,
            spark=spark,
            schema="ts EPOCH_SECONDS, x DOUBLE",
            bad_rows=tmp_path / "bad",
            e=tmp_path / "in",
        )
        running.await_termination()
        answers = ids.sql(script, e=whole, schema="ts EPOCH_SECONDS, x DOUBLE")
        found = running.table()
        assert found.num_rows > 3
        assert found.equals(answers.slice(0, found.num_rows))
        totals = running.last_progress.totals
        assert (totals.bad, totals.late, totals.ahead) == (2, 0, 0)
