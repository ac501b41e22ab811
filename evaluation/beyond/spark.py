"""Spark over cores, rows and lengths of window, and beside what a user would write by hand."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import ids
from evaluation.bench import CORES, Bench, session, to_nowhere
from evaluation.beyond.bits import arrive, digest
from evaluation.beyond.queries import query
from evaluation.step import SUBJECTS, Findings, Repeated, Row, Size, Step, Value, in_turns

_COLUMNS = ["region", "tier", "endpoint"]
_WARM = 5  # micro-batches before those that are timed
_COMMAND = """
import sys
from ids.cli.app import invoke
code = invoke(sys.argv[1:])
# the peak since this program began; ru_maxrss has that of the process that started it, too
print(*(line.split()[1] for line in open("/proc/self/status") if "VmHWM" in line), file=sys.stderr)
sys.exit(code)
"""


def steps(size: Size) -> list[Step]:
    """What is written by hand beside ours; then, when Java has run for a while, how ours scales."""
    about, k = size.of(quick=(15.0, [4]), full=(70.0, [4, 16, 61]))
    found = [
        *(Step(f"beyond-panes-{n}", f"{n} attributions", about, partial(_panes, n)) for n in k),
        Step("beyond-stream", "micro-batches beside a plain stream", about, _stream),
        Step("beyond-memory", "Python's memory beside Spark", about, _memory),
        Step("beyond-lengths", "longer windows on Spark", about, _lengths),
    ]
    many = {1_000_000: 30.0, 2_000_000: 30.0, 5_000_000: 50.0, 20_000_000: 120.0}
    for rows, about in size.of(quick={100_000: 20.0}, full=many).items():
        name, does = f"beyond-scaling-{rows:09d}", f"{rows:,} rows on 1 and 2 cores"
        found.append(Step(name, does, about, partial(_scale, rows), ("synthetic",)))
    return found


@contextmanager
def _requests(bench: Bench, rows: int, files: int = 8) -> Iterator[tuple[Any, Path]]:
    """So many requests as Parquet files made by Spark, and where they are."""
    place = bench.scratch / f"requests-{rows}"
    with session(CORES) as spark:
        spark.sql(query("requests", rows=rows, files=files)).write.parquet(str(place))
        yield spark.read.parquet(str(place)), place


def _table(name: str, spent: Mapping[str, Repeated], **facts: Value) -> Findings:
    return {name: [{**facts, "contender": who, "seconds": took} for who, took in spent.items()]}


def _panes(k: int, bench: Bench) -> Findings:
    """A query of K attributions, beside the sums by minute that a user would make of doubles."""
    from evaluation.baselines.spark_groupby import drill_down, pandas_udf_panes

    regions, tiers, endpoints = {4: (2, 1, 1), 16: (4, 2, 10), 61: (8, 3, 50)}[k]
    words = [("region", f"region-{n}") for n in range(regions)]
    words += [("tier", word) for word in ("premium", "basic", "free")[:tiers]]
    words += [("endpoint", f"/endpoint/{n}") for n in range(endpoints)]
    items = ", ".join(f"SHAPLEY_ATTRIBUTE(VAR_POP(latency), {n} = '{word}')" for n, word in words)
    size = bench.size.of(quick=50_000, full=20_000_000)
    with _requests(bench, size) as (rows, _):
        contenders = {
            "ids.spark.sql": partial(_emit_all, query("requests_panes", items=items), rows),
            "plain drill-down": partial(to_nowhere, drill_down(rows, _COLUMNS, "1 minute")),
            "a pandas UDF": partial(to_nowhere, pandas_udf_panes(rows, words, "1 minute")),
        }
        spent = in_turns(contenders, bench.size.repetitions)
    return _table("beyond_panes", spent, rows=size, predicates=k)


def _emit_all(script: str, rows: Any) -> None:
    to_nowhere(ids.spark.sql(script, events=rows))


def _lengths(bench: Bench) -> Findings:
    """Windows of one minute to a thousand, over the same rows."""
    size, minutes = bench.size.of(quick=(50_000, [1, 1000]), full=(5_000_000, [1, 10, 100, 1000]))
    with _requests(bench, size) as (rows, _):
        scripts = {f"{n} min": query("requests_two", minutes=n) for n in minutes}
        contenders = {name: partial(_emit_all, script, rows) for name, script in scripts.items()}
        spent = in_turns(contenders, bench.size.repetitions)
    return _table("beyond_lengths", spent, rows=size)


def _stream(bench: Bench) -> Findings:
    """One file a micro-batch: four attributions, beside sums by minute and the three columns."""
    from evaluation.baselines.spark_groupby import drill_down

    batch, batches = bench.size.of(quick=(5_000, _WARM + 5), full=(200_000, 30))
    plain, ours = f"{bench.scratch}/plain", f"{bench.scratch}/ours"
    with _requests(bench, batch * batches, batches) as (whole, place):
        reader = whole.sparkSession.readStream.schema(whole.schema)
        rows = reader.option("maxFilesPerTrigger", 1).parquet(str(place))
        timely = rows.withWatermark("event_time", "0 seconds")
        writer = drill_down(timely, _COLUMNS, "1 minute").writeStream.trigger(availableNow=True)
        started = writer.start(plain, "parquet", checkpointLocation=f"{plain}-check")
        seconds = {"plain streaming groupBy": _batches(started)}
        check, out = f"{ours}-check", f"{ours}/"
        start = partial(ids.spark.start, query("requests_four"), checkpoint=check, output=out)
        seconds["ids.spark.start"] = _batches(start(available_now=True, events=rows).query)
    return _table("beyond_stream", seconds, batch=batch)


def _batches(running: Any) -> Repeated:
    """The seconds of each micro-batch that had rows, as Spark itself reports them, once warm."""
    seconds: dict[int, float] = {}
    while running.isActive:
        running.awaitTermination(0.5)
        for progress in running.recentProgress:
            if progress["numInputRows"]:
                seconds[progress["batchId"]] = progress["durationMs"]["triggerExecution"] / 1e3
    return Repeated.of(seconds[batch] for batch in sorted(seconds)[_WARM:])


def _memory(bench: Bench) -> Findings:
    """``ids run`` from its start to its end, and the most memory that its Python took."""
    found, script = list[Row](), bench.scratch / "query.sql"
    script.write_text(query("requests_two", minutes=10))
    for rows in bench.size.of(quick=(200_000,), full=(1_000_000, 50_000_000)):
        with _requests(bench, rows) as (_, place):
            arguments = ["run", script, "--table", f"events={place}", "--master", f"local[{CORES}]"]
        command = [sys.executable, "-c", _COMMAND, *map(str, arguments), "--output"]
        begun = perf_counter()
        output = bench.scratch / f"{rows}.parquet"
        done = subprocess.run([*command, output], capture_output=True, check=True)
        spent, peak = perf_counter() - begun, 1024 * int(done.stderr.split()[-1])
        found.append({"rows": rows, "seconds": spent, "bytes": peak})
    return {"beyond_memory": found}


def _scale(rows: int, bench: Bench) -> Findings:
    """The synthetic stream from Parquet to the last emit, on one core, on two, and in process."""
    from ids.spark import read

    table = bench.events(SUBJECTS["synthetic"], rows)
    place = arrive(table, bench.scratch / "events", max(4, -(-rows // 500_000)))
    script, clock = query("scaled"), 0.0
    answers = ids.sql(script, events=place)

    def run(cores: int) -> None:
        nonlocal clock
        with session(cores) if cores else nullcontext() as spark:
            begun = perf_counter()
            if spark is None:
                ids.sql(script, events=place)
            else:
                to_nowhere(ids.spark.sql(script, events=read(spark, place)))
            clock += perf_counter() - begun

    with session(CORES) as spark:
        if digest(ids.spark.sql(script, events=read(spark, place)).toArrow()) != digest(answers):
            raise AssertionError("Spark gives other answers")
    contenders = {str(cores): partial(run, cores) for cores in (1, 2, 0)}  # none: in process
    spent = in_turns(contenders, bench.size.repetitions, lambda: clock)
    facts: Row = {"rows": rows, "emits": answers.num_rows}
    return {"beyond_scaling": [{**facts, "cores": int(n), "seconds": s} for n, s in spent.items()]}
