"""How kernels are compiled: once, then read from disk, never from a stale file.

Numba's own cache looks only at the file a function stands in, so a kernel that calls another
module's function would outlive a change there. Here the cache folder is named after the content of
every file that kernels are made of.

One pool of threads for all kernels: they release the interpreter, so threads do help.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

# mypy: disable-error-code="no-untyped-call,untyped-decorator,attr-defined"


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
        with suppress(OSError):
            path.mkdir(parents=True, exist_ok=True)
            if os.access(path, os.W_OK):
                return path
    return Path(tempfile.mkdtemp(prefix="ids-kernels-"))


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


_Work = TypeVar("_Work")
_Done = TypeVar("_Done")

# As many as there are cores, or as few as the environment grants: Spark gives a worker one.
_granted = os.environ.get("OMP_NUM_THREADS", "")
THREADS = int(_granted) if _granted.isdigit() and int(_granted) else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="ids-kernel")


def side_by_side(function: Callable[[_Work], _Done], work: Iterable[_Work]) -> Iterator[_Done]:
    """``map(function, work)`` on every core; results in order, the first error raised.

    ``function`` must not call this again: the pool is one, and would wait for itself.
    """
    given = list(work)
    if len(given) == 1:
        return map(function, given)
    return _pool().map(function, given)


if hasattr(os, "register_at_fork"):
    # a forked child has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
