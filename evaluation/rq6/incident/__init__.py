"""The planted incident: how soon its predicate leads the candidates (the paper's Figure 5)."""

from evaluation.rq6.incident.figures import FIGURES
from evaluation.rq6.incident.measuring import steps
from evaluation.rq6.incident.showing import show

__all__ = ["FIGURES", "show", "steps"]
