"""Canonical predicates: conditions that hold on the same rows have one key, however written."""

from ids.predicates.canonical.key import canonical_key

__all__ = ["canonical_key"]
