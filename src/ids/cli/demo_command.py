"""``ids demo``: the paper's story on Spark, from a stream to the predicate that accounts for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ids import spark  # whose names are imported on first use
from ids.cli.arguments import DebugOption, Job, MasterOption, OptionError, check_master
from ids.cli.terminal import Screen, emit_table, follow, reporting
from ids.demo import FEWEST

if TYPE_CHECKING:
    from ids.demo import Story
    from ids.spark import Stream, StreamProgress

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
    if rows < FEWEST:
        fact = f"{rows:,} requests are too few to tell the incident from chance"
        raise OptionError("--rows", f"{fact}; give {FEWEST:,} or more")
    check_master(master)
    with reporting(debug):
        from ids.cli.on_spark import session_for
        from ids.demo import MOST, Story
        from ids.sink import check_directory

        if rows > MOST:
            fact = f"{rows:,} requests are too many; give {MOST:,} or fewer"
            raise OptionError("--rows", fact)
        check_directory(out)
        story = Story(rows)
        console = Console(highlight=False)
        console.print(
            f"{rows:,} requests to a service in four regions. Every {story.slide:,} of them, the "
            f"last {story.window:,} are attributed exactly, on Spark, as they arrive.\n"
        )
        session = session_for(Job({}, master=master, debug=debug))
        with spark.translated():
            events = _generated(session, out, rows)
            _stream(session, story, events, out, console)
            _conclude(session, story, events, out, console)


def _generated(session: Any, out: Path, rows: int) -> Path:
    """The events as small files, in order; what an earlier run has left is taken as it is."""
    from ids.cli.on_spark import spark_bar
    from ids.demo import generate

    spark.check_shared(session, out)
    out.mkdir(parents=True, exist_ok=True)
    with spark_bar(session):
        generate(session, rows, out / "events")
    return out / "events"


def _stream(session: Any, story: Story, events: Path, out: Path, console: Console) -> None:
    """The first listing as a stream, a file at a time, on the screen and in Parquet."""
    import pyarrow.parquet as pq

    results = out / "attributions"
    shown: set[Path] = set()

    def begin(screen: Screen) -> Stream:
        def advance(progress: StreamProgress) -> None:
            screen.advance(progress)
            for part in sorted({*results.glob("part-*.parquet")} - shown):
                shown.add(part)
                screen.show(pq.read_table(part))

        table = spark.read(session, events, stream=True, options={"maxFilesPerTrigger": "1"})
        return spark.start(
            story.listing(),
            checkpoint=out / "checkpoint",
            output=f"{results}/",
            available_now=True,
            spark=session,
            on_progress=advance,
            server_events=table,
        )

    screen = Screen()
    follow(begin, screen, console)
    if not console.is_terminal:
        console.print(screen.drawn(console.width))


def _conclude(session: Any, story: Story, events: Path, out: Path, console: Console) -> None:
    """The second listing and the candidates as batches, and what they say."""
    import pyarrow.parquet as pq

    from ids.cli.on_spark import spark_bar
    from ids.demo import incident, ranked, ranking_table, verdict

    table = spark.read(session, events)
    scripts = {"compositions": story.compositions(), "candidates": story.ranking()}
    with spark_bar(session):
        for name, script in scripts.items():
            answers = spark.sql(script, spark=session, server_events=table)
            spark.write(answers, out / f"{name}.parquet")
    candidates = pq.read_table(out / "candidates.parquet")
    calm, worst = incident(candidates)
    composed = pq.read_table(out / "compositions.parquet").slice(calm, worst - calm + 3)
    changes = ranked(candidates, calm, worst)
    for shown in (composed, ranking_table(changes)):
        console.print()
        console.print(emit_table(shown, console.width))
    console.print("\n" + verdict(candidates, calm, worst, changes))
    console.print(f"\nEvents and results are in {out}/, as Parquet.", style="dim")
