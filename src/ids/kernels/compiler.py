"""The compiler of the kernels with its disk cache, and the thread pool that runs them.

Numba's cache checks only the file in which a function is defined. A kernel that calls a function of
another module would therefore not be recompiled when that module changes. Here the name of the
cache directory is a hash of all source files that kernels depend on.

All kernels share one thread pool. They release the GIL, so that threads run in parallel.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

from ids.model import Scale

# mypy: disable-error-code="no-untyped-call,untyped-decorator,attr-defined"


@cache
def folder() -> Path:
    """Return the cache directory for the kernels compiled from this version of the source.

    It is next to the source if that is writable, otherwise in the user's cache directory. The
    environment variable IDS_CACHE_DIR overrides both.
    """
    here = Path(__file__).parent
    digest = hashlib.sha256(numba.__version__.encode())
    for source in [*sorted(here.glob("*.py")), Path(inspect.getfile(Scale))]:
        digest.update(source.read_bytes())
    chosen = os.environ.get("IDS_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    beside, users = here / "__pycache__", Path(home) / "ids"
    for parent in [Path(chosen)] if chosen else [beside, users]:
        path = parent / f"kernels-{digest.hexdigest()[:16]}"
        with suppress(OSError):
            path.mkdir(parents=True, exist_ok=True)
            if os.access(path, os.W_OK):
                return path
    return Path(tempfile.mkdtemp(prefix="ids-kernels-"))


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate like ``numba.njit(cache=True, nogil=True)``, but cache in ``folder()``.

    Numba reads its cache setting when it decorates, so the setting is changed only for that time.
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

# One per core by default. OMP_NUM_THREADS overrides it: Spark sets it to 1 in its workers.
_granted = os.environ.get("OMP_NUM_THREADS", "")
THREADS = int(_granted) if _granted.isdigit() and int(_granted) else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="ids-kernel")


def side_by_side(function: Callable[[_Work], _Done], work: Iterable[_Work]) -> Iterator[_Done]:
    """Run ``map(function, work)`` on all cores; keep the order and raise the first error.

    ``function`` must not call ``side_by_side`` itself: the shared pool would deadlock.
    """
    given = list(work)
    if len(given) == 1:
        return map(function, given)
    return _pool().map(function, given)


if hasattr(os, "register_at_fork"):
    # a forked child process does not inherit its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
