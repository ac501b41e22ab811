"""Questions to a stream's kept rows have the bits of ``ids.sql`` over the window they are about."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import ids
from ids.errors import DataError, IdsError, ScriptError, StateError
from ids.spark import Stream, start
from ids.spark.file_system import files_at
from ids.spark.stream_question import KeptRows
from ids.spark.stream_store import Piece, Store
from tests.spark.streams import UTC, arrive, events, expected, run, source


def script(keys: str = "", where: str = "", items: str = "COUNT(*) AS c", slide: str = "10") -> str:
    partition = f"PARTITION BY {keys} " if keys else ""
    return f"""
    REGISTER PREDICATE eu AS (region = 'EU') ON events;
    REGISTER PREDICATE slow AS (latency > 40 AND NOT eu) ON events;
    SELECT {items} FROM events {where}
    WINDOW w AS ({partition}ORDER BY event_time
      RANGE INTERVAL '30' SECOND PRECEDING SLIDE INTERVAL '{slide}' SECOND) EMIT CHANGES"""


def asked(
    running: Stream, table: pa.Table, aggregate: str, predicate: str, **options: str
) -> list[tuple[Any, ...]]:
    """What ``ids.sql`` over the whole table says at the instant a question is about."""
    item = f"SHAPLEY_ATTRIBUTE({aggregate}, {predicate} WITH (SHARE, LIFT)) AS q"
    emits = ids.sql(script(items=item, **options), events=table)
    then = emits.filter(pc.equal(emits["emit_at"], pa.scalar(running.window_end, UTC)))
    return [tuple(row.values()) for row in then.to_pylist()]


def checked(running: Stream, table: pa.Table, aggregate: str, predicate: str, **o: str) -> None:
    found = running.attribute(aggregate, predicate)
    assert isinstance(found, ids.Attribution)
    ((_, n, value, share, lift),) = asked(running, table, aggregate, predicate, **o)
    assert (found.value, found.share, found.lift, found.n) == (value, share, lift, n)
    assert (found.mechanism, found.error, found.rows_read) == ("scan", 0.0, n)


def kept(checkpoint: Path) -> tuple[KeptRows, list[Piece], list[dict[str, Any]]]:
    """What the last manifest keeps, and what its pieces hold of the window and after it.

    Whole pieces go, so some hold rows that have left the window, too; only those do not count.
    """
    store = Store(files_at(checkpoint))
    manifest = store.latest()
    assert manifest is not None
    found, pieces = KeptRows.of(manifest.facts["step"]["retained"]), manifest.of("retained")
    rows: list[dict[str, Any]] = []
    for piece in pieces:
        part = pq.read_table(checkpoint / piece.name, partitioning=None)
        assert (part.num_rows, pc.max(part["ids_p"]).as_py()) == (piece.rows, piece.last)
        assert pc.min(part["ids_p"]).as_py() == piece.first
        rows += part.rename_columns(["ids_p", *found.columns]).to_pylist()
    before = store.load(manifest.batch - 1)
    if before is not None:
        expired = KeptRows.of(before.facts["step"].get("retained", found.facts())).expired
        assert all(expired is None or piece.last > expired for piece in pieces)
    assert found.expired is not None
    return found, pieces, [row for row in rows if row["ids_p"] > found.expired]


def ordered(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def inside_or_newer(table: pa.Table, running: Stream) -> list[str]:
    """The rows of the window at its end, and those after it, as they would be kept."""
    micros = table["event_time"].cast(pa.int64())
    since = int(running.window_end.timestamp()) * 1_000_000 - 30_000_000
    pane = np.ceil(micros.to_numpy() / 10_000_000).astype(np.int64)
    table = table.set_column(0, "event_time", micros).add_column(0, "ids_p", pa.array(pane))
    return ordered(table.filter(pc.greater(micros, since)).to_pylist())


@pytest.fixture(scope="module")
def stream(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A stream that has come to the end of its files, and the rows it was given."""
    folder, table = tmp_path_factory.mktemp("retained"), events(300, 51, 100)
    arrive(table, folder / "in", [80, 81, 200, 260])
    return run(spark, script(), folder / "in", retain=True), table, folder / "ck"


_ATOMS = st.sampled_from(
    [
        *("eu", "slow", "region = 'US'", "region IN ('EU', 'AP')", "tier LIKE 'pre%'"),
        *("tier IS NULL", "latency > 20", "size % 3 = 0", "size * 2 < latency", "latency <=> NULL"),
        *("event_time < TIMESTAMP '1970-01-01 00:03:03.5Z'", "MINUTE(event_time) = 3"),
    ]
)
_PREDICATES = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.builds("NOT ({})".format, inner),
        st.builds("({}) AND ({})".format, inner, inner),
        st.builds("({}) OR ({})".format, inner, inner),
    ),
    max_leaves=5,
)
_AGGREGATES = st.sampled_from(
    ["AVG(latency)", "SUM(size)", "COUNT(*)", "COUNT(tier)", "VAR_POP(latency)", "VAR_SAMP(size)"]
)


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(aggregate=_AGGREGATES, predicate=_PREDICATES)
def test_any_question_has_the_bits_of_the_query_in_process(
    stream: Any, aggregate: str, predicate: str
) -> None:
    running, table, _ = stream
    checked(running, table, aggregate, predicate)


