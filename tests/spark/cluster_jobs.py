"""What the cluster tests do on Spark: a program, since a driver's session is for one master.

``python -m tests.spark.cluster_jobs MASTER SCRIPT DATA OUT [GROUP]`` writes the answer to OUT. With
a GROUP it kills that process group when half of the tasks of the first stage are done, and prints
as JSON how many were, of how many, and how many executors there were at the end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ids.spark import local_session, sql
from tests.spark.cluster import LIGHT

# Each file is a task, so that there is a middle of the job to hit.
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": LIGHT,
    "spark.sql.files.maxPartitionBytes": "1048576",
    "spark.ui.liveUpdate.period": "0",  # tasks are counted as they end
    "spark.sql.shuffle.partitions": "4",
}


def run(master: str, script: str, data: str, out: str, group: int | None) -> dict[str, Any]:
    spark = local_session(master, **SETTINGS)
    try:
        answer = sql(Path(script).read_text(encoding="utf-8"), spark=spark, events=data)
        killed: dict[str, Any] = {}
        if group is None:
            table = answer.toArrow()
        else:
            over = Event()
            killer = Thread(target=_kill_midway, args=(spark, group, over, killed))
            killer.start()
            try:
                table = answer.toArrow()
            finally:
                over.set()
                killer.join()
        pq.write_table(table, out)
        context = spark.sparkContext._jsc.sc()
        # the driver is in the list as well
        return {**killed, "executors": len(context.statusTracker().getExecutorInfos()) - 1}
    finally:
        spark.stop()


def _kill_midway(spark: SparkSession, group: int, over: Event, killed: dict[str, Any]) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not over.is_set():
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info is not None and 2 * info.numCompletedTasks >= info.numTasks > 1:
                os.killpg(group, signal.SIGKILL)
                killed.update(done=info.numCompletedTasks, tasks=info.numTasks)
                return
        time.sleep(0.005)


if __name__ == "__main__":
    master, script, data, out, *groups = sys.argv[1:]
    sys.stdout.write(json.dumps(run(master, script, data, out, int(groups[0]) if groups else None)))
