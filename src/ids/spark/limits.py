"""What Spark does not run, told from the plan alone: nothing here needs pyspark."""

from __future__ import annotations

from collections.abc import Iterable

from ids.errors import ScriptError
from ids.model.query import Select
from ids.model.window import Duration, TimeWindow, microseconds
from ids.plan import SelectPlan, Step

__all__ = [
    "ahead_cap",
    "only_select",
    "refuse_beyond_panes",
    "refuse_retained_rows",
    "refuse_samples",
]

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


def refuse_samples(plan: SelectPlan) -> None:
    """Refuse APPROXIMATE over a streaming DataFrame, which is answered exactly."""
    for item in plan.sampled:
        assert item.approximate is not None
        raise ScriptError(
            "APPROXIMATE over a streaming DataFrame has no streaming DataFrame as its result",
            item.approximate.at,
            "run it with ids.spark.start, or leave the clause out",
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
