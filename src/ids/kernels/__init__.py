"""Compiled loops: arrays in, arrays out. Numba lives here and nowhere else.

Every loop has a slow, obvious twin in ``tests/oracles``.
"""
