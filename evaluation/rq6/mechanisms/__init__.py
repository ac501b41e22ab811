"""Ad hoc mechanisms, measured: the paper's Table 8, beside answers that look at no row at all."""

from evaluation.rq6.mechanisms.figures import FIGURES
from evaluation.rq6.mechanisms.measuring import steps
from evaluation.rq6.mechanisms.showing import show

__all__ = ["FIGURES", "show", "steps"]
