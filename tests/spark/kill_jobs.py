"""Streams that are killed on their way: two programs, since a driver is a process.

``python -m tests.spark.kill_jobs FOLDER`` takes in the files of FOLDER/in, one a micro-batch, with
time windows and with count windows at once, and says "begun" before it does.

``python -m tests.spark.kill_jobs FOLDER WINDOW MASTER WORKER …`` takes them in with one of these
windows, on a cluster, three files a micro-batch. Meanwhile it kills executors of the workers, in
ten micro-batches at moments of chance, and prints which as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import numpy as np
from pyspark.sql import SparkSession

from ids.spark import Stream, local_session, read, start
from ids.spark.file_system import files_at
from ids.spark.stream_store import Manifests
from tests.spark.cluster import JAVA_OPTIONS, LIGHT
from tests.spark.cluster_jobs import SETTINGS

__all__ = ["BATCHES", "LATENESS", "SCRIPTS", "begin", "done"]

ITEMS = """
REGISTER PREDICATE eu AS (region = 'EU') ON events;
SELECT SHAPLEY_ATTRIBUTE(AVG(latency), eu AND size > 0 WITH (SHARE, LIFT)) AS a,
       SHAPLEY_DELTA(SUM(latency), eu) AS d, COUNT(*) AS c
FROM events WINDOW w AS (PARTITION BY tier ORDER BY event_time
"""
WINDOWS = {
    "time": "RANGE INTERVAL '30' SECOND PRECEDING SLIDE INTERVAL '10' SECOND",
    "count": "ROWS 20 PRECEDING SLIDE 3 ROWS",
}
SCRIPTS = {name: f"{ITEMS} {window}) EMIT CHANGES;" for name, window in WINDOWS.items()}
OUTPUTS = {"time": "out/", "count": "out.jsonl"}
LATENESS = "5 seconds"
BATCHES = 10  # in which executors are killed
_LOOKS = 30  # for tasks: there are none if the executors have only just been started
_PATIENCE = {  # a lost worker is given up at once
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "100ms",
    "spark.ui.liveUpdate.period": "0",  # and a task that starts is seen at once
    "spark.sql.shuffle.partitions": "2",
}


def done(checkpoint: Path) -> int:
    """How many micro-batches have a manifest."""
    return 1 + max(Manifests(files_at(checkpoint)).manifests(), default=-1)


def begin(
    spark: SparkSession, folder: Path, window: str, to: Path, files: int = 1, output: str = "out/"
) -> Stream:
    """Start the stream of FOLDER/in, with everything that it writes below ``to``."""
    arriving = folder / "in"
    options = {"maxFilesPerTrigger": str(files)}
    return start(
        SCRIPTS[window],
        checkpoint=to / "ck",
        output=f"{to}/{output}",
        bad_rows=to / "bad",
        lateness=LATENESS,
        retain=window == "time",
        available_now=True,
        events=read(spark, arriving, stream=True, options=options),
        spark=spark,
    )


def _both(folder: Path) -> None:
    settings = {JAVA_OPTIONS: LIGHT, "spark.driver.memory": "1g"}
    spark = local_session("local[2]", **settings, **{"spark.sql.shuffle.partitions": "2"})
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    streams = [begin(spark, folder, name, folder / name, output=OUTPUTS[name]) for name in WINDOWS]
    for stream in streams:
        stream.await_termination()
    spark.stop()


def _on_cluster(folder: Path, window: str, master: str, workers: list[int]) -> None:
    spark = local_session(master, **{**SETTINGS, **_PATIENCE})
    killed: dict[int, tuple[int, int]] = {}
    over = Event()
    killer = Thread(target=_kill, args=(spark, folder / "ck", workers, over, killed))
    killer.start()
    try:
        begin(spark, folder, window, folder, files=3).await_termination()
    finally:
        over.set()
        killer.join()
        spark.stop()
    sys.stdout.write(json.dumps(killed))


def _kill(
    spark: SparkSession,
    checkpoint: Path,
    workers: list[int],
    over: Event,
    killed: dict[int, tuple[int, int]],
) -> None:
    """Kill executors in the middle of their tasks, once a batch: the oldest, and now and then all.

    At a random moment they are stopped, and killed if tasks are at work or come to be so, else they
    go on. ``killed`` is given for each batch how many tasks were, and how many executors.
    """
    rng = np.random.default_rng(7)
    while not over.is_set() and len(killed) < BATCHES:
        time.sleep(rng.random())
        batch, victims = done(checkpoint), _executors(workers)
        if batch in killed:
            continue
        _signal(victims, signal.SIGSTOP)
        for _ in range(_LOOKS):
            if tasks := _active(spark):
                break
            time.sleep(0.01)
        if tasks and victims and done(checkpoint) == batch:
            chosen = victims if len(killed) % 3 == 2 else victims[:1]
            _signal(chosen, signal.SIGKILL)
            killed[batch] = (tasks, len(chosen))
        _signal(victims, signal.SIGCONT)


def _active(spark: SparkSession) -> int:
    """How many tasks run."""
    tracker = spark.sparkContext.statusTracker()
    infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return sum(info.numActiveTasks for info in infos if info is not None)


def _signal(processes: list[int], number: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def _executors(workers: list[int]) -> list[int]:
    """The processes that workers have started."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            if parent in workers and b"CoarseGrained" in (place / "cmdline").read_bytes():
                found.append(int(place.name))
    return sorted(found)


if __name__ == "__main__":
    place, *rest = sys.argv[1:]
    if rest:
        _on_cluster(Path(place), rest[0], rest[1], [int(word) for word in rest[2:]])
    else:
        _both(Path(place))
