"""RQ1, correctness: the engine beside enumeration, recomputation and exact arithmetic."""

from evaluation.chapter import Chapter
from evaluation.rq1 import drift, emits, regression, slides
from evaluation.rq1.figures import FIGURES
from evaluation.rq1.showing import show
from evaluation.size import Size
from evaluation.step import Step

__all__ = ["CHAPTER"]


def _steps(size: Size) -> list[Step]:
    parts = (regression, slides, emits, drift)
    return [step for part in parts for step in part.steps(size)]


CHAPTER = Chapter(
    "rq1",
    "Correctness",
    "Does the engine keep the closed forms' exactness over long runs of deltas, atoms that are "
    "divided, and a restart in the middle?",
    _steps,
    show,
    FIGURES,
)
