"""RQ5: what adaptive promotion saves, what it costs, and what a provisional start misses."""

from evaluation.chapter import Chapter
from evaluation.rq5.figures import FIGURES
from evaluation.rq5.measuring import steps
from evaluation.rq5.showing import show

__all__ = ["CHAPTER"]

CHAPTER = Chapter(
    "rq5",
    "Adaptive promotion",
    "How many tuples does a trace of ad hoc questions touch when those that keep coming are "
    "registered, and what does registering them cost?",
    steps,
    show,
    FIGURES,
)
