"""The fan-out of atoms: how far K predicates divide a window, and what that costs."""

from ids.reproduce.beyond.fanout.figures import FIGURES
from ids.reproduce.beyond.fanout.measuring import steps
from ids.reproduce.beyond.fanout.showing import show

__all__ = ["FIGURES", "show", "steps"]
