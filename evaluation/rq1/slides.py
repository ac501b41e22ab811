"""Delta equivalence: an engine kept by deltas beside engines filled with the window's rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa

import ids
from evaluation.bench import Bench
from evaluation.processes import said_by
from evaluation.recount import CLOSED, Recount
from evaluation.rq1.accuracy import Worst
from evaluation.rq1.enumeration import GAMES
from evaluation.rq1.stream import (
    ATOMS,
    COMBINATIONS,
    NAMES,
    WINDOW,
    Answers,
    Watched,
    ask,
    watched,
)
from evaluation.size import Size
from evaluation.step import Findings, Row, Step
from evaluation.subject import SUBJECTS, Subject

__all__ = ["ASKED", "Seen", "batches", "gone_on", "slides_of", "steps"]

ASKED = (*NAMES, *COMBINATIONS)
_SIZES = (1, 1, 2, 5, 10, 50, 100, 200)


class Seen:
    """The worst of one game over the check points of a replay.

    questions  answers compared
    differing  answers of the maintained engine whose bits are not those of the filled one
    delta      the largest relative difference of the two
    worst      the largest errors against whole numbers (games with a closed form)
    residual   the largest |Σ over the atoms − aggregate|, relative to the aggregate
    probe      the same by the engine's own probe
    """

    def __init__(self) -> None:
        self.questions = self.differing = 0
        self.delta = self.residual = self.probe = 0.0
        self.worst = Worst()

    def equality(self, kept: float, filled: float) -> None:
        """One answer of both engines."""
        self.questions += 1
        self.differing += kept.hex() != filled.hex()
        self.delta = max(self.delta, _apart(kept, filled))

    def efficiency(self, engine: ids.Engine, game: str) -> None:
        """Σ over the atoms against ν(W) − ν(∅), and ν(∅) is 0."""
        whole = engine.aggregate(game) or 0.0
        attributed = math.fsum(engine.attribute(game, atom).value for atom in ATOMS)
        self.residual = max(self.residual, _apart(attributed, whole))
        self.probe = max(self.probe, _apart(whole + engine.residual(game), whole))

    def row(self) -> Row:
        """As findings; where nothing was held to whole numbers, nothing is said of it."""
        held = self.worst.cases > 0
        return {
            "questions": self.questions,
            "differing": self.differing,
            "delta": self.delta,
            "exact": self.worst.relative if held else None,
            "units": self.worst.units if held else None,
            "residual": self.residual,
            "probe": self.probe,
        }


def _apart(given: float, wanted: float) -> float:
    return abs(given - wanted) / (abs(wanted) or 1.0)


def slides_of(bench: Bench) -> int:
    """How many rows come, and how many go, after the window is full."""
    return bench.size.of(quick=5_000, full=300_000)


def steps(size: Size) -> list[Step]:
    """One for each workload."""
    does, about = "deltas against recomputation", size.of(quick=3.0, full=14.0)
    return [
        Step(f"rq1-slides-{name}", f"{does}, {name}", about, partial(_work, subject=one), (name,))
        for name, one in SUBJECTS.items()
    ]


def _work(bench: Bench, subject: Subject) -> Findings:
    """A workload's replay: check points all along, a checkpoint in the middle, the end."""
    slides = slides_of(bench)
    watch = watched(bench, subject, WINDOW + slides)
    truth = Recount(watch.rows[watch.value].to_numpy().astype(float), watch.holds)
    seen = {game: Seen() for game in GAMES}
    engine = watch.engine()
    engine.ingest(watch.rows.slice(0, WINDOW))
    kept = bench.scratch / "half.ids"
    step = slides // bench.size.of(quick=25, full=120)
    half, due, checks = 0, WINDOW, 0
    for first, last in batches(bench, slides):
        engine.ingest(watch.rows.slice(first, last - first))
        if last >= due or last == WINDOW + slides:
            _check(watch, engine, last, truth, seen)
            checks += 1
            due += step
            bench.said((last - WINDOW) / slides)
        if not half and last >= WINDOW + slides // 2:
            engine.checkpoint(kept)
            half = last
    ended = ask(engine, GAMES, ASKED)
    restored = gone_on(kept, watch.rows.slice(half), bench.scratch)
    facts: Row = {"workload": subject.workload, "slides": slides, "checks": checks}
    return {
        "rq1_deltas": [{**facts, "game": game, **each.row()} for game, each in seen.items()],
        "rq1_restored": [_survived(facts, half - WINDOW, ended, restored, engine)],
    }


def batches(bench: Bench, slides: int) -> Iterator[tuple[int, int]]:
    """From row to row: single rows, small batches and large ones, in a random order."""
    rng = bench.rng("rq1-batches")
    first, end = WINDOW, WINDOW + slides
    while first < end:
        last = min(first + int(rng.choice(_SIZES)), end)
        yield first, last
        first = last


def _check(
    watch: Watched, engine: ids.Engine, last: int, truth: Recount, seen: dict[str, Seen]
) -> None:
    first = last - WINDOW
    filled = watch.engine()
    filled.ingest(watch.rows.slice(first, WINDOW))
    wanted = ask(filled, GAMES, ASKED)
    for (game, predicate), value in ask(engine, GAMES, ASKED).items():
        seen[game].equality(value, wanted[game, predicate])
        if game in CLOSED:
            seen[game].worst.judge(value, truth, (game, predicate, first, last))
    for game in GAMES:
        seen[game].efficiency(engine, game)


def gone_on(checkpoint: Path, rows: pa.Table, scratch: Path) -> Answers:
    """The answers of an engine restored in a process of its own, after the remaining rows."""
    path = scratch / "remaining.arrow"
    with pa.ipc.new_file(path, rows.schema) as file:
        file.write_table(rows)
    answers = said_by("evaluation.rq1.restoring", checkpoint, path)
    return {(game, predicate): value for game, predicate, value in answers}


def _survived(facts: Row, half: int, ended: Answers, restored: Answers, engine: ids.Engine) -> Row:
    return {
        **facts,
        "restored_at": half,
        "answers": len(ended),
        "differing": sum(value.hex() != restored[key].hex() for key, value in ended.items()),
        "atoms": sum(engine.attribute("COUNT", atom).value > 0 for atom in ATOMS),
    }
