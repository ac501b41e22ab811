"""RQ3: memory by component and configuration, on paper and as a process really takes it."""

from evaluation.chapter import Chapter
from evaluation.rq3.figures import FIGURES
from evaluation.rq3.measuring import steps
from evaluation.rq3.showing import show

__all__ = ["CHAPTER"]

CHAPTER = Chapter(
    "rq3",
    "Memory accounting",
    "What does each component cost to keep, and how far is the process above what is needed?",
    steps,
    show,
    FIGURES,
)
