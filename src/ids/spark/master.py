"""Spark masters as they are written: ``local[4]``, ``spark://host:7077``, ``sc://host``."""

from __future__ import annotations

import re
from difflib import get_close_matches

from ids.errors import SetupError

__all__ = ["check_master", "is_local"]

_LOCAL = r"local(\[\s*(\*|[1-9]\d*)\s*(,\s*\d+\s*)?\])?"
_CLUSTER = r"local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"
_KNOWN = re.compile(
    rf"{_LOCAL}|{_CLUSTER}|yarn|spark://[^\s,:/]+:\d+(,[^\s,:/]+:\d+)*|k8s://\S+|sc://[^\s/;]+\S*"
)
_SCHEMES = ("spark", "k8s", "sc")
_FORMS = "use local[4], local[*], spark://host:7077, yarn, k8s://host:port or sc://host"


def check_master(master: str) -> None:
    """Refuse a master that Spark cannot read.

    A scheme of its own may belong to a cluster manager that was added to Spark, so it passes.

    >>> check_master("local[2]")
    >>> check_master("lcal[2]")
    Traceback (most recent call last):
    ids.errors.SetupError: no Spark master: 'lcal[2]'; use local[4], local[*], ...
    """
    scheme, _, rest = master.partition("://")
    misspelt = get_close_matches(scheme, _SCHEMES, n=1)
    foreign = rest and not misspelt
    if not foreign and not _KNOWN.fullmatch(master):
        raise SetupError(f"no Spark master: {master!r}; {_FORMS}")


def is_local(master: str) -> bool:
    """Whether a master runs its tasks on this machine, in the process of the driver."""
    return master == "local" or master.startswith("local[")
