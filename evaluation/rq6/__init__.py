"""RQ6: stateless Shapley estimators beside IDS, a planted incident, and ad hoc mechanisms."""

from evaluation.chapter import Chapter, Section, Tables
from evaluation.rq6 import contest, incident, mechanisms
from evaluation.size import Size
from evaluation.step import Step

__all__ = ["CHAPTER"]

_PARTS = (contest, incident, mechanisms)


def _steps(size: Size) -> list[Step]:
    return [step for part in _PARTS for step in part.steps(size)]


def _show(tables: Tables) -> Section:
    return Section.joined([part.show(tables) for part in _PARTS])


CHAPTER = Chapter(
    "rq6",
    "Stateless Shapley and attribution for debugging",
    "What does an attribution of one window cost beside estimators that start from nothing, and "
    "how soon does it point to a planted incident?",
    _steps,
    _show,
    tuple(figure for part in _PARTS for figure in part.FIGURES),
)
