"""``python -m evaluation workload``: the paper's workloads, made once, checked by their hashes."""

from collections.abc import Sized
from pathlib import Path
from typing import Annotated

import typer

from evaluation.workloads import WORKLOADS, ingredients, manifest, recipe
from evaluation.workloads.manifest import MANIFEST, Manifest, differences, standing
from ids.cli.arguments import DebugOption, MasterOption, check_master
from ids.cli.terminal import note, reporting
from ids.errors import SourceError

workload = typer.Typer(name="workload", help="Make and check the paper's workloads.")
ZonesOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE.csv", help="nyc: the zone table, if not beside the trips."),
]


@workload.command("list")
def show() -> None:
    """Say which workloads there are."""
    for name, (rows, summary) in WORKLOADS.items():
        typer.echo(f"{name:<10} {'' if rows is None else f'{rows:,}':>9}  {summary}")


@workload.command()
def prepare(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which one: see workload list.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The directory to make.")],
    seed: Annotated[int | None, typer.Option(metavar="N", help="The seed of all draws.")] = None,
    rows: Annotated[int | None, typer.Option(metavar="N", min=1, help="How many.")] = None,
    trips: Annotated[
        list[Path] | None,
        typer.Option("--from", metavar="PATH", help="nyc: TLC Parquet files. May be repeated."),
    ] = None,
    zones: ZonesOption = None,
    master: MasterOption = None,
    debug: DebugOption = False,
) -> None:
    """Make a workload with a Spark job; one that stands there already is left alone."""
    check_master(master)
    with reporting(debug):
        files = ingredients(trips or [], zones)
        wanted = recipe(name, seed, rows, files)
        if found := standing(wanted, out):
            note(f"{out} is already there and whole; it was left alone")
        else:
            from ids.spark import local_session, translated

            with translated():
                found = manifest.prepare(local_session(master), wanted, out, files)
        _say(found, out)


@workload.command()
def verify(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A prepared workload.")],
    debug: DebugOption = False,
) -> None:
    """Check every file of a workload against its manifest."""
    with reporting(debug):
        if found := differences(directory):
            typer.echo("\n".join(found))
            many = _files(found)
            raise SourceError(f"{directory} differs from its manifest in {many}; prepare it again")
        _say(Manifest.read(directory), directory)


def _say(found: Manifest, directory: Path) -> None:
    rows = f"{found.recipe['name']}: {found.rows:,} rows in {_files(found.files)}"
    typer.echo(f"{rows}, every hash as in {directory / MANIFEST}")


def _files(some: Sized) -> str:
    return "1 file" if len(some) == 1 else f"{len(some)} files"
