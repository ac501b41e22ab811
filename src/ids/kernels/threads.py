"""One pool of threads for all kernels: they release the interpreter, so threads do help."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

__all__ = ["THREADS", "side_by_side"]

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
