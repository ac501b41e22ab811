"""RQ3: memory by component and configuration, on paper and as a process really takes it."""

from ids.reproduce.chapter import Chapter
from ids.reproduce.rq3.figures import FIGURES
from ids.reproduce.rq3.measuring import steps
from ids.reproduce.rq3.showing import show

__all__ = ["CHAPTER"]

CHAPTER = Chapter(
    "rq3",
    "Memory accounting",
    "What does each component cost to keep, and how far is the process above what is needed?",
    steps,
    show,
    FIGURES,
)
