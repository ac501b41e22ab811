"""Measurements: one question a file, ours and others' side by side in one run."""
