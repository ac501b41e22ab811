"""The nouns of IDS: expressions, windows, queries, attributions, tables."""
