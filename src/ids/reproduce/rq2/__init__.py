"""RQ2: incremental throughput and attribution latency."""

from ids.reproduce.chapter import Chapter
from ids.reproduce.rq2 import alternatives, latency, literally, on_spark, throughput
from ids.reproduce.rq2.figures import FIGURES
from ids.reproduce.rq2.showing import show
from ids.reproduce.size import Size
from ids.reproduce.step import Step

__all__ = ["CHAPTER"]


def _steps(size: Size) -> list[Step]:
    rooms = (throughput, literally, alternatives, on_spark, latency)
    return [step for room in rooms for step in room.steps(size)]


CHAPTER = Chapter(
    key="rq2",
    title="Incremental throughput and attribution latency",
    question="How much does maintaining summaries gain over scanning every window, as slides and "
    "predicates grow, and what does an answer cost?",
    steps=_steps,
    show=show,
    figures=FIGURES,
)
