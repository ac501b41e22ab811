"""A process of its own that keeps one window and says, as JSON, how much memory that took.

Two passes over the same stream: the first watches the process, the second every allocation. What
the imports and the compiled kernels need is there before either begins.
"""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from pathlib import Path

import pyarrow as pa

from evaluation.rq3.configurations import CONFIGURATIONS, Configuration, run

__all__ = ["main"]

_WARM = 2_000  # rows of the window that compiles every kernel
_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


def main(key: str, window: int) -> dict[str, int]:
    """Bytes: the peak of the process, of its heap, and what the engine says it holds."""
    configuration = CONFIGURATIONS[key]
    run(configuration, _WARM, _nothing)
    gc.collect()
    resident = _resident(configuration, window)
    gc.collect()
    return {"resident": resident, **_traced(configuration, window)}


def _resident(configuration: Configuration, window: int) -> int:
    """By how much the process grew at its largest."""
    before = _forget_peak()
    run(configuration, window, _nothing)
    return max(0, _peak() - before)


def _traced(configuration: Configuration, window: int) -> dict[str, int]:
    """The heap's peak: Python's and NumPy's allocations, and Arrow's, which are its own."""
    pool = pa.default_memory_pool()
    arrow = [0]
    before = pool.bytes_allocated()

    def watch() -> None:
        arrow[0] = max(arrow[0], pool.bytes_allocated() - before)

    tracemalloc.start()
    engine = run(configuration, window, watch)
    heap = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    held = engine.memory()
    return {
        "heap": heap + arrow[0],
        "summaries": held.summaries + held.atoms,
        "retained": held.retained,
        "index": held.index,
        "sampler": held.sampler,
        "atoms": engine.atoms,
        "rows": engine.rows,
    }


def _nothing() -> None:
    """Nobody watches."""


def _forget_peak() -> int:
    """Bytes of the process now, from which the peak counts.

    Where the system cannot forget a peak (macOS), growth counts from the highest so far: what the
    warm-up took and gave back is then not counted again, so growth may read too little.
    """
    try:
        _RESET.write_text("5", encoding="ascii")
        return _status("VmRSS:")
    except OSError:
        return _peak()


def _peak() -> int:
    if _STATUS.exists():
        return _status("VmHWM:")
    import resource

    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return highest if sys.platform == "darwin" else 1024 * highest


def _status(field: str) -> int:
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    raise OSError(f"{_STATUS} says nothing of {field}")


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]))))
