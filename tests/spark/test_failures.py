"""Whatever fails on Spark is one line that says what, where and what would be right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ids.errors import DataError, IdsError, ScriptError, SetupError, SinkError, SourceError
from ids.spark import translated
from ids.spark.failures import translate


def failure(job: Callable[[], object]) -> IdsError:
    """What ``job`` fails with, once it is translated; always a single line."""
    with pytest.raises(IdsError) as caught, translated():
        job()
    assert isinstance(caught.value.__cause__, Exception)
    assert "\n" not in str(caught.value)
    assert "java" not in str(caught.value).lower().replace("java heap", "")
    return caught.value


def parquet(folder: Path, **columns: list[object]) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"part {len(list(folder.iterdir()))}.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def test_what_is_not_sparks_is_left_alone() -> None:
    assert translate(ValueError("mine")) is None
    with pytest.raises(KeyError), translated():
        raise KeyError("mine")


@pytest.mark.parametrize("text", ["row 3 is bad; mend it", "a [b] SQLSTATE of\nmind; 'go'"])
def test_an_error_raised_in_a_query_gives_its_text_back(spark: SparkSession, text: str) -> None:
    raised = spark.range(4).selectExpr(f'raise_error("{text}") AS e')
    for job in (raised.collect, raised.toArrow, raised.repartition(2).collect):
        error = failure(job)
        assert type(error) is DataError
        assert str(error) == " ".join(text.split())


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        ("DataError('row 3: NaN; mend it')", DataError("row 3: NaN; mend it")),
        ("SourceError('gone; look')", SourceError("gone; look")),
        (
            "UnknownNameError('column', 'x', ['xy'])",
            ScriptError("unknown column 'x'; did you mean 'xy'?"),
        ),
    ],
)
def test_an_error_of_ours_in_a_worker_comes_back_as_itself(
    spark: SparkSession, raised: str, expected: IdsError
) -> None:
    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from ids import errors

        next(batches)
        raise eval(raised, vars(errors))

    error = failure(spark.range(4).mapInArrow(fail, "id BIGINT").collect)
    assert (type(error), str(error)) == (type(expected), str(expected))


def test_an_error_of_ours_on_a_stream_comes_back_as_itself(
    spark: SparkSession, tmp_path: Path
) -> None:
    parquet(tmp_path / "in", a=[1])
    stream = spark.readStream.schema("a BIGINT").parquet(str(tmp_path / "in"))
    bad = stream.selectExpr("raise_error('row 1 is bad; mend it') AS e")
    writer = bad.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "ck"))

    def run() -> None:
        writer.trigger(availableNow=True).start().awaitTermination()

    error = failure(run)
    assert (type(error), str(error)) == (DataError, "row 1 is bad; mend it")

    def keep(batch: DataFrame, number: int) -> None:
        raise SourceError("the sink is full; empty it")

    def run_python() -> None:
        started = stream.writeStream.foreachBatch(keep).trigger(availableNow=True).start()
        started.awaitTermination()

    error = failure(run_python)
    assert (type(error), str(error)) == (SourceError, "the sink is full; empty it")


def test_a_corrupt_parquet_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    parquet(tmp_path / "in", a=[1, 2])
    broken = parquet(tmp_path / "in", a=[3])
    table = spark.read.schema("a BIGINT").parquet(str(tmp_path / "in"))
    broken.write_bytes(broken.read_bytes()[:-20])
    error = failure(table.collect)
    assert type(error) is SourceError
    assert str(error) == f"{broken} is not a whole Parquet file; write it again"


def test_a_file_that_went_away_is_named(spark: SparkSession, tmp_path: Path) -> None:
    path = parquet(tmp_path / "in", a=[1])
    table = spark.read.parquet(str(path))
    path.unlink()
    assert str(path) in str(failure(table.collect))
    error = failure(lambda: spark.read.parquet(str(tmp_path / "nowhere")))
    assert str(error) == f"no such file or directory: {tmp_path / 'nowhere'}"


def test_a_file_of_another_schema_is_named(spark: SparkSession, tmp_path: Path) -> None:
    parquet(tmp_path / "in", a=[1])
    other = parquet(tmp_path / "in", a=["text"])
    table = spark.read.schema("a BIGINT").parquet(str(tmp_path / "in"))
    error = failure(table.collect)
    assert str(error).startswith(
        f"{other} does not match the files before it: column 'a' is stored as"
    )


def test_a_csv_header_that_changed_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("b,a\n1,2\n")
    reader = spark.read.schema("a STRING, b STRING").options(header=True, enforceSchema=False)
    error = failure(reader.csv(str(tmp_path / "t.csv")).collect)
    assert (
        str(error) == f"the header of {tmp_path}/t.csv differs from the files before it; correct it"
    )


class Told(PySparkException):
    """A failure that cannot be had here, as Spark words it."""


@pytest.mark.parametrize(
    ("told", "kind", "said"),
    [
        (
            "Job aborted\nCaused by: java.io.IOException: No space left on device",
            SinkError,
            "no space left on the disk",
        ),
        (
            "java.lang.OutOfMemoryError: Java heap space\n\tat x",
            SetupError,
            "Spark ran out of memory (Java heap space); raise spark.driver.memory",
        ),
        (
            "stage failure: ExecutorLostFailure (executor 1 exited)",
            SetupError,
            "Spark lost its executors",
        ),
        (
            "org.apache.kafka.common.KafkaException: Failed to create new KafkaAdminClient\n"
            "Caused by: org.apache.kafka.common.config.ConfigException: No resolvable "
            "bootstrap urls given in bootstrap.servers",
            SourceError,
            "cannot connect to a Kafka broker",
        ),
        (
            "x\nCaused by: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This "
            "server does not host",
            SourceError,
            "the Kafka topic does not exist",
        ),
        (
            "SparkException: All masters are unresponsive! Giving up.",
            SetupError,
            "cannot connect to Spark",
        ),
        (
            "An error occurred while calling o1.collect.\n: org.apache.spark.SparkException: "
            "Job aborted\n\tat a.b\n"
            "Caused by: a.b.OddException: [ODD.CASE] it is odd. SQLSTATE: 1\n\tat c.d",
            IdsError,
            "Spark failed: it is odd",
        ),
        (
            "[UNRESOLVED_COLUMN] no column `x`. SQLSTATE: 42703;\n'Project ['x]",
            IdsError,
            "Spark failed: no column `x`",
        ),
        ("", IdsError, "Spark failed: no reason given"),
    ],
)
def test_failures_in_sparks_own_words(told: str, kind: type[IdsError], said: str) -> None:
    error = translate(Told(told))
    assert type(error) is kind
    assert str(error).startswith(said)


def test_a_session_without_the_connector_says_so(spark: SparkSession) -> None:
    reader = spark.read.format("kafka").option("subscribe", "t")
    error = failure(reader.option("kafka.bootstrap.servers", "127.0.0.1:1").load)
    assert type(error) is SetupError
    assert str(error).startswith("the session has no Kafka connector")
