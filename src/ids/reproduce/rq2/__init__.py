"""RQ2: incremental throughput and attribution latency."""

from ids.reproduce.chapter import Chapter
from ids.reproduce.rq2 import algorithm1, alternatives, latency, on_spark, throughput
from ids.reproduce.rq2.figures import FIGURES
from ids.reproduce.rq2.showing import show
from ids.reproduce.size import Size
from ids.reproduce.step import Step

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
