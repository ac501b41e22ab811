"""What is refused before Java starts: mistakes in a run, and what Spark does not run.

Neither this module nor what it imports needs pyspark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from ids.errors import ScriptError
from ids.model import (
    Duration,
    Select,
    TimeWindow,
    checked_seed,
    is_remote,
    local_path,
    microseconds,
)
from ids.plan import Schema, SelectPlan, Step, Tables, nothing_asked, planned, statements_of
from ids.sink import check_directory
from ids.source import NOTHING, Declared
from ids.spark.file_system import files_at
from ids.spark.kafka_topic import Topic, is_kafka
from ids.spark.stream_checkpoint import Script, claimed, identity, lock, refuse_another, revised
from ids.spark.stream_output import Output, Target, file_output
from ids.spark.table_location import may_be_table, schema_at

_HIGHEST_DEGREE = 2  # panes keep sums and sums of squares
_MOST = 100_000  # rows that Spark's max_by keeps


def refuse_beyond_panes(plan: SelectPlan) -> None:
    """Refuse a game or a sample that the panes of a time window cannot hold."""
    if not isinstance(plan.window, TimeWindow):
        return
    high = [item.game.name for item in plan.items if item.game.degree > _HIGHEST_DEGREE]
    if high:
        raise ScriptError(
            f"{high[0]} over a time window does not run on Spark",
            hint="use ROWS, or run it in process with ids.sql",
        )
    for item in plan.sampled:
        assert item.approximate is not None
        if item.approximate.size + 2 * item.extremes > _MOST:
            raise ScriptError(
                f"a sample of {item.approximate.size:,} rows over a time window does not run on "
                "Spark",
                item.approximate.at,
                f"choose at most {_MOST * 4 // 5:,}, use ROWS, or run it in process",
            )


def only_select(steps: Iterable[Step]) -> tuple[Select, SelectPlan]:
    """The one SELECT of a script that runs as a stream; any other script is refused."""
    known = list(steps)
    selects = [step.statement for step in known if isinstance(step.statement, Select)]
    if len(known) > len(selects):
        raise ScriptError("SHOW and EXPLAIN answer at once", hint="run them without a stream")
    if len(selects) != 1:
        raise ScriptError(
            f"a stream runs one SELECT, this script has {len(selects) or 'none'}",
            selects[1].at if selects else None,
            "start a stream for each, with a checkpoint and an output of its own",
        )
    (select,), plan = selects, known[0].plan
    assert plan is not None
    if plan.final:
        raise ScriptError(
            "EMIT FINAL asks for the end of a stream, which has none",
            select.at,
            "use EMIT CHANGES, or run it on files without a stream",
        )
    return select, plan


def refuse_retained_rows(plan: SelectPlan, retain: bool) -> None:
    """Refuse to keep the rows of a count window for questions."""
    if retain and not isinstance(plan.window, TimeWindow):
        raise ScriptError(
            "rows are retained by the panes of a time window, ROWS has none",
            hint="use RANGE, or start the stream without retain",
        )


def ahead_cap(max_ahead: Duration | None) -> int | None:
    """By how many microseconds a row may be ahead of the others; None: by any."""
    cap = None if max_ahead is None else microseconds(max_ahead)
    if cap is not None and cap < 1:
        raise ScriptError(
            f"a row is ahead of the others by more than {max_ahead!r} if it is newer at all",
            hint="give a longer span, as in '1 day'",
        )
    return cap


def check_batch(script: str, tables: Mapping[str, object], declared: Declared = NOTHING) -> None:
    """Refuse a script that does not fit its tables, or that Spark does not run.

    Over tables in memory, or that only Spark reaches, its syntax alone is checked.
    """
    if not _need_no_spark(tables):
        statements_of(script)
        return
    steps = steps_of(script, tables, declared)
    if not steps:
        raise nothing_asked()
    for step in steps:
        if isinstance(step.statement, Select) and step.plan is not None:
            refuse_beyond_panes(step.plan)


def check_stream(
    script: str,
    tables: Mapping[str, object],
    declared: Declared = NOTHING,
    *,
    checkpoint: str | Path,
    output: Target = None,
    retain: bool = False,
    seed: int = 0,
) -> None:
    """Refuse what ``ids.spark.start`` would refuse, as far as that is known without Spark."""
    checked_seed(seed)
    statements_of(script)
    files = None if is_remote(checkpoint) else files_at(checkpoint)
    known = files is not None and claimed(files)
    if not is_remote(checkpoint):
        check_directory(local_path(checkpoint))
    target = _written(output)
    if not known and target is not None:
        target.check()
    if not _need_no_spark(tables):
        return
    _, plan = only_select(steps_of(script, tables, declared, stream=True))
    refuse_beyond_panes(plan)
    refuse_retained_rows(plan, retain)
    if files is not None and known:
        name = target.name if target else str(output) if is_kafka(output) else "memory"
        plan = replace(plan, seed=seed)
        refuse_another(files, identity(plan, name))
        revised(files, Script.of(plan), plan, name if target and target.fixed else None)
        held = lock(files)
        if held is not None:
            held.close()


def _need_no_spark(tables: Mapping[str, object]) -> bool:
    """Whether all tables are files of this machine, or topics with declared columns."""
    return all(
        is_kafka(place)
        or (isinstance(place, str | Path) and not (is_remote(place) or may_be_table(place)))
        for place in tables.values()
    )


def _written(output: Target) -> Output | None:
    """The files a stream writes to; None where it writes none."""
    if output is None or callable(output):
        return None
    if is_kafka(output):
        Topic.parse(str(output))
        return None
    if is_remote(output):
        return None
    return file_output(output)


def steps_of(
    script: str,
    tables: Mapping[str, object],
    declared: Declared = NOTHING,
    *,
    stream: bool = False,
) -> list[Step]:
    """Plan a script over files and topics, with the columns declared for them."""

    def opened(place: object, name: str) -> Schema:
        return schema_at(str(place), declared.columns(name), declared.nulls, stream=stream)

    return list(planned(script, Tables(tables, opened).of))
