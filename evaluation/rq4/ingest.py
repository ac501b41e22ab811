"""What a sample costs while the window slides: the same stream to every kind of sampler.

*Lazy sweeps* and *eager domination* are bare compiled loops that keep the same sample, a row at a
time. The others take batches of raw rows as the engine does: ``WindowSample`` keeps candidates and
the extremes of y; chain-sample and priority-sample draw with replacement.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np
import numpy.typing as npt

from evaluation.baselines import eager
from ids.kernels.sampling import mix, slide_sample
from ids.model.sampling import Sampling
from ids.model.table import Table
from ids.model.window import CountWindow, TimeWindow
from ids.state.sample import WindowSample

__all__ = ["Work", "eagerly", "enter", "fed", "lazily", "refuse_another_sample"]

SEED = np.uint64(0)

Work = Callable[[], object]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def lazily(size: int, rows: int, window: int) -> Work:
    """Candidates swept now and then: the kernel, alone."""
    sequence, priority = _room(size, window)
    return lambda: slide_sample(SEED, rows, window, size, sequence, priority)


def eagerly(size: int, rows: int, window: int) -> Work:
    """Every arrival compared with every candidate: compiled and vectorised, too."""
    room = 64 * size
    arrays = np.empty(room, np.int64), np.empty(room, np.float64), np.empty(room, np.int32)
    return lambda: eager.slide(SEED, rows, window, size, *arrays)


def fed(
    table: Table,
    value: str,
    sampling: Sampling,
    window: CountWindow | TimeWindow,
    rows: int,
    batch: int,
) -> Work:
    """``WindowSample`` over so many rows of a stream that repeats the table."""

    def work() -> WindowSample:
        kinds = {name: column.kind for name, column in table.columns.items()}
        sample = WindowSample(kinds, 1, sampling, window)
        for first in range(0, rows, batch):
            enter(sample, table, value, first, batch)
        return sample

    return work


def enter(sample: WindowSample, table: Table, value: str, first: int, rows: int) -> None:
    """A batch as the engine gives it, and what it pushes out.

    A time window's clock ticks once a row, so that both kinds of window hold the same rows.
    """
    start = first % table.rows
    batch = table.take(slice(start, start + rows))
    y = batch.columns[value].values.astype(np.float64, copy=False)
    sequence = np.arange(first, first + batch.rows)
    timed = isinstance(sample.window, TimeWindow)
    sample.enter(batch, [y], [None], sequence if timed else None, sequence)
    window = _rows_of(sample.window)
    oldest, before = max(0, first + rows - window), max(0, first - window)
    left = np.zeros(oldest - before, np.int32)
    sample.expire((oldest if timed else 0, oldest), left)


def refuse_another_sample(size: int, rows: int, window: int) -> None:
    """Stop unless lazy sweeps, eager domination and a plain sort of the window agree on rows."""
    sequence, priority = _room(size, window)
    held = slide_sample(SEED, rows, window, size, sequence, priority)
    lazy = _drawn(sequence[:held], priority[:held], size, rows - window)
    sequence, priority = np.empty(64 * size, np.int64), np.empty(64 * size)
    held = eager.slide(SEED, rows, window, size, sequence, priority, np.empty(64 * size, np.int32))
    eagerly_drawn = _drawn(sequence[:held], priority[:held], size, rows - window)
    inside = np.arange(rows)
    all_of_them = np.empty(rows)
    mix(SEED, inside, all_of_them)
    obvious = _drawn(inside, all_of_them, size, rows - window)
    if not (lazy == eagerly_drawn == obvious):
        raise AssertionError(f"samplers of {size} rows disagree")


def _drawn(sequence: Integers, priority: Floats, size: int, oldest: int) -> set[int]:
    """The rows of highest priority among those inside."""
    inside = sequence >= oldest
    sequence, priority = sequence[inside], priority[inside]
    return set(sequence[np.argsort(-priority)[:size]].tolist())


def _room(size: int, window: int) -> tuple[Integers, Floats]:
    room = max(4096, int(3 * size * (1 + log(window / size))))
    return np.empty(room, np.int64), np.empty(room, np.float64)


def _rows_of(window: CountWindow | TimeWindow) -> int:
    return window.size if isinstance(window, CountWindow) else window.duration
