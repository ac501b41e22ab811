"""A run: measure what is not on record yet, step by step, write it down, and say how far it is."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import rich.progress as bars
from rich.console import Console

from evaluation import records
from evaluation.bench import Bench, Library
from evaluation.step import SUBJECTS, Chapter, Findings, Step
from ids.errors import SourceError

_COLUMNS = (
    bars.TextColumn("{task.description}", markup=False),
    bars.BarColumn(32),
    bars.TaskProgressColumn(),
    bars.TimeRemainingColumn(),
)


def measure(
    chapters: Sequence[Chapter],
    out: Path,
    library: Library,
    console: Console | None = None,
    bench: bool = False,
) -> None:
    """Every step of these chapters, or those that feed README's table, on record in ``out``.

    What is there already by the same size, version, machine and workloads is left alone: a run that
    was stopped goes on where it was, with the step it was in. The console has a line for each step
    and, on a terminal, a bar with the time left: steps weigh the seconds they are said to take.
    """
    kept, size, console = out / "records", library.size, console or Console(quiet=True)
    say = partial(console.print, markup=False, highlight=False, soft_wrap=True)
    for record in records.read_all(kept):
        if (other := record["fingerprint"]["size"]) != size.name:
            raise SourceError(f"{out} holds a {other} run; give a {size.name} one its own")
    fed = tuple(tomllib.loads(Path(__file__).with_name("benchmarks.toml").read_text())["steps"])
    steps = [
        replace(step, needs=tuple(map(library.named, step.needs)))
        for chapter in chapters
        for step in chapter.steps(size)
        if not bench or step.name.startswith(fed)
    ]
    needed = {name for step in steps for name in step.needs}
    wanted = [name for name in SUBJECTS if name in needed]
    library.prepare(wanted, lambda name: say(f"preparing {name} on Spark"))
    there = {record["step"]: record["fingerprint"] for record in records.read_all(kept)}
    todo = [step for step in steps if there.get(step.name) != _fingerprint(step, library)]
    left_alone = len(steps) - len(todo)
    if left_alone:
        say(f"{left_alone} of {len(steps)} steps are on record and left alone")
    with bars.Progress(
        *_COLUMNS,
        console=console,
        transient=True,
        disable=not console.is_terminal,
        speed_estimate_period=86_400,  # seconds: all that was done tells the machine's speed
    ) as told:
        told.add_task("", total=sum(step.seconds for step in todo))
        for number, step in enumerate(todo, left_alone + 1):
            how = _take(step, out, library, told)
            say(f"[{number}/{len(steps)}] {step.name}: {step.does}, {how}")


def _take(step: Step, out: Path, library: Library, told: bars.Progress) -> str:
    """One step, on record; returns how long it took, or why it was left out."""
    (bar,) = told.tasks
    before = bar.completed

    def said(done: float) -> None:
        told.update(bar.id, description=step.does, completed=before + done * step.seconds)

    said(0.0)
    missing = next(filter(None, map(library.missing, step.needs)), None)
    record: records.Record = {
        "step": step.name,
        "fingerprint": _fingerprint(step, library),
        "skipped": missing,
        "trips": [path.name for path in library.trips[:-1]] if "nyc" in step.needs else [],
        **records.circumstances(),
    }
    findings: Findings = {}
    scratch, start = out / f".{step.name}.{os.getpid()}.tmp", perf_counter()
    try:
        scratch.mkdir(parents=True)
        if not missing:
            findings = step.work(Bench(library.size, library, scratch, said))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    record["seconds"] = perf_counter() - start
    records.write(out / "records" / f"{step.name}.json", record, findings)
    said(1.0)
    return f"left out: {missing}" if missing else f"{record['seconds']:.1f} s"


def _fingerprint(step: Step, library: Library) -> dict[str, Any]:
    """What a record must agree in to stand for this step."""
    had = [name for name in step.needs if library.missing(name) is None]
    return {
        "size": library.size.name,
        "ids": version("ids-engine"),
        "cores": os.cpu_count(),
        "workloads": {name: library.seal(name) for name in had},
    }