@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(aggregate=_AGGREGATES, predicate=_PREDICATES, size=st.sampled_from([4, 30, 1000]))
def test_an_estimate_has_the_bits_of_the_query_in_process(
    stream: Any, aggregate: str, predicate: str, size: int
) -> None:
    running, table, _ = stream
    sample = f"APPROXIMATE USING RESERVOIR SAMPLE {size} CONFIDENCE 0.9"
    item = f"SHAPLEY_ATTRIBUTE({aggregate}, {predicate} WITH (SHARE, LIFT) {sample}) AS q"
    emits = ids.sql(script(items=item), events=table, seed=7)
    then = emits.filter(pc.equal(emits["emit_at"], pa.scalar(running.window_end, UTC)))
    ((_, n, *answer, mechanism),) = (tuple(row.values()) for row in then.to_pylist())
    found = running.attribute(aggregate, predicate, sample=size, confidence=0.9, seed=7)
    assert [found.value, found.share, found.lift, found.error] == answer
    assert (found.n, found.mechanism, found.sample_size, found.seed) == (n, mechanism, size, 7)
    assert found.confidence == 0.9
    assert 0 <= found.standard_error <= found.error


def test_exactly_the_rows_of_the_window_or_newer_are_kept(stream: Any) -> None:
    running, table, checkpoint = stream
    found, _, rows = kept(checkpoint)
    assert list(found.columns) == table.column_names
    assert ordered(rows) == inside_or_newer(table, running)


def test_late_and_bad_rows_and_those_of_where_are_not_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = events(200, 52, 60)
    first, late = table.slice(0, 150), table.slice(115, 15)  # late, but inside the window
    bad = table.slice(150, 1).set_column(3, "latency", pa.array([float("nan")]))
    arrive(first, tmp_path / "in", [70, 110])
    arrive(pa.concat_tables([late, bad, table.slice(150)]), tmp_path / "in", [], 3)
    where = "WHERE tier <> 'free' OR latency > 10"
    running = run(
        spark, script(where=where, items="SUM(latency) AS s"), tmp_path / "in",
        retain=True, bad_rows=tmp_path / "bad", lateness="4 seconds",
    )  # fmt: skip
    totals = running.last_progress.totals
    assert totals.late and totals.bad == 1
    wanted = pc.or_kleene(pc.not_equal(table["tier"], "free"), pc.greater(table["latency"], 10))
    _, _, rows = kept(tmp_path / "ck")
    assert ordered(rows) == inside_or_newer(table.filter(wanted), running)
    checked(running, table, "AVG(size)", "eu OR tier IS NULL", where=where)


def test_a_query_with_keys_gives_a_row_a_key(spark: SparkSession, tmp_path: Path) -> None:
    table = events(200, 53, 80).append_column("half", pa.array(np.arange(200) % 2 == 0))
    arrive(table, tmp_path / "in", [120])
    running = run(spark, script(keys="half, tier"), tmp_path / "in", retain=True)
    found = running.attribute("AVG(latency)", "region = 'EU'")
    assert isinstance(found, pa.Table)
    assert found.column_names[2:] == ["emit_at", "n", "value", "share", "lift"]
    rows = list(zip(*(column.to_pylist() for column in found.columns), strict=True))
    assert rows == asked(
        running, table, "AVG(latency)", "region = 'EU'", keys="half, tier"
    )  # in the order of the keys, NULL first
    assert len(rows) > 4


