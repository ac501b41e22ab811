"""``ids demo``: the paper's story on Spark, from a stream to the predicate that accounts for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow.parquet as pq
import typer
from rich.console import Console

from ids.cli.arguments import DebugOption, MasterOption, OptionError, check_master
from ids.cli.following import Screen, follow
from ids.cli.on_spark import Job, session_for, spark_bar
from ids.cli.reporting import reporting
from ids.cli.terminal import emit_table
from ids.demo.story import FEWEST, MOST, Story, incident, ranked, ranking_table, verdict
from ids.sink.target import check_directory

if TYPE_CHECKING:
    from ids.spark.streaming import Progress, Running

__all__ = ["demo"]

_ROWS = 200_000


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where events and results are kept.")
    ] = Path("ids-demo"),
    rows: Annotated[
        int, typer.Option("--rows", metavar="N", help=f"How many requests; {FEWEST:,} or more.")
    ] = _ROWS,
    master: MasterOption = None,
    debug: DebugOption = False,
) -> None:
    """Tell the paper's story on a generated stream: which predicate accounts for the change?

    Stopped halfway, the next run goes on from there.
    """
    _check_rows(rows)
    check_master(master)
    story = Story(rows)
    with reporting(debug):
        check_directory(out)
        console = Console(highlight=False)
        console.print(
            f"{rows:,} requests to a service in four regions. Every {story.slide:,} of them, the "
            f"last {story.window:,} are attributed exactly, on Spark, as they arrive.\n"
        )
        session = session_for(Job({}, master=master, debug=debug))
        from ids.spark.failures import translated

        with translated():
            events = _generated(session, out, rows)
            _stream(session, story, events, out, console)
            _conclude(session, story, events, out, console)


def _check_rows(rows: int) -> None:
    if rows < FEWEST:
        fact = f"{rows:,} requests are too few to tell the incident from chance"
        raise OptionError("--rows", f"{fact}; give {FEWEST:,} or more")
    if rows > MOST:
        raise OptionError("--rows", f"{rows:,} requests are too many; give {MOST:,} or fewer")


def _generated(session: Any, out: Path, rows: int) -> Path:
    """The events as small files, in order; what an earlier run has left is taken as it is."""
    from ids.demo.events import generate
    from ids.spark.probe import check_shared

    check_shared(session, out)
    out.mkdir(parents=True, exist_ok=True)
    with spark_bar(session):
        generate(session, rows, out / "events")
    return out / "events"


def _stream(session: Any, story: Story, events: Path, out: Path, console: Console) -> None:
    """The first listing as a stream, a file at a time, on the screen and in Parquet."""
    from ids.spark.sources import read
    from ids.spark.streaming import start

    results = out / "attributions"
    shown: set[Path] = set()

    def begin(screen: Screen) -> Running:
        def advance(progress: Progress) -> None:
            screen.advance(progress)
            for part in sorted(results.glob("part-*.parquet")):
                if part not in shown:
                    shown.add(part)
                    screen.show(pq.read_table(part))

        return start(
            story.listing(),
            checkpoint=out / "checkpoint",
            output=f"{results}/",
            once=True,
            spark=session,
            on_progress=advance,
            server_events=read(session, events, stream=True, options={"maxFilesPerTrigger": "1"}),
        )

    screen = Screen()
    follow(begin, screen, console)
    if not console.is_terminal:
        console.print(screen.drawn(console.width))


def _conclude(session: Any, story: Story, events: Path, out: Path, console: Console) -> None:
    """The second listing and the candidates as batches, and what they say."""
    from ids.spark.script import sql
    from ids.spark.sinks import write
    from ids.spark.sources import read

    table = read(session, events)
    with spark_bar(session):
        for name, script in (
            ("compositions", story.compositions()),
            ("candidates", story.ranking()),
        ):
            write(sql(script, spark=session, server_events=table), out / f"{name}.parquet")
    candidates = pq.read_table(out / "candidates.parquet")
    calm, worst = incident(candidates)
    console.print()
    composed = pq.read_table(out / "compositions.parquet").slice(calm, worst - calm + 3)
    console.print(emit_table(composed, console.width, last=None))
    changes = ranked(candidates, calm, worst)
    console.print()
    console.print(emit_table(ranking_table(changes), console.width, last=None))
    console.print("\n" + verdict(candidates, calm, worst, changes))
    console.print(f"\nEvents and results are in {out}/, as Parquet.", style="dim")
