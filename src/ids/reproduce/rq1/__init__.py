"""RQ1, correctness: the engine beside enumeration, recomputation and exact arithmetic."""

from __future__ import annotations

from functools import partial

from ids.reproduce.chapter import Chapter
from ids.reproduce.rq1.drift import STREAMS, drift_along
from ids.reproduce.rq1.emits import emit_and_compare
from ids.reproduce.rq1.figures import FIGURES
from ids.reproduce.rq1.regression import enumerate_and_compare
from ids.reproduce.rq1.showing import show
from ids.reproduce.rq1.slides import slide_and_compare
from ids.reproduce.size import Size
from ids.reproduce.step import Step
from ids.reproduce.subject import SUBJECTS

__all__ = ["CHAPTER"]


def _steps(size: Size) -> list[Step]:
    enumeration = Step(
        "rq1-enumeration",
        "every coalition of windows up to N = 12",
        size.of(quick=3.5, full=16.0),
        enumerate_and_compare,
    )
    slides = [
        Step(
            f"rq1-slides-{name}",
            f"deltas against recomputation, {name}",
            size.of(quick=3.0, full=14.0),
            partial(slide_and_compare, subject=subject),
            (name,),
        )
        for name, subject in SUBJECTS.items()
    ]
    emits = [
        Step(
            f"rq1-emits-{name}",
            f"an emit at every slide, {name}",
            size.of(quick=0.8, full=10.0),
            partial(emit_and_compare, subject=subject),
            (name,),
        )
        for name, subject in SUBJECTS.items()
    ]
    drift = [
        Step(
            f"rq1-drift-{stream}",
            f"running sums over a long stream, {stream}",
            size.of(quick=0.3, full=5.0),
            partial(drift_along, stream=stream),
        )
        for stream in STREAMS
    ]
    return [enumeration, *slides, *emits, *drift]


CHAPTER = Chapter(
    "rq1",
    "Correctness",
    "Does the engine keep the closed forms' exactness over long runs of deltas, atoms that are "
    "divided, and a restart in the middle?",
    _steps,
    show,
    FIGURES,
)
