"""``python -m evaluation``: the paper's evaluation, run again on this machine."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from evaluation.workloads.command import ZonesOption, workload
from ids.cli.arguments import DebugOption
from ids.cli.terminal import note, reporting

app = typer.Typer(
    help="The paper's evaluation, and the benchmarks.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(workload)

_QUESTIONS = typer.Argument(metavar="[rq1 … rq6 beyond]", help="Research questions; all without.")
_OUT = typer.Option(metavar="DIR", help="Where records, figures and report go.")
_QUICK = typer.Option("--quick", help="Small sizes: minutes on two cores.")
_BENCH = typer.Option("--bench", help="Only what README's table of benchmarks is made of.")
_TAXI = typer.Option(metavar="PATH", help="Trips for nyc: a TLC Parquet file, or a directory.")
_WORKLOADS = typer.Option(metavar="DIR", help="Where workloads are kept; in --out without.")
_RUN = typer.Argument(metavar="[DIR]", help="The output directory of a full run.")


@app.command()
def run(
    questions: Annotated[list[str] | None, _QUESTIONS] = None,
    out: Annotated[Path, _OUT] = Path("evaluation-report"),
    quick: Annotated[bool, _QUICK] = False,
    bench: Annotated[bool, _BENCH] = False,
    taxi: Annotated[list[Path] | None, _TAXI] = None,
    zones: ZonesOption = None,
    workloads: Annotated[Path | None, _WORKLOADS] = None,
    debug: DebugOption = False,
) -> None:
    """Run the paper's evaluation again, and write a report that puts its numbers beside ours.

    What is on record in DIR is not measured again: a run that was stopped goes on where it was.
    """
    with reporting(debug):
        from evaluation.step import FULL, QUICK, chapters

        asked = chapters(questions or ())  # before what may not be installed is imported

        from evaluation.bench import Bench
        from evaluation.records import make_directory
        from evaluation.report import benchmarks, compose, write
        from evaluation.run import measure
        from evaluation.workloads import ingredients

        trips = ingredients(taxi or [], zones)
        if not trips:
            note("no taxi trips (--taxi): nyc is left out, auction stands in for it where it can")
        make_directory(out)  # before half an hour is spent on what goes into it
        files = trips[:1] + trips[-1:] if quick else trips  # one month, and the zone table
        place = Bench(QUICK if quick else FULL, workloads or out / "workloads", files)
        try:
            measure(asked, out, place, Console(stderr=True), bench)
        except KeyboardInterrupt:
            note(f"what is done is kept in {out}; the same command goes on from there")
            raise
        edition = compose(chapters(), out / "records")
        for claim in edition.failed:
            note(f"not borne out by this run: {claim}")
        if bench:
            typer.echo(benchmarks(edition.tables))
        typer.echo(write(edition, out))


@app.command()
def publish(directory: Annotated[Path | None, _RUN] = None, debug: DebugOption = False) -> None:
    """Take over a full run into docs/evaluation, and write docs/evaluation.md and README's table.

    Without DIR everything is written again from the records in docs/evaluation.
    """
    with reporting(debug):
        from evaluation import report
        from evaluation.step import chapters

        home = directory or report.HERE.parent / "docs" / "evaluation"
        typer.echo(report.publish(home / "records", chapters()))
