"""The same bits on Spark and in process: however rows are cut, however late, and on real months."""

import os
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import ids
from evaluation.bench import CORES, Bench, filled, session
from evaluation.beyond.queries import query
from evaluation.step import SUBJECTS, Findings, Row, Size, Step, in_turns
from evaluation.workloads.manifest import EVENTS
from tests.oracles.stretches import Stretches

Times = npt.NDArray[np.int64]
Late = npt.NDArray[np.bool_]

_MINUTE = 60_000_000
_WEEK = 7 * 24 * 60 * _MINUTE
_BOROUGHS = ("Manhattan", "Queens", "Brooklyn", "Bronx")
_SHARE, _DELAY = 0.1, 5  # of the rows come up to so many minutes late
_ONCE = [("synthetic", "time"), ("stress", "count")]
"""Each workload once, each window once: a quick run, and where plain sums are looked at."""


def steps(size: Size) -> list[Step]:
    """One for each workload and window; late rows in process, and on Spark by what is allowed."""
    every = [(name, window) for name in ("synthetic", "stress") for window in ("time", "count")]
    allowed: list[int] = size.of(quick=[_DELAY, 1], full=[_DELAY, 2, 0])
    about, in_process, stream = size.of(quick=(10.0, 0.2, 3.0), full=(25.0, 0.7, 10.0))
    found = []
    for name, window in size.of(quick=_ONCE, full=every):
        does, work = f"{name}, {window} window: the same bits", partial(_compare, name, window)
        found.append(Step(f"beyond-bits-{name}-{window}", does, about, work, (name,)))
    does, work = "late rows in process", partial(_late_in_process, allowed)
    found.append(Step("beyond-late-engine", does, in_process, work, ("synthetic",)))
    for minutes in allowed:
        does, work = f"late rows, {minutes} min allowed", partial(_late_on_stream, minutes)
        found.append(Step(f"beyond-late-stream-{minutes}", does, stream, work, ("synthetic",)))
    return [*found, Step("beyond-taxi", "the months of taxi trips", about, _drive, ("nyc",))]


def digest(table: pa.Table) -> str:
    """SHA-256 over names, types, NULLs and the exact bits of each number or time, by column."""
    hashed = sha256(f"{table.num_rows}".encode())
    for field in table.schema:
        column = table[field.name].combine_chunks()
        hashed.update(f"|{field.name}:{field.type}|".encode())
        hashed.update(np.packbits(pc.is_valid(column).to_numpy(zero_copy_only=False)).tobytes())
        bits = column.view(pa.int64()) if column.type.bit_width == 64 else column
        hashed.update(bits.fill_null(0).to_numpy(zero_copy_only=False).tobytes())
    return hashed.hexdigest()


def times_of(table: pa.Table, name: str = "event_time") -> Times:
    """A column of times in microseconds."""
    times: Times = table[name].cast(pa.int64()).to_numpy()
    return times


def settled(emits: pa.Table, last: int) -> pa.Table:
    """The emits before the last event time: those that a stream has answered, too."""
    return emits.filter(pa.array(times_of(emits, "emit_at") < last))


