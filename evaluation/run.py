"""A run: measure what is not on record yet, step by step, and write it down."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

from evaluation import records
from evaluation.bench import Bench, Library
from evaluation.progress import Progress
from evaluation.step import Findings, Step
from evaluation.subject import SUBJECTS
from ids.errors import SourceError

__all__ = ["measure"]


def measure(
    chapters: Sequence[Any],
    out: Path,
    library: Library,
    progress: Progress | None = None,
    bench: bool = False,
) -> None:
    """Every step of these chapters, or those that feed README's table, on record in ``out``.

    What is there already by the same size, version, machine and workloads is left alone: a run that
    was stopped goes on where it was, with the step it was in.
    """
    told = progress or Progress()
    for record in records.read_all(out / "records"):
        if (there := record["fingerprint"]["size"]) != library.size.name:
            raise SourceError(f"{out} holds a {there} run; give a {library.size.name} one its own")
    fed = tuple(tomllib.loads(Path(__file__).with_name("benchmarks.toml").read_text())["steps"])
    steps = [
        replace(step, needs=tuple(map(library.named, step.needs)))
        for chapter in chapters
        for step in chapter.steps(library.size)
        if not bench or step.name.startswith(fed)
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
        "trips": [path.name for path in library.trips[:-1]] if "nyc" in step.needs else [],
        **records.circumstances(),
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
    had = [name for name in step.needs if library.missing(name) is None]
    return {
        "size": library.size.name,
        "ids": version("ids-engine"),
        "cores": os.cpu_count(),
        "workloads": {name: library.seal(name) for name in had},
    }


def _on_record(path: Path, fingerprint: dict[str, Any]) -> bool:
    record = records.read(path)
    return record is not None and record["fingerprint"] == fingerprint


def _path(out: Path, step: Step) -> Path:
    return out / "records" / f"{step.name}.json"
