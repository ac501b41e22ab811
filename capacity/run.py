"""One load through one contender in a process of its own.

``python -m capacity.run CONTENDER LOAD DIRECTORY`` prints a JSON object: medians and means over the
last batches, and what the disk holds in the end. DIRECTORY has the rows in ``in``. Contenders are

ids    ``ids.spark.start``, writing Parquet
plain  Spark's ``groupBy(key, window)`` with RocksDB, writing Parquet: as many rows, AVG alone
"""

from __future__ import annotations

import json
import os
import re
import sys
from inspect import signature
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import sleep
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import ids
from capacity.load import Load
from ids.spark.session import local_session  # older versions have it there, too

_MEASURED = 8  # batches
# the option that takes what is there and ends, which older versions call otherwise
_ENDS = "available_now" if "available_now" in signature(ids.spark.start).parameters else "once"
_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def _main(contender: str, load: Load, place: Path) -> dict[str, float]:
    spark = local_session("local[2]")
    try:
        found = {"ids": _ids, "plain": _plain}[contender](spark, load, place)
    finally:
        spark.stop()
    return found | {"output_bytes": _size(place / "out") / load.batches}


def _ids(spark: SparkSession, load: Load, place: Path) -> dict[str, float]:
    used: list[tuple[float, float, int]] = []
    seconds: list[float] = []
    workers = 0.0
    last: Any = None

    def watch(progress: Any) -> None:
        nonlocal workers, last
        workers, last = max(workers, _most_memory()), progress
        seconds.append(progress.seconds)
        used.append((_cpu(), _memory(), _shuffled(spark)))

    start: Any = ids.spark.start
    running = start(
        load.script,
        checkpoint=place / "checkpoint",
        output=f"{place}/out/",
        on_progress=watch,
        events=_rows(spark, place),
        **{_ENDS: True},
    )
    # not by a method of the handle: its name differs between versions
    while running.query.isActive:
        sleep(0.1)
    running.stop()
    spent = [late[0] - early[0] for early, late in pairwise(used)]
    state = _size(place / "checkpoint/data")
    return {
        "seconds": median(seconds[-_MEASURED:]),
        "trigger": _triggers(running.query, load),
        "cpu": sum(spent[-_MEASURED:]) / _MEASURED,
        "driver_bytes": used[-1][1],
        "worker_bytes": workers,
        "shuffled_bytes": (used[-1][2] - used[-1 - _MEASURED][2]) / _MEASURED,
        "emits": last.totals.emits / load.batches,
        "state_rows": last.state_rows,
        "state_bytes": state,
    }


def _plain(spark: SparkSession, load: Load, place: Path) -> dict[str, float]:
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", _ROCKS)
    window = F.window("event_time", f"{load.panes} minutes", "1 minute")
    answers = _rows(spark, place).withWatermark("event_time", "0 seconds").groupBy("k", window)
    query = (
        answers.agg(F.avg("latency").alias("latency"), F.count("*").alias("n"))
        .writeStream.option("checkpointLocation", f"{place}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{place}/out", format="parquet", outputMode="append")
    )
    query.awaitTermination()
    return {"trigger": _triggers(query, load), "driver_bytes": _memory()}


def _rows(spark: SparkSession, place: Path) -> DataFrame:
    """One file a batch."""
    source = str(place / "in")
    schema = spark.read.parquet(source).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(source)


def _triggers(query: Any, load: Load) -> float:
    """Seconds from the beginning to the end of a batch, as Spark tells them."""
    told = [p["batchDuration"] / 1e3 for p in query.recentProgress if p["batchId"] < load.batches]
    return float(median(told[-_MEASURED:]))


def _cpu() -> float:
    """Seconds that this process and all below it have used."""
    return sum(sum(map(int, fields[11:15])) for fields in _family().values()) / _TICK


def _memory() -> float:
    """Bytes of this process, which is the driver's Python."""
    return float(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def _most_memory() -> float:
    """The most bytes that any of Spark's Python workers has had."""
    most = 0
    for process in _family().keys() - {os.getpid()}:
        try:
            told = Path(f"/proc/{process}/status").read_text()
        except OSError:  # it has ended meanwhile
            continue
        if found := re.search(r"Name:\s+python.*VmHWM:\s+(\d+)", told, re.DOTALL):
            most = max(most, int(found[1]))
    return most * 1024.0


def _family() -> dict[int, list[str]]:
    """What /proc tells of this process and all below it, after the name."""
    every = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            every[int(stat.parent.name)] = stat.read_text().rpartition(") ")[2].split()
        except OSError:  # it has ended meanwhile
            continue
    family = {os.getpid()}
    while more := {p for p, fields in every.items() if int(fields[1]) in family} - family:
        family |= more
    return {process: every[process] for process in family}


def _shuffled(spark: SparkSession) -> int:
    """Bytes written for shuffles so far."""
    context: Any = spark.sparkContext._jsc
    return int(context.sc().statusStore().executorSummary("driver").totalShuffleWrite())


def _size(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())


if __name__ == "__main__":
    found = _main(sys.argv[1], Load(**json.loads(sys.argv[2])), Path(sys.argv[3]))
    sys.stdout.write(json.dumps(found))
