"""How far a run is: a bar for the step at work, one for all with the time left, a line a step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import monotonic

import rich.progress as bars
from rich.console import Console, RenderableType

from evaluation.step import Step

__all__ = ["Progress"]

_NEARLY = 0.97  # where the bar of a step that takes longer than was thought waits


class Progress(bars.Progress):
    """Told how far a run is; says so on a console, with bars where it is a terminal.

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
        self._step, self._since, self._said = 0.0, 0.0, 0.0
        self._number, self._steps = 0, 0

    def planned(self, steps: Sequence[tuple[Step, bool]]) -> None:
        """All that will be done; True for what is on record already."""
        self._number, self._steps = sum(there for _, there in steps), len(steps)
        if self._number:
            self._line(f"{self._number} of {self._steps} steps are on record and left alone")
        self._planned = sum(step.seconds for step, there in steps if not there)
        self.add_task("all steps", total=1.0, left="")

    def preparing(self, workload: str) -> None:
        """A workload is being made."""
        self._line(f"preparing {workload} on Spark")

    def begun(self, step: Step) -> None:
        """A step begins."""
        self._number += 1
        self._step, self._since, self._said = step.seconds, self._clock(), 0.0
        self.add_task(step.does, total=1.0, left="")

    def advanced(self, done: float) -> None:
        """So much of the step is done, from 0 to 1."""
        self._said = max(self._said, min(1.0, done))

    def ended(self, step: Step, seconds: float, skipped: str | None) -> None:
        """The step is on record, or was left out, which says nothing of the machine's speed."""
        took = self._clock() - self._since
        self._spent += self._step * self._factor if skipped else took
        self._done += self._step
        self._step = 0.0
        self.remove_task(self.tasks[-1].id)
        how = f"left out: {skipped}" if skipped else f"{seconds:.1f} s"
        self._line(f"[{self._number}/{self._steps}] {step.name}: {step.does}, {how}")

    @property
    def of_step(self) -> float:
        """How much of the step at work is done, from 0 to 1."""
        if not self._step:
            return 0.0
        expected = max(self._step * self._factor, 1e-9)
        return max(self._said, min(_NEARLY, (self._clock() - self._since) / expected))

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

    def _line(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)
