"""IDS and stateless estimators on one window: the paper's Table 7, and the libraries beside it."""

from evaluation.rq6.contest.figures import FIGURES
from evaluation.rq6.contest.measuring import steps
from evaluation.rq6.contest.showing import show

__all__ = ["FIGURES", "show", "steps"]
