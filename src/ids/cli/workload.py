"""``ids workload``: the paper's workloads, made once and checked by their hashes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ids.cli.arguments import DebugOption, ZonesOption, check_master
from ids.cli.reporting import note, reporting
from ids.errors import SourceError

if TYPE_CHECKING:
    from ids.workloads.catalogue import Recipe
    from ids.workloads.manifest import Manifest

__all__ = ["prepare", "verify", "workload", "workloads"]

workload = typer.Typer(
    name="workload",
    help="Make the paper's workloads, and check that they are as they were made.",
    no_args_is_help=True,
)


@workload.command("list")
def workloads() -> None:
    """Say which workloads there are."""
    from ids.workloads.catalogue import WORKLOADS

    for one in WORKLOADS.values():
        rows = "" if one.rows is None else f"{one.rows:,}"
        typer.echo(f"{one.name:<10} {rows:>9}  {one.summary}")


@workload.command()
def prepare(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which one: see ids workload list.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The directory to make; it must be new.")
    ],
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="The seed of all that is drawn.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option("--rows", metavar="N", min=1, help="How many rows to generate.")
    ] = None,
    trips: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="nyc: a TLC Parquet file, yellow or green, or a directory of them. May be given "
            "several times.",
        ),
    ] = None,
    zones: ZonesOption = None,
    master: Annotated[
        str | None,
        typer.Option("--master", metavar="URL", help="The Spark master; this machine by default."),
    ] = None,
    debug: DebugOption = False,
) -> None:
    """Make a workload with a Spark job; one that stands there already is left alone."""
    check_master(master)
    with reporting(debug):
        from ids.workloads.catalogue import ingredients, recipe
        from ids.workloads.standing import standing

        files = ingredients(trips or [], zones)
        wanted = recipe(name, seed, rows, files)
        found = standing(wanted, out)
        if found is not None:
            note(f"{out} is already there and whole; it was left alone")
        typer.echo(_summary(found or _made(wanted, out, files, master), out))


def _made(wanted: Recipe, out: Path, files: tuple[Path, ...], master: str | None) -> Manifest:
    from ids.spark.failures import translated
    from ids.spark.session import local_session
    from ids.workloads.preparing import prepare as make

    with translated():
        spark = local_session(master)
        try:
            return make(spark, wanted, out, files)
        finally:
            spark.stop()


@workload.command()
def verify(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A prepared workload.")],
    debug: DebugOption = False,
) -> None:
    """Check every file of a workload against its manifest."""
    with reporting(debug):
        from ids.workloads.manifest import Manifest, differences

        manifest = Manifest.read(directory)
        found = differences(directory)
        for line in found:
            typer.echo(line)
        if found:
            files = "1 file" if len(found) == 1 else f"{len(found)} files"
            raise SourceError(f"{directory} differs from its manifest in {files}; prepare it again")
        typer.echo(_summary(manifest, directory))


def _summary(manifest: Manifest, directory: Path) -> str:
    files = len(manifest.events)
    return (
        f"{manifest.recipe['name']}: {manifest.rows:,} rows in {files} "
        f"{'file' if files == 1 else 'files'}, every hash as in {directory / 'manifest.json'}"
    )
