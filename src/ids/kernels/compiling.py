"""How kernels are compiled: once, then read from disk, never from a stale file.

Numba's own cache looks only at the file a function stands in, so a kernel that calls another
module's function would outlive a change there. Here the cache folder is named after the content of
every file that kernels are made of.
"""

# mypy: disable-error-code="no-untyped-call,untyped-decorator,attr-defined"
from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba

__all__ = ["compiled", "folder"]


@cache
def folder() -> Path:
    """Where compiled kernels of exactly this source are kept.

    Beside the source where that can be written to, else under the user's cache; the environment
    variable IDS_CACHE_DIR overrides both.
    """
    here = Path(__file__).parent
    digest = hashlib.sha256(numba.__version__.encode())
    for source in [*sorted(here.glob("*.py")), here.parent / "model" / "scale.py"]:
        digest.update(source.read_bytes())
    chosen = os.environ.get("IDS_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    beside, users = here / "__pycache__", Path(home) / "ids"
    for place in [Path(chosen)] if chosen else [beside, users]:
        path = place / f"kernels-{digest.hexdigest()[:16]}"
        if _writable(path):
            return path
    return Path(tempfile.mkdtemp(prefix="ids-kernels-"))


def _writable(path: Path) -> bool:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(path, os.W_OK)


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``numba.njit(cache=True, nogil=True)`` with our folder as the cache.

    Numba fixes the folder when it decorates, so its setting is ours for that moment only.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(folder())
        try:
            dispatcher: Callable[..., Any] = numba.njit(cache=True, nogil=True, **options)(function)
        finally:
            numba.config.CACHE_DIR = before
        return dispatcher

    return decorate
