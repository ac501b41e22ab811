"""RQ4, sampling: how far off an estimate is, whether its bound holds, and what a sample costs."""

from ids.reproduce.chapter import Chapter
from ids.reproduce.rq4.figures import FIGURES
from ids.reproduce.rq4.measuring import steps
from ids.reproduce.rq4.showing import show

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
