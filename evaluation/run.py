"""A run: measure what is not on record yet, step by step, write it down, and say how far it is."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

import rich.progress as bars
from rich.console import Console, RenderableType

from evaluation import records
from evaluation.bench import Bench, Library
from evaluation.step import SUBJECTS, Chapter, Step
from ids.errors import SourceError

_NEARLY = 0.97  # where the bar of a step that takes longer than was thought waits


class Progress(bars.Progress):
    """A line for each step, and on a terminal two bars: the step's and the run's, with time left.

    Steps weigh the seconds they are said to take; the steps that are done tell how much faster or
    slower this machine is. Within a step time itself moves on, unless the step says more.
    """

    def __init__(self, on: Console | None = None, clock: Callable[[], float] = monotonic) -> None:
        on = on or Console(quiet=True)
        columns = (
            bars.TextColumn("{task.description}", markup=False),
            bars.BarColumn(32),
            bars.TextColumn("{task.percentage:3.0f} %  {task.fields[left]}"),
        )
        super().__init__(*columns, console=on, transient=True, disable=not on.is_terminal)
        self._clock = clock
        self._planned = self._done = 0.0  # seconds as planned
        self._spent = 0.0  # seconds as they were
        self._step = self._since = self._said = 0.0
        self._number = self._steps = 0

    def planned(self, steps: Sequence[Step], there: int) -> None:
        """What there is to do, and how many steps are on record already."""
        self._number, self._steps = there, there + len(steps)
        if there:
            self.say(f"{there} of {self._steps} steps are on record and left alone")
        self._planned = sum(step.seconds for step in steps)
        self.add_task("all steps", total=1.0, left="")

    def begun(self, step: Step) -> None:
        """A step begins."""
        self._number += 1
        self._step, self._since, self._said = step.seconds, self._clock(), 0.0
        self.add_task(step.does, total=1.0, left="")

    def advanced(self, done: float) -> None:
        """So much of the step is done, from 0 to 1."""
        self._said = max(self._said, min(1.0, done))

    def ended(self, step: Step, seconds: float, skipped: str | None = None) -> None:
        """The step is on record; one that was left out says nothing of the machine's speed."""
        self._spent += self._step * self._factor if skipped else self._clock() - self._since
        self._done += self._step
        self._step = 0.0
        self.remove_task(self.tasks[-1].id)
        how = f"left out: {skipped}" if skipped else f"{seconds:.1f} s"
        self.say(f"[{self._number}/{self._steps}] {step.name}: {step.does}, {how}")

    def say(self, text: str) -> None:
        """A line that stays."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    @property
    def of_step(self) -> float:
        """How much of the step at work is done, from 0 to 1."""
        expected = max(self._step * self._factor, 1e-9)
        passed = (self._clock() - self._since) / expected if self._step else 0.0
        return max(self._said, min(_NEARLY, passed))

    @property
    def of_all(self) -> float:
        """How much of the run is done, from 0 to 1."""
        return (self._done + self._step * self.of_step) / self._planned if self._planned else 1.0

    @property
    def left(self) -> float:
        """Seconds until the end."""
        return max(0.0, self._planned * (1.0 - self.of_all)) * self._factor

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bars as they are now: they move by the clock, whoever asks for them to be drawn."""
        for at, task in enumerate(self.tasks):
            minutes, seconds = divmod(round(self.left), 60)
            task.completed = self.of_step if at else self.of_all
            task.fields["left"] = "" if at else f"{minutes}:{seconds:02} left"
        yield from super().get_renderables()

    @property
    def _factor(self) -> float:
        return self._spent / self._done if self._done else 1.0


def measure(
    chapters: Sequence[Chapter],
    out: Path,
    library: Library,
    progress: Progress | None = None,
    bench: bool = False,
) -> None:
    """Every step of these chapters, or those that feed README's table, on record in ``out``.

    What is there already by the same size, version, machine and workloads is left alone: a run that
    was stopped goes on where it was, with the step it was in.
    """
    told, kept, size = progress or Progress(), out / "records", library.size
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
    library.prepare(wanted, lambda name: told.say(f"preparing {name} on Spark"))
    fingerprints = {step.name: _fingerprint(step, library) for step in steps}
    there = {record["step"]: record["fingerprint"] for record in records.read_all(kept)}
    todo = [step for step in steps if there.get(step.name) != fingerprints[step.name]]
    told.planned(todo, len(steps) - len(todo))
    for step in todo:
        told.begun(step)
        missing = next(filter(None, map(library.missing, step.needs)), None)
        facts: dict[str, Any] = {
            "step": step.name,
            "fingerprint": fingerprints[step.name],
            "skipped": missing,
            "trips": [path.name for path in library.trips[:-1]] if "nyc" in step.needs else [],
            **records.circumstances(),
        }
        scratch, start = out / f".{step.name}.{os.getpid()}.tmp", perf_counter()
        try:
            scratch.mkdir(parents=True)
            findings = {} if missing else step.work(Bench(size, library, scratch, told.advanced))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        seconds = perf_counter() - start
        records.write(kept / f"{step.name}.json", {**facts, "seconds": seconds}, findings)
        told.ended(step, seconds, missing)


def _fingerprint(step: Step, library: Library) -> dict[str, Any]:
    """What a record must agree in to stand for this step."""
    had = [name for name in step.needs if library.missing(name) is None]
    return {
        "size": library.size.name,
        "ids": version("ids-engine"),
        "cores": os.cpu_count(),
        "workloads": {name: library.seal(name) for name in had},
    }
