"""The data pipeline on Apache Spark: the same scripts, the same answers, batch and stream.

Where a module of ``ids.query`` does the same in process, the one here has its name: ``spark_run``,
``spark_prepare``, ``spark_evaluate``, ``spark_approximate`` and ``spark_bad_rows`` are ``run``,
``prepare``, ``evaluate``, ``approximate`` and ``bad_rows`` over DataFrames; ``spark_write`` is
``ids.sink``, and ``table_reader`` is ``ids.source``. Windows are made by ``time_windows`` and
``count_windows`` in a batch, by ``stream_time`` and ``stream_count`` in a stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ids.lazy import lazy

if TYPE_CHECKING:
    from ids.spark.failures import translated
    from ids.spark.file_system import check_shared, path_at
    from ids.spark.kafka_topic import is_kafka, packages_for
    from ids.spark.preflight import ahead_cap, check_batch, check_stream, steps_of
    from ids.spark.session import local_session, watching
    from ids.spark.spark_master import check_master
    from ids.spark.spark_run import Result, run_script, sql, sql_all
    from ids.spark.spark_write import arrow_schema, write, write_stream, writing
    from ids.spark.stream import MAX_AHEAD, Stream, start
    from ids.spark.stream_checkpoint import Status, StreamProgress, needs_session, status
    from ids.spark.stream_question import Reply, StreamQuestion, ask, check, replied
    from ids.spark.table_location import may_be_table
    from ids.spark.table_reader import read

__all__ = [
    "MAX_AHEAD",
    "Reply",
    "Result",
    "Status",
    "Stream",
    "StreamProgress",
    "StreamQuestion",
    "ahead_cap",
    "arrow_schema",
    "ask",
    "check",
    "check_batch",
    "check_master",
    "check_shared",
    "check_stream",
    "is_kafka",
    "local_session",
    "may_be_table",
    "needs_session",
    "packages_for",
    "path_at",
    "read",
    "replied",
    "run_script",
    "sql",
    "sql_all",
    "start",
    "status",
    "steps_of",
    "translated",
    "watching",
    "write",
    "write_stream",
    "writing",
]

# Not everyone who imports IDS has Spark to start.
__getattr__, __dir__ = lazy(__name__)
