"""``ids demo``: the paper's story, from a stream to the predicate that accounts for its change."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich.console import Console
from rich.live import Live

from ids.cli.arguments import DebugOption
from ids.cli.reporting import reporting
from ids.cli.server_events import server_events
from ids.cli.terminal import Bar, cells, emit_table, is_terminal

__all__ = ["Change", "demo", "ranked", "verdict"]

_SEED = 20_260_302
_WINDOW = 10_000
_SLIDE = 1_000
_OVER = f"""FROM server_events
WINDOW w AS (ORDER BY event_time ROWS {_WINDOW} PRECEDING SLIDE {_SLIDE} ROWS)
EMIT CHANGES;
"""
_LISTINGS = f"""
REGISTER PREDICATE region_eu AS (region = 'EU-West') ON server_events;
REGISTER PREDICATE region_us AS (region = 'US-East') ON server_events;
REGISTER PREDICATE tier_premium AS (tier = 'premium') ON server_events;

SELECT
    SHAPLEY_ATTRIBUTE(AVG(latency), region_eu WITH (SHARE, LIFT)) AS eu_attribution,
    SHAPLEY_ATTRIBUTE(AVG(latency), region_us WITH (SHARE, LIFT)) AS us_attribution
{_OVER}
SELECT
    SHAPLEY_ATTRIBUTE(AVG(latency), region_eu AND tier_premium) AS eu_premium_attr,
    SHAPLEY_ATTRIBUTE(AVG(latency), region_eu AND NOT tier_premium) AS eu_basic_attr,
    SHAPLEY_ATTRIBUTE(AVG(latency), region_eu OR region_us) AS eu_or_us_attr
{_OVER}"""
_CANDIDATES = (
    "region_eu",
    "region_us",
    "tier_premium",
    "region_eu AND tier_premium",
    "region_eu AND NOT tier_premium",
    "region_us AND tier_premium",
    "region = 'AP-South'",
    "region = 'SA-East'",
    "endpoint = '/checkout'",
)


class Change(NamedTuple):
    """What changed for one predicate between a calm window and the worst one.

    rows       how many it holds for in the worst window
    lift       by how much the lift of AVG(latency) moved
    variance   the sum of its SHAPLEY_DELTAs of VAR_POP(latency) on the way
    """

    predicate: str
    rows: int
    lift: float
    variance: float


def demo(debug: DebugOption = False) -> None:
    """Tell the paper's story on a generated stream: which predicate accounts for the change?"""
    with reporting(debug):
        from ids.engine import run_script  # here, so that --help need not wait for the compiler

        console = Console(highlight=False)
        events = server_events(np.random.default_rng(_SEED))
        rows = len(events["latency"])
        console.print(
            f"{rows:,} requests to a service in four regions. Every {_SLIDE:,} of them, the "
            f"last {_WINDOW:,} are attributed exactly.\n"
        )
        bar = Bar(Console(stderr=True))
        bar.start()
        try:
            script = _LISTINGS + _ranking()
            first, second, third = run_script(script, {"server_events": events}, progress=bar)
        finally:
            bar.clear()
        calm, worst = _incident(third.table)
        _play(_story(first.table, second.table), calm, worst, console)
        changes = ranked(third.table, calm, worst)
        console.print()
        console.print(emit_table(_ranking_table(changes), console.width, last=None))
        console.print("\n" + verdict(third.table, calm, worst, changes))


def _ranking() -> str:
    items = ["AVG(latency) AS average", "VAR_POP(latency) AS variance"]
    for i, predicate in enumerate(_CANDIDATES):
        items += [
            f"SHAPLEY_ATTRIBUTE(AVG(latency), {predicate} WITH (SHARE, LIFT)) AS average_{i}",
            f"SHAPLEY_DELTA(VAR_POP(latency), {predicate}) AS variance_{i}",
            f"SHAPLEY_ATTRIBUTE(COUNT(*), {predicate}) AS rows_{i}",
        ]
    return "SELECT " + ",\n    ".join(items) + f"\n{_OVER}"


