"""Places: paths of this machine, and URIs of the file systems that Spark reaches."""

from __future__ import annotations

import re
from pathlib import Path

from ids.errors import SourceError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")  # one letter is a drive
_LOCAL = re.compile(r"file:(//(localhost)?)?(?=/)", re.IGNORECASE)


def is_remote(place: object) -> bool:
    """Whether a text names a place on another file system than this machine's own.

    >>> is_remote("s3a://bucket/out"), is_remote("file:/tmp/out"), is_remote("out:1/")
    (True, False, False)
    """
    found = _SCHEME.match(place) if isinstance(place, str) else None
    return found is not None and found[1].lower() != "file"


def local_path(place: str | Path) -> Path:
    """The path of a place of this machine: ``~/out``, ``file:/tmp/out``; others are refused.

    As in Spark, nothing in it is decoded: ``file:/tmp/a%20b`` has a percent sign in its name.
    """
    if is_remote(place):
        raise SourceError(f"{place} is reached through Spark; use ids.spark, or a local path")
    return Path(_LOCAL.sub("", str(place), count=1)).expanduser()
