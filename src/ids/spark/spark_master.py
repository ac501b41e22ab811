"""Spark masters (``local[4]``, ``spark://host:7077``, ``sc://host``), and that of a session."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from ids.errors import SetupError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

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


def context_of(session: SparkSession) -> SparkContext | None:
    """The session's context; None over Spark Connect, which tells nothing of its own."""
    from pyspark.errors import PySparkException

    try:
        return session.sparkContext
    except PySparkException:
        return None


def local_context(session: SparkSession) -> SparkContext | None:
    """The context of a session with a local master; None where tasks may run elsewhere."""
    context = context_of(session)
    return context if context is not None and is_local(str(context.master)) else None
