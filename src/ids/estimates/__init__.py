"""Estimates from samples: values without bias, and bounds on how far off they may be."""
