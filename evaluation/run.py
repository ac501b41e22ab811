"""A run: measure what is not on record yet, step by step, write it down, and say how far it is."""

import os
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.progress import Progress

from evaluation import records
from evaluation.bench import Bench
from evaluation.step import SUBJECTS, Chapter, Step
from evaluation.workloads.manifest import Manifest
from ids.errors import SourceError

_SPEED = 86_400  # seconds that tell how fast the machine is: all that were spent


def measure(
    chapters: Sequence[Chapter], out: Path, bench: Bench, console: Console, readme: bool = False
) -> None:
    """Every step of these chapters, or those that feed README's table, on record in ``out``.

    What is there already by the same size, version, machine and workloads is left alone. The
    console has a line for each step and, on a terminal, a bar with the time left.
    """
    size, say = bench.size, partial(console.print, markup=False, highlight=False, soft_wrap=True)
    there = {r["step"]: r["fingerprint"] for r in records.read_all(out / "records")}
    if other := next((one["size"] for one in there.values() if one["size"] != size.name), None):
        raise SourceError(f"{out} holds a {other} run; give a {size.name} one its own")
    fed = tuple(tomllib.loads(Path(__file__).with_name("benchmarks.toml").read_text())["steps"])
    steps = [
        replace(step, needs=tuple(bench.real.workload if n == "real" else n for n in step.needs))
        for chapter in chapters
        for step in chapter.steps(size)
        if not readme or step.name.startswith(fed)
    ]
    needed = {name for step in steps for name in step.needs}
    wanted = [name for name in SUBJECTS if name in needed]
    bench.prepare(wanted, lambda name: say(f"preparing {name} on Spark"))
    todo = [step for step in steps if there.get(step.name) != _fingerprint(step, bench)]
    left_alone = len(steps) - len(todo)
    if left_alone:
        say(f"{left_alone} of {len(steps)} steps are on record and left alone")
    shown = Progress(console=console, transient=True, speed_estimate_period=_SPEED)
    shown.disable = not console.is_terminal  # elsewhere even an empty display leaves a blank line
    with shown as told:
        told.add_task("", total=sum(step.seconds for step in todo))
        for number, step in enumerate(todo, left_alone + 1):
            how = _take(step, out, bench, told)
            say(f"[{number}/{len(steps)}] {step.name}: {step.does}, {how}")


def _take(step: Step, out: Path, bench: Bench, told: Progress) -> str:
    """One step, on record; returns how long it took, or why it was left out."""
    (bar,) = told.tasks
    before, start = bar.completed, perf_counter()

    def said(done: float) -> None:
        told.update(bar.id, description=step.does, completed=before + done * step.seconds)

    said(0.0)
    missing = next(filter(None, map(bench.missing, step.needs)), None)
    record: records.Record = {
        "step": step.name,
        "fingerprint": _fingerprint(step, bench),
        "skipped": missing,
        "trips": [path.name for path in bench.trips[:-1]] if "nyc" in step.needs else [],
        **records.circumstances(),
    }
    with TemporaryDirectory(prefix=".", dir=out, ignore_cleanup_errors=True) as scratch:
        own = replace(bench, scratch=Path(scratch), said=said)
        findings = {} if missing else step.work(own)
    record["seconds"] = perf_counter() - start
    records.write(out / "records" / f"{step.name}.json", record, findings)
    said(1.0)
    return f"left out: {missing}" if missing else f"{record['seconds']:.1f} s"


def _fingerprint(step: Step, bench: Bench) -> dict[str, Any]:
    """What a record must agree in to stand for this step."""
    read = [name for name in step.needs if bench.missing(name) is None]
    seals = {name: Manifest.read(bench.place(name)).sha256 for name in read}
    about = {"size": bench.size.name, "ids": version("ids-engine"), "cores": os.cpu_count()}
    return {**about, "workloads": seals}
