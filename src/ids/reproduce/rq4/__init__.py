"""RQ4, sampling: how far off an estimate is, whether its bound holds, and what a sample costs."""

from ids.reproduce.chapter import Chapter, Section, Tables
from ids.reproduce.rq4.comparing import comparisons
from ids.reproduce.rq4.measuring import steps
from ids.reproduce.rq4.panels import FIGURES
from ids.reproduce.rq4.remarks import remarks
from ids.reproduce.rq4.tabulating import tabulated

__all__ = ["CHAPTER"]


def _show(tables: Tables) -> Section:
    return Section(remarks(tables), comparisons(tables), tabulated(tables))


CHAPTER = Chapter(
    "rq4",
    "Approximation quality and bound validity",
    "How far off is an attribution estimated from a sample, does its bound hold, and what does it "
    "cost to keep a sample while the window slides?",
    steps,
    _show,
    FIGURES,
)
