"""Progress bars for a long run: one for the step at work, one for all, with the time left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.progress_bar import ProgressBar
from rich.text import Text

if TYPE_CHECKING:
    from evaluation.step import Step

__all__ = ["Bars", "Pace", "bars"]

_NEARLY = 0.97  # where the bar of a step that takes longer than was thought waits


class Pace:
    """How much of a run is done and how long the rest will take, by the clock.

    Steps weigh the seconds they are said to take; the steps that are done tell how much faster or
    slower this machine is. Within a step time itself moves on, unless the step says more.
    """

    def __init__(self, planned: float, clock: Callable[[], float] = monotonic) -> None:
        self.planned = planned
        self._clock = clock
        self._done = 0.0  # seconds as planned
        self._spent = 0.0  # seconds as they were
        self._step: float | None = None
        self._since = 0.0
        self._said = 0.0

    def begin(self, seconds: float) -> None:
        """A step that is said to take so long."""
        self._step, self._since, self._said = seconds, self._clock(), 0.0

    def say(self, done: float) -> None:
        """The step says how much of it is done."""
        self._said = max(self._said, min(1.0, done))

    def end(self, counts: bool = True) -> None:
        """The step is done; one that was left out says nothing of the machine's speed."""
        if self._step is None:
            return
        took = self._clock() - self._since
        self._spent += took if counts else self._step * self._factor
        self._done += self._step
        self._step = None

    @property
    def of_step(self) -> float:
        """How much of the step at work is done, from 0 to 1."""
        if self._step is None:
            return 0.0
        expected = max(self._step * self._factor, 1e-9)
        return max(self._said, min(_NEARLY, (self._clock() - self._since) / expected))

    @property
    def of_all(self) -> float:
        """How much of the run is done, from 0 to 1."""
        if not self.planned:
            return 1.0
        return (self._done + (self._step or 0.0) * self.of_step) / self.planned

    @property
    def left(self) -> float:
        """Seconds until the end."""
        return max(0.0, self.planned * (1.0 - self.of_all)) * self._factor

    @property
    def _factor(self) -> float:
        return self._spent / self._done if self._done else 1.0


@contextmanager
def bars() -> Iterator[Bars]:
    """Bars on stderr while it is a terminal, and a line for each step either way."""
    console = Console(file=sys.stderr, highlight=False)
    told = Bars(console)
    columns = (
        TextColumn("{task.description}", markup=False),
        _Bar(told),
        _Left(told),
    )
    watched = console.is_terminal  # elsewhere even an empty display would leave a blank line
    with Progress(*columns, console=console, transient=True, disable=not watched) as live:
        told.live = live
        yield told


class Bars:
    """Told how far a run is; draws it."""

    def __init__(self, console: Console) -> None:
        self.live: Progress | None = None
        self.pace = Pace(0.0)
        self._console = console
        self._number, self._steps = 0, 0

    def planned(self, steps: Sequence[tuple[Step, bool]]) -> None:
        """Set out what there is to do."""
        there = sum(known for _, known in steps)
        if there:
            self._line(f"{there} of {len(steps)} steps are on record and left alone")
        self.pace = Pace(sum(step.seconds for step, known in steps if not known))
        self._number, self._steps = there, len(steps)
        self._show("all", "all steps")

    def preparing(self, workload: str) -> None:
        """A Spark job makes a workload."""
        self._line(f"preparing {workload} on Spark")

    def begun(self, step: Step) -> None:
        """The step's own bar."""
        self._number += 1
        self.pace.begin(step.seconds)
        self._show("step", step.does)

    def advanced(self, done: float) -> None:
        """The step says how far it is."""
        self.pace.say(done)

    def ended(self, step: Step, seconds: float, skipped: str | None) -> None:
        """A line that stays."""
        self.pace.end(counts=skipped is None)
        if self.live is not None:
            for task in [t for t in self.live.tasks if t.fields["kind"] == "step"]:
                self.live.remove_task(task.id)
        how = f"left out: {skipped}" if skipped else f"{seconds:.1f} s"
        self._line(f"[{self._number}/{self._steps}] {step.name}: {step.does}, {how}")

    def _show(self, kind: str, text: str) -> None:
        if self.live is not None:
            self.live.add_task(text, total=1.0, kind=kind)

    def _line(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)


class _Bar(BarColumn):
    """Moves by the clock, whoever asks for it to be drawn."""

    def __init__(self, told: Bars) -> None:
        super().__init__(bar_width=32)
        self._told = told

    def render(self, task: Task) -> ProgressBar:
        pace = self._told.pace
        task.completed = pace.of_step if task.fields["kind"] == "step" else pace.of_all
        return super().render(task)


class _Left(ProgressColumn):
    """``62 %  4:10 left``, the time for the run alone."""

    def __init__(self, told: Bars) -> None:
        super().__init__()
        self._told = told

    def render(self, task: Task) -> Text:
        pace = self._told.pace
        if task.fields["kind"] == "step":
            return Text(f"{100 * pace.of_step:3.0f} %")
        minutes, seconds = divmod(round(pace.left), 60)
        return Text(f"{100 * pace.of_all:3.0f} %  {minutes}:{seconds:02} left")
