"""The fan-out of atoms: how far K predicates divide a window, and what that costs."""

from evaluation.beyond.fanout.figures import FIGURES
from evaluation.beyond.fanout.measuring import steps
from evaluation.beyond.fanout.showing import show

__all__ = ["FIGURES", "show", "steps"]
