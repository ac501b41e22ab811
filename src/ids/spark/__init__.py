"""The data pipeline on Apache Spark: the same scripts and results, for batches and streams.

``spark_run`` and ``spark_prepare``, ``spark_evaluate``, ``spark_approximate``, ``spark_bad_rows``
and ``rank`` do for DataFrames what ``run``, ``evaluate``, ``approximate``, ``bad_rows`` and
``row_order`` of ``ids.query`` do in process. ``spark_write`` corresponds to ``ids.sink``, and
``table_reader`` corresponds to ``ids.source``. ``time_windows`` and ``count_windows`` compute the
windows of a batch; ``stream_time`` and ``stream_count`` compute the windows of a stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ids.lazy import lazy

if TYPE_CHECKING:
    from ids.spark.failures import translated
    from ids.spark.file_system import check_shared, path_at
    from ids.spark.kafka_topic import is_kafka, packages_for
    from ids.spark.preflight import ahead_cap, check_batch, check_stream, may_be_table, steps_of
    from ids.spark.session import check_master, local_session, watching
    from ids.spark.spark_run import Result, run_script, sql, sql_all
    from ids.spark.spark_write import arrow_schema, write, write_stream, writing
    from ids.spark.stream import MAX_AHEAD, Stream, start
    from ids.spark.stream_checkpoint import Status, StreamProgress, needs_session, status
    from ids.spark.stream_question import Reply, StreamQuestion, ask, check, replied
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

# import ids must not import pyspark
__getattr__, __dir__ = lazy(__name__, extra="spark")
