"""Stateless Shapley estimators beside IDS, a planted incident, and ad hoc mechanisms."""

from ids.reproduce.chapter import Chapter, Section, Tables
from ids.reproduce.rq6 import contest, contest_shown, incident, incident_shown, mechanisms
from ids.reproduce.rq6.figures import FIGURES
from ids.reproduce.size import Size
from ids.reproduce.step import Step

__all__ = ["CHAPTER"]


def _steps(size: Size) -> list[Step]:
    return [*contest.steps(size), *incident.steps(size), *mechanisms.steps(size)]


def _show(tables: Tables) -> Section:
    parts = [part.show(tables) for part in (contest_shown, incident_shown, mechanisms)]
    return Section(
        [remark for part in parts for remark in part.remarks],
        [comparison for part in parts for comparison in part.comparisons],
        [table for part in parts for table in part.tables],
    )


CHAPTER = Chapter(
    "rq6",
    "Stateless Shapley and attribution for debugging",
    "What does an attribution of one window cost beside estimators that start from nothing, and "
    "how soon does it point to a planted incident?",
    _steps,
    _show,
    (*FIGURES, *mechanisms.FIGURES),
)