@pytest.mark.slow
def test_a_stream_that_goes_on_is_asked_about_where_it_stands(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = events(240, 54, 60)
    for number, until in enumerate((80, 160, 240)):
        arrive(table.slice(until - 80, 80), tmp_path / "in", [], number)
        running = run(spark, script(), tmp_path / "in", retain=True)
        checked(running, table.slice(0, until), "AVG(latency)", "slow OR size > 0")
    assert 1 <= len([*(tmp_path / "ck/data").glob("*-retained")]) <= 3


def test_what_has_left_the_window_goes_and_small_files_come_together(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ids.spark.stream_store._TOGETHER", 3)
    table = events(260, 55, 130)
    arrive(table, tmp_path / "in", list(range(40, 260, 40)))
    running = run(spark, script(), tmp_path / "in", retain=True)
    _, pieces, rows = kept(tmp_path / "ck")
    assert ordered(rows) == inside_or_newer(table, running)
    assert len(pieces) <= 5
    assert any("-merged" in piece.name for piece in pieces)
    store = Store(files_at(tmp_path / "ck"))
    manifests = [store.load(number) for number in store.manifests()]
    named = {name for each in manifests if each is not None for name in each.named()}
    assert len(manifests) == 3
    assert {f"data/{path.name}" for path in (tmp_path / "ck/data").iterdir()} == named
    checked(running, table, "SUM(latency)", "tier = 'free'")


def test_a_silent_window_is_empty_and_its_answer_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = events(40, 56, 20)
    late = table.slice(0, 1).set_column(0, "event_time", pa.array([10**9], UTC))
    arrive(pa.concat_tables([table, late]), tmp_path / "in", [40])
    running = run(spark, script(), tmp_path / "in", retain=True)
    assert running.window_end.timestamp() == 990
    assert running.attribute("AVG(latency)", "eu")[:6] == (0.0, 0.0, 0.0, "scan", 0.0, 0)
    with pytest.raises(IdsError, match="unknown column 'latenci'"):
        running.attribute("AVG(latenci)", "eu")


@pytest.mark.slow
def test_retaining_begun_later_answers_once_the_window_is_whole(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = events(300, 57, 60)
    cuts = [0, 60, 120, 240, 300]
    answers: list[object] = []
    for number, retain in enumerate((False, True, True, False)):
        part = table.slice(cuts[number], cuts[number + 1] - cuts[number])
        arrive(part, tmp_path / "in", [], number)
        running = run(spark, script(), tmp_path / "in", retain=retain)
        try:
            answers.append(running.attribute("AVG(latency)", "eu"))
            checked(running, table.slice(0, cuts[number + 1]), "AVG(latency)", "eu")
        except StateError as error:
            answers.append(str(error))
    never, partly, whole, gone = answers
    assert "start it with retain=True" in str(never) and "start it with retain=True" in str(gone)
    assert "contains rows that came before its columns were retained" in str(partly)
    assert isinstance(whole, ids.Attribution)
    # three batches later nothing is left of what was kept
    arrive(table.slice(297), tmp_path / "in", [1, 2], 4)
    run(spark, script(), tmp_path / "in")
    assert not [*(tmp_path / "ck/data").glob("*retained*")]


@pytest.mark.parametrize("retain", [False, True])
def test_columns_that_are_made_of_those_in_the_files_are_columns(
    spark: SparkSession, tmp_path: Path, retain: bool
) -> None:
    table = events(80, 59, 40)
    arrive(table, tmp_path / "in", [40])
    made = source(spark, tmp_path / "in").withColumn("twice", F.expr("latency * 2"))
    asking = script(items="SUM(twice) AS s")
    running = start(
        asking, checkpoint=tmp_path / "ck", available_now=True, retain=retain, events=made
    )
    running.await_termination()
    table = table.append_column("twice", pc.multiply(table["latency"], 2.0))
    assert running.table().equals(expected(asking, table))
    if retain:
        checked(running, table, "AVG(twice)", "twice > 40")


def test_other_columns_begin_anew(spark: SparkSession, tmp_path: Path) -> None:
    table = events(120, 58, 40)
    arrive(table.slice(0, 60).drop_columns(["size"]), tmp_path / "in", [])
    run(spark, script(), tmp_path / "in", retain=True)
    shutil.rmtree(tmp_path / "in")
    arrive(table.slice(60), tmp_path / "in", [], 1)
    running = run(spark, script(), tmp_path / "in", retain=True)
    with pytest.raises(StateError, match="came before its columns were retained"):
        running.attribute("SUM(size)", "eu")
    assert "size" in kept(tmp_path / "ck")[0].columns


@pytest.mark.parametrize(
    ("aggregate", "predicate", "kind", "line"),
    [
        ("AVG(latency)", "regoin = 'EU'", ScriptError, "unknown column 'regoin' .*'region'"),
        ("AVG(latency)", "size = 'big'", ScriptError, "size"),
        ("AVG(latency)", "latency +", ScriptError, "expected"),
        ("AVG", "eu", ScriptError, r"AVG requires a measure.*write AVG\(column\)"),
        ("AVG(tier)", "eu", ScriptError, "tier"),
        ("M3(latency)", "eu", ScriptError, "M3"),
        ("AVG(latency * 1e300 * 1e300)", "eu", DataError, "an infinite value .* in the window"),
    ],
)
def test_a_wrong_question_is_refused_in_one_line(
    stream: Any, aggregate: str, predicate: str, kind: type[IdsError], line: str
) -> None:
    with pytest.raises(kind, match=line) as refused:
        stream[0].attribute(aggregate, predicate)
    assert "\n" not in str(refused.value)
