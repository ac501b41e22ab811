"""No name that a user chooses clashes with one of ours, whether of a column, a key or an alias."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic import dataframe

import ids
from ids.errors import ScriptError, SourceError
from ids.model import Kind
from ids.sink import write
from ids.source import declared
from ids.spark import StreamQuestion, start
from ids.spark.expression_sql import Typed
from ids.spark.frame import Frame
from ids.spark.kafka_topic import decoded, struct_of
from ids.spark.stream_question import KeptRows, ask
from tests.spark.streams import UTC, arrive
from tests.spark.tables import same
from tests.spark.test_chained import drained

ROWS = 48
GROUPS = 9  # predicates: enough to have them unfolded
SECOND = 1_000_000
START = 20_000 * 86_400 * SECOND
END = START + 86_400 * SECOND
FRAMES = {
    "time": "RANGE INTERVAL '8' SECOND PRECEDING SLIDE INTERVAL '2' SECOND",
    "count": "ROWS 7 PRECEDING SLIDE 2 ROWS",
}
# every name that a DataFrame of ours has on its way from the rows to the answers
OURS = """
ahead answer answer_lift answer_share atoms bad c0 emits file ids_0 ids_AVG_0 ids_COUNT_0
ids_MEAN_REST_0 ids_SUM_0 ids_ahead ids_counter
ids_a0_0_0 ids_a0_any_0 ids_a0_w_0 ids_at ids_b ids_before ids_before_ids_a0_0_0 ids_block
ids_before_ids_a0_w_0 ids_before_ids_m0_0 ids_before_ids_m0_w ids_before_ids_n ids_best ids_c0
ids_e0 ids_e0_error ids_e0_lift ids_e0_mechanism ids_e0_share ids_event ids_fault ids_faults
ids_file ids_g0 ids_g0_lift ids_g0_share ids_g0_value ids_h ids_heavy ids_i ids_is_emit ids_item
ids_j ids_k0 ids_kind ids_largest0 ids_last ids_late ids_m0_0 ids_m0_any ids_m0_w ids_max ids_max0
ids_min ids_min0 ids_n ids_next ids_number ids_o0 ids_old ids_origin ids_p ids_pane ids_piece
ids_place ids_present0 ids_q ids_q0 ids_query ids_rank ids_reason ids_row ids_rows ids_s0
ids_sign ids_smallest0 ids_start ids_t ids_task ids_v0 ids_w0 ids_window ids_x0 largest0 last
late reasons rows smallest0 start state_bytes state_files state_rows watermark
""".split()  # noqa: SIM905


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """One that takes names which differ only in case for the same, as Spark does by default."""
    session = spark.newSession()
    session.conf.set("spark.sql.caseSensitive", "false")
    return session


def quoted(name: str) -> str:
    return f"`{name}`"


def table_of(names: Sequence[str], *, bad: bool = False) -> pa.Table:
    """An event time, a key, then doubles, integers, texts and truths; a row at the end of all."""
    rng = np.random.default_rng(1)
    at, key, *others = names
    ticks = START + np.sort(rng.integers(0, 24, ROWS)) * SECOND
    columns = {at: pa.array(ticks, UTC), key: pa.array(rng.choice(["p", "q"], ROWS))}
    for number, name in enumerate(others):
        kinds = [rng.normal(0, 1, ROWS), rng.integers(-3, 4, ROWS), rng.choice(["u", "v"], ROWS)]
        values = [*kinds, rng.random(ROWS) < 0.5][number % 4]
        columns[name] = pa.array(values, mask=rng.random(ROWS) < 0.1)
    if bad:
        columns[others[0]] = pa.array(np.where(np.arange(ROWS) % 9 == 4, np.nan, 1.5))
    table = pa.table(columns)
    end = table.slice(ROWS - 1).set_column(0, at, pa.array([END], UTC))
    return pa.concat_tables([table, end])


def conditions(names: Sequence[str]) -> list[str]:
    """One on every column but the event time."""
    forms = ("{} > 0", "{} < 1", "{} = 'u'", "{} IS TRUE")
    rest = (forms[n % 4].format(quoted(name)) for n, name in enumerate(names[2:]))
    return [f"{quoted(names[1])} = 'p'", *rest]


def script(names: Sequence[str], aliases: Sequence[str], frame: str, *, sampled: bool) -> str:
    """Items of every kind, and predicates on all columns, under the aliases."""
    at, key, x, y = map(quoted, names[:4])
    each = conditions(names)
    items = [
        f"SHAPLEY_ATTRIBUTE(AVG({x}), {each[0]} AND {each[3]} WITH (SHARE, LIFT))",
        f"SHAPLEY_DELTA(SUM({x}), {each[1]})",
        f"COUNT({y})",
    ]
    if sampled:
        clause = "APPROXIMATE USING RESERVOIR SAMPLE 4"
        items.append(f"SHAPLEY_DELTA(AVG({x}), {each[0]} {clause})")
    groups = [" OR ".join(each[n::GROUPS]) for n in range(GROUPS)]
    items += [f"SHAPLEY_ATTRIBUTE(COUNT(*), {text})" for text in groups]
    assert len(aliases) >= len(items)
    listed = ", ".join(f"{a} AS {quoted(b)}" for a, b in zip(items, aliases, strict=False))
    window = f"WINDOW w AS (PARTITION BY {key} ORDER BY {at} {FRAMES[frame]})"
    return f"SELECT {listed} FROM t WHERE {y} IS NOT NULL {window} EMIT CHANGES"


def stream(session: SparkSession, table: pa.Table, folder: Path) -> DataFrame:
    """The rows as a stream; in the files, names do not differ only in case."""
    if not folder.exists():
        plain = table.rename_columns([f"file{n}" for n in range(table.num_columns)])
        arrive(plain, folder, [20, ROWS])
    schema = session.read.parquet(str(folder)).schema
    source = session.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return source.parquet(str(folder)).toDF(*table.column_names)


def every_way(
    session: SparkSession, names: Sequence[str], aliases: Sequence[str], folder: Path
) -> None:
    """In process, in batch, as a stream: the same answers, and the same bad rows."""
    table, faulty = table_of(names), table_of(names, bad=True)
    for frame in FRAMES:
        text = script(names, aliases, frame, sampled=True)
        place = folder / frame
        found = ids.spark.sql(
            text, t=session.createDataFrame(faulty).coalesce(1), bad_rows=place / "theirs"
        )
        same(ids.sql(text, t=faulty, bad_rows=place / "ours"), found.toArrow())
        ours, theirs = (pq.read_table(place / side / "t.parquet") for side in ("ours", "theirs"))
        assert str(ours.to_pylist()) == str(theirs.to_pylist())
        running = start(
            text,
            t=stream(session, faulty, folder / "faulty"),
            checkpoint=place / "ck",
            bad_rows=place / "stream",
            retain=frame == "time",
            available_now=True,
        )
        running.await_termination()
        expected = ids.sql(text, t=faulty, bad_rows=place / "ours")
        same(before_the_end(expected), running.table())
        parts = sorted((place / "stream").glob("*.parquet"))
        kept = pa.concat_tables([pq.read_table(part) for part in parts])
        assert str(kept.to_pylist()) == str(ours.drop_columns(ours.column_names[-2]).to_pylist())
    condition = " OR ".join(f"({each})" for each in conditions(names))
    answer = ask(folder / "time" / "ck", f"SUM({quoted(names[2])})", condition, spark=session)
    assert isinstance(answer, pa.Table)
    assert answer.column_names[:3] == [names[1], "emit_at", "n"]
    text = script(names, aliases, "time", sampled=False)
    chained = ids.spark.sql(text, t=stream(session, table, folder / "sound"))
    found = drained(session, chained, folder / "chained")
    order = [("emit_at", "ascending"), (names[1], "ascending")]
    same(before_the_end(ids.sql(text, t=table)).sort_by(order), found.sort_by(order))


def before_the_end(emits: pa.Table) -> pa.Table:
    """What a stream has emitted once the last row has come."""
    return emits.filter(pc.less(emits["emit_at"], pa.scalar(END, UTC)))


@contextmanager
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[str]]]:
    """The columns of every DataFrame that is made while inside."""
    seen: list[list[str]] = []
    original = dataframe.DataFrame.__init__

    def made(self: dataframe.DataFrame, *arguments: Any) -> None:
        original(self, *arguments)
        seen.append(self.columns)

    with monkeypatch.context() as patched:
        patched.setattr(dataframe.DataFrame, "__init__", made)
        yield seen


@pytest.mark.slow
def test_columns_and_aliases_may_be_called_as_we_call_ours(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the session takes either spelling of a name for the other
    first = ["ids_t", "ids_k0", "IDS_X0", "ids_p"]
    others = [name for name in OURS if name not in map(str.lower, first)]
    names = first + [name.upper() if n % 2 else name for n, name in enumerate(others)]
    parts = re.compile(r".*_(share|lift|error|mechanism)")  # what an alias brings along
    aliases = [name for name in OURS if name != names[1] and not parts.fullmatch(name)]
    with watched(monkeypatch) as seen:
        every_way(session, names, aliases, tmp_path)
    known = re.compile(rf"file\d+|emit_at|n|ids_(row|reason)_2|.*\(.*|{parts.pattern}")
    met = {name for columns in seen for name in columns if not known.fullmatch(name)}
    assert {re.sub(r"\d+", "0", name) for name in met - {*names}} <= {*OURS}


def test_names_that_differ_only_in_case_are_told_apart(
    session: SparkSession, tmp_path: Path
) -> None:
    table = pa.table({"t": [1, 2, 3], "A": [1.0, 2.0, 4.0], "a": [8.0, 16.0, 32.0]})
    for frame, t in (("ROWS 2 PRECEDING", "t"), (FRAMES["time"], "at")):
        given = table if t == "t" else table.add_column(0, "at", pa.array([0, 1, 2], UTC))
        data = session.createDataFrame(given).coalesce(1)
        window = f"FROM t WINDOW w AS (PARTITION BY a ORDER BY {t} {frame}) EMIT CHANGES"
        text = f"SELECT SUM(A) AS up, SHAPLEY_ATTRIBUTE(SUM(a), A > 1 AND a < 20) AS low {window}"
        same(ids.sql(text, t=given), ids.spark.sql(text, t=data).toArrow())
    both = {"t": [1], "Ab": [1.0], "aB": [2.0]}
    text = "SELECT SUM(ab) FROM t WINDOW w AS (ORDER BY t ROWS 2 PRECEDING) EMIT CHANGES"
    with pytest.raises(ScriptError, match="'ab' is ambiguous in t at line 1"):
        ids.sql(text, t=both)
    with pytest.raises(ScriptError, match="'ab' is ambiguous in t at line 1"):
        ids.spark.sql(text, spark=session, t=both)
    write(pa.table(both), tmp_path / "t.parquet")
    with pytest.raises(SourceError, match="column 'ab' occurs several times with different"):
        ids.spark.sql(text.replace("ab", "aB"), spark=session, t=tmp_path / "t.parquet")


def test_a_column_that_is_there_twice_is_refused_only_where_it_is_named(
    session: SparkSession,
) -> None:
    table = pa.table({"t": [1, 2], "x": [1.0, 2.0], "y": [3.0, 5.0]})
    joined = session.createDataFrame(table).toDF("t", "x", "x").withColumn("y", F.lit(1.0))
    window = "FROM t WINDOW w AS (ORDER BY t ROWS 2 PRECEDING) EMIT CHANGES"
    assert ids.spark.sql(f"SELECT SUM(y) AS s {window}", t=joined).toArrow()["s"].to_pylist() == [
        *(1.0, 2.0)
    ]
    with pytest.raises(ScriptError) as caught:
        ids.spark.sql(f"SELECT SUM(X) {window}", t=joined)
    assert str(caught.value) == (
        "column 'x' is there more than once at line 1, column 12; rename all but one"
    )


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_file_may_have_the_columns_that_our_readers_add(
    session: SparkSession, tmp_path: Path, suffix: str
) -> None:
    names = ("t", "ids_origin", "ids_malformed", "ids_origin_2", "x")
    table = pa.table(
        [[5, 5, 5, 4], [4, 3, 2, 1], list("abcd"), [1, 2, 1, 2], [1.0, 2, 4, 8]], names
    )
    for number in range(2):
        write(table.slice(2 * number, 2), tmp_path / f"{number}.{suffix}")
    window = "FROM t WINDOW w AS (ORDER BY t ROWS 2 PRECEDING) EMIT CHANGES"
    condition = "ids_origin > 1 AND ids_malformed <> 'b' AND ids_origin_2 = 1"
    text = f"SELECT SUM(ids_origin) AS ids_origin, SHAPLEY_DELTA(SUM(x), {condition}) {window}"
    same(ids.sql(text, t=tmp_path), ids.spark.sql(text, spark=session, t=tmp_path).toArrow())


def test_a_topic_may_declare_the_columns_that_our_reader_adds(session: SparkSession) -> None:
    rows = [('{"ids_malformed": 3, "ids_origin": 4}', "t", 0, 0), ("no JSON", "t", 0, 1)]
    sent = session.createDataFrame(rows, "value STRING, topic STRING, partition INT, offset BIGINT")
    topic = decoded(sent, struct_of(declared("ids_malformed BIGINT, ids_origin BIGINT")))
    frame = Frame.of(topic)
    assert list(frame.columns) == ["ids_malformed", "ids_origin"]
    found = frame.data.orderBy("ids_origin").drop("ids_origin").toArrow().to_pylist()
    assert found == [
        {"c0": 3, "c1": 4, "ids_malformed": None},
        {"c0": None, "c1": None, "ids_malformed": "no JSON"},
    ]


def test_a_question_refuses_keys_that_clash_with_its_answer() -> None:
    columns = {"at": Typed("c0", Kind.TIME), "Share": Typed("c1", Kind.TEXT)}
    window = f"WINDOW w AS (PARTITION BY Share ORDER BY at {FRAMES['time']})"
    question = StreamQuestion("COUNT(*)", "Share = 'a'")
    with pytest.raises(ScriptError, match="PARTITION BY 'Share' clashes with a column of the ans"):
        question.planned(
            KeptRows(columns, {}, 1, 1, f"SELECT COUNT(*) FROM t {window} EMIT CHANGES")
        )
