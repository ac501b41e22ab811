"""The queries that are measured, which stand in ``queries.toml`` by name."""

import tomllib
from pathlib import Path
from string import Template

_QUERIES = tomllib.loads(Path(__file__).with_name("queries.toml").read_text(encoding="utf-8"))


def query(name: str, **given: object) -> str:
    """The query of this name, with what is given in place of ``$key``."""
    return Template(_QUERIES[name]).substitute(given)