def _numbers(table: pa.Table, column: str) -> npt.NDArray[np.float64]:
    numbers: npt.NDArray[np.float64] = table.column(column).to_numpy()
    return numbers


def _incident(table: pa.Table) -> tuple[int, int]:
    """The emit with the highest average, and the one a whole window earlier: no row is in both."""
    worst = int(np.argmax(_numbers(table, "average")))
    return max(0, worst - _WINDOW // _SLIDE), worst


def ranked(table: pa.Table, calm: int, worst: int) -> list[Change]:
    """What changed for each candidate, the largest move of the lift first."""
    changes = []
    for i, predicate in enumerate(_CANDIDATES):
        lift = _numbers(table, f"average_{i}_lift")
        deltas = _numbers(table, f"variance_{i}")[calm + 1 : worst + 1]
        rows = round(_numbers(table, f"rows_{i}")[worst])
        changes.append(Change(predicate, rows, float(lift[worst] - lift[calm]), float(sum(deltas))))
    return sorted(changes, key=lambda change: -change.lift)


def _story(first: pa.Table, second: pa.Table) -> pa.Table:
    """The columns of the two listings that tell it, narrow enough for eighty characters."""
    clock = [text[11:19] for text in cells(first.column("emit_at"))]
    return pa.table(
        {
            "emit_at": clock,
            "eu\nattribution": first.column("eu_attribution"),
            "eu\nlift": first.column("eu_attribution_lift"),
            "us\nlift": first.column("us_attribution_lift"),
            "eu_premium\nattr": second.column("eu_premium_attr"),
            "eu_basic\nattr": second.column("eu_basic_attr"),
            "eu_or_us\nattr": second.column("eu_or_us_attr"),
        }
    )


def _play(story: pa.Table, calm: int, worst: int, console: Console) -> None:
    """The emits around the incident; on a terminal they come one after the other."""
    begin, end = max(0, calm - 3), min(worst + 6, story.num_rows)
    shown = story.slice(begin, end - begin)
    if not is_terminal():
        console.print(emit_table(shown, console.width, last=None))
        return
    with Live(console=console, auto_refresh=False) as live:
        for drawn in range(1, shown.num_rows + 1):
            live.update(emit_table(shown, console.width, None, drawn), refresh=True)
            time.sleep(0.1)


def _ranking_table(changes: list[Change]) -> pa.Table:
    return pa.table(
        {
            "predicate": [change.predicate for change in changes],
            "rows": [change.rows for change in changes],
            "change of\nAVG lift": [change.lift for change in changes],
            "sum of SHAPLEY_DELTA\nof VAR_POP": [change.variance for change in changes],
        }
    )


def verdict(table: pa.Table, calm: int, worst: int, changes: list[Change]) -> str:
    """One paragraph: the predicate that accounts for the change, and by how much."""
    average, variance = _numbers(table, "average"), _numbers(table, "variance")
    at = [text[11:19] for text in cells(table.column("emit_at"))]
    first, second = changes[:2]
    part = first.rows / _numbers(table, "n")[worst]
    return (
        f"Between {at[calm]} and {at[worst]} AVG(latency) went from {average[calm]:.1f} to "
        f"{average[worst]:.1f} ms and VAR_POP(latency) from {variance[calm]:,.0f} to "
        f"{variance[worst]:,.0f} ms². {first.predicate} accounts for it: {part:.1%} of "
        f"the rows, yet its lift moved by {first.lift:+.1f} ms, further than that of any other "
        f"candidate ({second.predicate}: {second.lift:+.1f} ms), and its SHAPLEY_DELTAs of the "
        f"variance add up to {first.variance:+,.0f} ms². (The lifts of all rows sum to zero, so "
        "one predicate's may exceed the aggregate.)"
    )