def pieces(table: pa.Table, count: int) -> Iterator[pa.Table]:
    """The table in its order, cut into so many parts of about equal length."""
    for first, end in pairwise(number * table.num_rows // count for number in range(count + 1)):
        yield table.slice(first, end - first)


def arrive(table: pa.Table, folder: Path, files: int) -> Path:
    """Cut a table into files that a stream takes in their order: by when they were modified."""
    folder.mkdir()
    for number, piece in enumerate(pieces(table, files)):
        path = folder / f"{number:04d}.parquet"
        pq.write_table(piece, path, row_group_size=100_000)
        os.utime(path, (1e9 + number, 1e9 + number))
    return folder


def _take_in(spark: Any, script: str, folder: Path, files: int = 1, lateness: int = 0) -> Any:
    """Run a stream over the files of a folder, so many a micro-batch, to its end."""
    from ids.spark import read

    rows = read(spark, folder, stream=True, options={"maxFilesPerTrigger": str(files)})
    checkpoint, late = folder.with_name(f"checkpoint-{files}"), f"{lateness} minutes"
    running = ids.spark.start(
        script, checkpoint=checkpoint, available_now=True, lateness=late, events=rows
    )
    running.await_termination()
    return running


def _compare(workload: str, window: str, bench: Bench) -> Findings:
    from ids.spark import read

    table = bench.events(SUBJECTS[workload], bench.size.of(quick=20_000, full=200_000))
    table = table.append_column("row", pa.array(np.arange(table.num_rows)))
    shuffled = table.take(bench.rng(f"bits {workload}").permutation(table.num_rows))
    ordered = arrive(table, bench.scratch / "ordered", 7)
    muddled = arrive(shuffled, bench.scratch / "muddled", 3)
    script, last, found = query(f"cut_{window}"), int(times_of(table).max()), list[Row]()
    with session(CORES) as spark:
        frames = {"7 files": read(spark, ordered)}
        for count in bench.size.of(quick=[7], full=[1, 2, 3, 7, 16]):
            cut = frames["7 files"].repartition(count)
            frames[f"{count} partition{'s' * (count > 1)}"] = cut
        frames["3 files, rows shuffled"] = read(spark, muddled)
        ways: dict[str, Callable[[], pa.Table]] = {
            "in process": partial(ids.sql, script, events=ordered),
            "in process, rows shuffled": partial(ids.sql, script, events=muddled),
        }
        for way, frame in frames.items():
            ways[f"Spark, {way}"] = ids.spark.sql(script, events=frame).toArrow
        for count in bench.size.of(quick=[4], full=[1, 3]):
            way = f"stream, {count} file{'s' * (count > 1)} a micro-batch"
            ways[way] = lambda n=count: _take_in(spark, script, ordered, n).table()  # type: ignore[misc]
        for way, answer in ways.items():
            emits = settled(answer(), last)
            facts: Row = {"workload": workload, "window": window, "way": way}
            found.append({**facts, "emits": emits.num_rows, "digest": digest(emits)})
            bench.said(len(found) / (len(ways) + 1))
        plain = list(frames.values()) if (workload, window) in _ONCE else []
        summed = [spark.sql(query("plain_sums"), rows=frame).toArrow() for frame in plain]
    return {"beyond_bits": found, "beyond_plain": contrast(workload, summed)}


def contrast(workload: str, ways: Sequence[pa.Table]) -> list[Row]:
    """How many different tables plain sums give, and how far apart at most, relatively."""
    found: list[Row] = []
    for name in ways[0].column_names[1:] if ways else ():
        values = np.array([way[name].to_numpy() for way in ways])
        apart = (values.max(axis=0) - values.min(axis=0)) / np.abs(values).max(axis=0)
        distinct = len({digest(way.select([name])) for way in ways})
        facts: Row = {"workload": workload, "aggregate": name, "ways": len(ways)}
        found.append({**facts, "distinct": distinct, "spread": float(apart.max())})
    return found


def deliver(table: pa.Table, share: float, delay: int, rng: np.random.Generator) -> pa.Table:
    """The rows as they come: a share of them up to ``delay`` microseconds after its event time."""
    times = times_of(table)
    wait = np.where(rng.random(len(times)) < share, rng.integers(1, delay + 1, len(times)), 0)
    return table.take(np.argsort(times + wait, kind="stable"))


def late_by_row(times: Times, lateness: int) -> Late:
    """Which rows are too late by the engine's rule: against the newest row before them."""
    return times < np.maximum.accumulate(times) - lateness


def late_by_batch(batches: Sequence[Times], lateness: int) -> Late:
    """Which rows are too late by a stream's rule: against the watermark their batch began with."""
    newest = np.maximum.accumulate([-(2**62), *(times.max() for times in batches)])
    pairs = zip(batches, newest[:-1] - lateness, strict=True)
    return np.concatenate([times < watermark for times, watermark in pairs])


def _delivered(bench: Bench) -> tuple[pa.Table, pa.Table, list[pa.Table]]:
    """The rows in order, as they come, and these in parts."""
    rows, parts = bench.size.of(quick=(20_000, 3), full=(100_000, 10))
    table = bench.events(SUBJECTS["synthetic"], rows)
    came = deliver(table, _SHARE, _DELAY * _MINUTE, bench.rng("late"))
    return table, came, list(pieces(came, parts))


def _row(way: str, minutes: int, came: pa.Table, late: Late, dropped: int) -> Row:
    """What was allowed, and how many rows came, out of order, were dropped, and should be."""
    allowed: Row = {"way": way, "delay_minutes": _DELAY, "allowed_minutes": minutes}
    behind = int(late_by_row(times_of(came), 0).sum())
    counts: Row = {"rows": len(late), "late": behind, "dropped": dropped}
    return {**allowed, **counts, "expected": int(late.sum())}


def _late_on_stream(minutes: int, bench: Bench) -> Findings:
    table, came, parts = _delivered(bench)
    script, watermark = query("late"), int(times_of(table).max()) - minutes * _MINUTE
    late = late_by_batch([times_of(part) for part in parts], minutes * _MINUTE)
    with session(CORES) as spark:
        folder = arrive(came, bench.scratch / "arriving", len(parts))
        running = _take_in(spark, script, folder, lateness=minutes)
        emits, dropped = running.table(), running.last_progress.totals.late
    whole, kept = (
        digest(emits) == digest(settled(ids.sql(script, events=rows), watermark))
        for rows in (table, came.filter(pa.array(~late)))
    )
    row = _row("stream", minutes, came, late, dropped)
    alike: Row = {"answers": emits.num_rows, "like_batch": whole, "like_kept": kept}
    return {"beyond_late": [{**row, **alike}]}


def _late_in_process(allowed: Sequence[int], bench: Bench) -> Findings:
    """The window's answers after every batch, beside those of an engine given the rows in order."""
    table, came, parts = _delivered(bench)
    found: list[Row] = []
    for minutes in allowed:
        late = late_by_row(times_of(came), minutes * _MINUTE)
        engine, kept, end = _engine(minutes), True, 0
        for part in parts:
            engine.ingest(part)
            end += part.num_rows
            sound = came.slice(0, end).filter(pa.array(~late[:end])).sort_by("event_time")
            kept &= _answers(engine) == _answers(filled(_engine(0), sound, end))
        row = _row("engine", minutes, came, late, engine.late_rows)
        whole = _answers(engine) == _answers(filled(_engine(0), table, end))
        found.append({**row, "answers": len(parts), "like_batch": whole, "like_kept": kept})
    return {"beyond_late": found}


def _engine(minutes: int) -> ids.Engine:
    window, late = ids.TimeWindow("10 minutes", "1 minute"), f"{minutes} minutes"
    engine = ids.Engine(window, value="latency", order_by="event_time", lateness=late)
    engine.register("west", "region = 'EU-West'")
    return engine


def _answers(engine: ids.Engine) -> list[object]:
    """What the window says now; doubles are compared as they are."""
    asked = [engine.attribute(game, "west") for game in ("AVG", "VAR_POP")]
    return [engine.rows, *((one.value, one.share, one.lift) for one in asked)]


def _drive(bench: Bench) -> Findings:
    from ids.spark import read

    place, trips = bench.place("nyc") / EVENTS, bench.events(SUBJECTS["nyc"])
    script, emits = query("taxi"), dict[str, pa.Table]()
    with session(CORES) as spark:
        contenders: dict[str, Callable[[], object]] = {
            "Spark": lambda: emits.update(
                spark=ids.spark.sql(script, trips=read(spark, place)).toArrow()
            ),
            "in process": lambda: emits.update(here=ids.sql(script, trips=place)),
        }
        spent = in_turns(contenders, bench.size.repetitions)
    here, gaps = emits["here"], _gaps(emits["here"], trips, bench.size.of(quick=4, full=12))
    facts: Row = {"trips": trips.num_rows, "emits": here.num_rows, "worst": max(gaps)}
    checks: Row = {"checked": len(gaps), "alike": digest(here) == digest(emits["spark"])}
    runs = [{"way": way, **facts, **checks, "seconds": took} for way, took in spent.items()]
    return {"beyond_taxi": runs, "beyond_taxi_days": days(trips, here)}


def days(trips: pa.Table, emits: pa.Table) -> list[Row]:
    """The average and its parts at the midnights whose week is whole."""
    with duckdb.connect() as duck:
        duck.register("trips", trips)
        duck.register("emits", emits)
        found: list[Row] = duck.sql(query("whole_weeks")).to_arrow_table().to_pylist()
    return found


def _gaps(emits: pa.Table, trips: pa.Table, count: int) -> list[float]:
    """The numbers of so many windows against fractions, relative to the aggregate attributed."""
    times, borough, gaps = times_of(trips), np.array(trips["borough"].to_pylist()), list[float]()
    holds = {name.lower(): borough == name for name in _BOROUGHS}
    holds["elsewhere"] = ~np.isin(borough, _BOROUGHS)
    truth = Stretches(trips["fare_amount"].to_numpy(), holds)
    for place in range(count):
        emit = emits.slice((2 * place + 1) * emits.num_rows // (2 * count), 1)
        end = int(times_of(emit, "emit_at")[0])
        first, last = np.searchsorted(times, [end - _WEEK, end], "right").tolist()
        average, variance = (truth.aggregate(game, first, last) for game in ("AVG", "VAR_POP"))
        exact = [("average", average, average), ("variance", variance, variance)]
        exact += [(name, truth.attribution("AVG", name, first, last), average) for name in holds]
        for name, value, scale in exact:
            gaps.append(float(abs(Fraction(emit[name][0].as_py()) - value) / (abs(scale) or 1)))
    return gaps
