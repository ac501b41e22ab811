"""RQ4, sampling: how far off an estimate is, whether its bound holds, and what a sample costs."""

from evaluation.chapter import Chapter
from evaluation.rq4.figures import FIGURES
from evaluation.rq4.measuring import steps
from evaluation.rq4.showing import show

__all__ = ["CHAPTER"]

CHAPTER = Chapter(
    "rq4",
    "Approximation quality and bound validity",
    "How far off is an attribution estimated from a sample, does its bound hold, and what does it "
    "cost to keep a sample while the window slides?",
    steps,
    show,
    FIGURES,
)
