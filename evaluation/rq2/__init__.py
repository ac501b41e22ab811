"""RQ2: incremental throughput and attribution latency."""

from evaluation.chapter import Chapter
from evaluation.rq2 import algorithm1, alternatives, latency, on_spark, throughput
from evaluation.rq2.figures import FIGURES
from evaluation.rq2.showing import show
from evaluation.size import Size
from evaluation.step import Step

__all__ = ["CHAPTER"]


def _steps(size: Size) -> list[Step]:
    parts = (throughput, algorithm1, alternatives, on_spark, latency)
    return [step for part in parts for step in part.steps(size)]


CHAPTER = Chapter(
    key="rq2",
    title="Incremental throughput and attribution latency",
    question="How much does maintaining summaries gain over scanning every window, as slides and "
    "predicates grow, and what does an answer cost?",
    steps=_steps,
    show=show,
    figures=FIGURES,
)
