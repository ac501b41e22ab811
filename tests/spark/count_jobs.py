"""A stream of count windows on a driver that takes hardly anything from its tasks: a program.

``python -m tests.spark.count_jobs SCRIPT IN OUT CHECKPOINT`` takes in the files of IN, one a
micro-batch, into OUT; with sizes at which everything is divided that can be.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ids.spark import local_session, start
from ids.spark import stream_count as row_store
from tests.spark.cluster import JAVA_OPTIONS, LIGHT
from tests.spark.streams import source

SETTINGS = {
    JAVA_OPTIONS: LIGHT,
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.maxResultSize": "1m",
    "spark.driver.memory": "512m",
}
SIZES = {"_UNFOLDED": 10_000, "_BUCKET_ROWS": 20_000, "_TASK_ROWS": 20_000}


def run(script: str, arriving: str, out: str, checkpoint: str) -> None:
    for name, size in SIZES.items():
        setattr(row_store, name, size)
    spark = local_session("local[2]", **SETTINGS)
    try:
        rows = source(spark, Path(arriving))
        start(
            script, available_now=True, events=rows, output=f"{out}/", checkpoint=checkpoint
        ).await_termination()
    finally:
        spark.stop()


if __name__ == "__main__":
    run(*sys.argv[1:])
