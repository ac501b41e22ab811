"""``ids demo``: find the predicate behind an incident in a generated stream, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console

from ids import spark  # its names are imported on first use
from ids.cli.arguments import (
    DebugOption,
    MasterOption,
    OptionError,
    check_master,
    option,
    require_spark,
    session_for,
)
from ids.cli.terminal import Screen, emit_table, follow, reporting, spark_bar
from ids.demo import FEWEST

if TYPE_CHECKING:
    from ids.demo import Story
    from ids.spark import Stream, StreamProgress

_ROWS = 200_000


def demo(
    output: Annotated[
        Path,
        option("--output", "DIR", "The directory for events and results."),
    ] = Path("ids-demo"),
    rows: Annotated[
        int,
        option("--rows", "N", f"The number of requests to generate, at least {FEWEST:,}."),
    ] = _ROWS,
    master: MasterOption = None,
    debug: DebugOption = False,
) -> None:
    """Find the predicate behind an incident in a generated stream, on Spark.

    If interrupted, the next run resumes where it left off.
    """
    if rows < FEWEST:
        fact = f"{rows:,} requests are too few to distinguish the incident from chance"
        raise OptionError("--rows", f"{fact}; use at least {FEWEST:,}")
    check_master(master)
    with reporting(debug):
        require_spark()
        from ids.demo import MOST, Story
        from ids.sink import check_directory

        if rows > MOST:
            raise OptionError("--rows", f"{rows:,} requests are too many; use at most {MOST:,}")
        check_directory(output)
        story = Story(rows)
        console = Console(highlight=False)
        console.print(
            f"{rows:,} requests to a service in four regions. Every {story.slide:,} of them, the "
            f"last {story.window:,} are attributed exactly, on Spark, as they arrive.\n"
        )
        session = session_for(master, {}, debug)
        with spark.translated():
            events = _generate(session, output, rows)
            _stream(session, story, events, output, console)
            _conclude(session, story, events, output, console)


def _generate(session: Any, output: Path, rows: int) -> Path:
    """Write the events as small files, in order, unless an earlier run has written them."""
    from ids.demo import generate

    spark.check_shared(session, output)
    output.mkdir(parents=True, exist_ok=True)
    with spark_bar(session):
        generate(session, rows, output / "events")
    return output / "events"


def _stream(session: Any, story: Story, events: Path, output: Path, console: Console) -> None:
    """Run the paper's first query as a stream, one file per batch, on the screen and in Parquet."""
    import pyarrow.parquet as pq

    results = output / "attributions"
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
            checkpoint=output / "checkpoint",
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


def _conclude(session: Any, story: Story, events: Path, output: Path, console: Console) -> None:
    """Run the paper's second query and the ranking query in batch mode; print the conclusion."""
    import pyarrow.parquet as pq

    from ids.demo import incident, ranked, ranking_table, verdict

    table = spark.read(session, events)
    scripts = {"compositions": story.compositions(), "candidates": story.ranking()}
    with spark_bar(session):
        for name, script in scripts.items():
            answers = spark.sql(script, spark=session, server_events=table)
            spark.write(answers, output / f"{name}.parquet")
    candidates = pq.read_table(output / "candidates.parquet")
    calm, worst = incident(candidates)
    composed = pq.read_table(output / "compositions.parquet").slice(calm, worst - calm + 3)
    changes = ranked(candidates, calm, worst)
    for shown in (composed, ranking_table(changes)):
        console.print()
        console.print(emit_table(shown, console.width))
    console.print("\n" + verdict(candidates, calm, worst, changes))
    console.print(f"\nEvents and results are in {output}/, as Parquet.", style="dim")
