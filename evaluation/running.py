"""reproduce: prepare, measure what is not on record yet, and write it all down."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from evaluation import records
from evaluation.bench import Bench
from evaluation.library import Library
from evaluation.machine import describe
from evaluation.size import Size
from evaluation.step import Findings, Step
from evaluation.subject import SUBJECTS
from ids.errors import SourceError

__all__ = ["Progress", "Silence", "measure"]


class Progress(Protocol):
    """Who is told how far a run is; the command line draws bars."""

    def planned(self, steps: Sequence[tuple[Step, bool]]) -> None:
        """All that will be done; True for what is on record already."""

    def preparing(self, workload: str) -> None:
        """A workload is being made."""

    def begun(self, step: Step) -> None:
        """A step begins."""

    def advanced(self, done: float) -> None:
        """So much of the step is done, from 0 to 1."""

    def ended(self, step: Step, seconds: float, skipped: str | None) -> None:
        """The step is on record, or was left out for this reason."""


class Silence:
    """Nobody is told."""

    def planned(self, steps: Sequence[tuple[Step, bool]]) -> None: ...
    def preparing(self, workload: str) -> None: ...
    def begun(self, step: Step) -> None: ...
    def advanced(self, done: float) -> None: ...
    def ended(self, step: Step, seconds: float, skipped: str | None) -> None: ...


def measure(
    chapters: Sequence[Any], out: Path, library: Library, progress: Progress | None = None
) -> None:
    """Every step of these chapters on record in ``out``.

    What is there already by the same size, version, machine and workloads is left alone: a run that
    was stopped goes on where it was, with the step it was in.
    """
    told = progress or Silence()
    _refuse_another_size(out, library.size)
    steps = [
        replace(step, needs=tuple(map(library.named, step.needs)))
        for chapter in chapters
        for step in chapter.steps(library.size)
    ]
    needed = {name for step in steps for name in step.needs}
    library.prepare((name for name in SUBJECTS if name in needed), told.preparing)
    todo = [(step, _on_record(_path(out, step), _fingerprint(step, library))) for step in steps]
    told.planned(todo)
    for step, there in todo:
        if not there:
            _take(step, out, library, told)


def _take(step: Step, out: Path, library: Library, told: Progress) -> None:
    told.begun(step)
    missing = next(filter(None, map(library.missing, step.needs)), None)
    facts: dict[str, Any] = {
        "step": step.name,
        "fingerprint": _fingerprint(step, library),
        "skipped": missing,
        "trips": library.months if "nyc" in step.needs else [],
        **describe(),
    }
    begun = perf_counter()
    findings = {} if missing else _worked(step, out, library, told)
    seconds = perf_counter() - begun
    records.write(_path(out, step), {**facts, "seconds": seconds}, findings)
    told.ended(step, seconds, missing)


def _worked(step: Step, out: Path, library: Library, told: Progress) -> Findings:
    scratch = out / f".{step.name}.{os.getpid()}.tmp"
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        scratch.mkdir(parents=True)
        return step.work(Bench(library.size, library, scratch, told.advanced))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _fingerprint(step: Step, library: Library) -> dict[str, Any]:
    """What a record must agree in to stand for this step."""
    return {
        "size": library.size.name,
        "ids": version("ids-engine"),
        "cores": os.cpu_count(),
        "workloads": {
            name: library.seal(name) for name in step.needs if library.missing(name) is None
        },
    }


def _on_record(path: Path, fingerprint: dict[str, Any]) -> bool:
    record = records.read(path)
    return record is not None and record.get("fingerprint") == fingerprint


def _refuse_another_size(out: Path, size: Size) -> None:
    """A report is of one size: before anything is done."""
    for record in records.read_all(out / "records"):
        there = record["fingerprint"]["size"]
        if there != size.name:
            raise SourceError(f"{out} holds a {there} run; give a {size.name} one its own")


def _path(out: Path, step: Step) -> Path:
    return out / "records" / f"{step.name}.json"
