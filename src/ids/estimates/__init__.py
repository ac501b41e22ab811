"""Estimates from samples: values without bias, and bounds on how far off they may be."""

from ids.estimates.estimating import estimate
from ids.estimates.paper import paper_bound
from ids.estimates.parts import Drawn, Estimates, Parts, Whole

__all__ = ["Drawn", "Estimates", "Parts", "Whole", "estimate", "paper_bound"]
