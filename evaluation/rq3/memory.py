"""What an engine may keep: the bytes it needs on paper, and those that a process of its own takes.

On paper are the rows and sums that the design keeps, not the room to spare that arrays are given so
that a row need not move at every slide: that, and whatever is needed for a moment only, is what a
measurement shows on top.
"""

from __future__ import annotations

import ctypes
import gc
import tracemalloc
from contextlib import suppress
from dataclasses import dataclass
from math import log
from pathlib import Path

import numpy as np
import pyarrow as pa

import ids
from evaluation.bench import registered
from evaluation.step import Row
from ids.model.scale import Scale

TEXTS = {
    "region": ["AF-South", "AP-East", "AP-South", "EU-North", "EU-West", "SA-East", "US-East",
               "US-West"],
    "tier": ["free", "standard", "premium"],
    "endpoint": ["/browse", "/cart", "/checkout", "/login", "/search"],
}  # fmt: skip
PREDICATES = {
    "west": "region = 'EU-West'",
    "east": "region = 'US-East'",
    "premium": "tier = 'premium'",
    "incident": "region = 'EU-West' AND tier = 'premium'",
}
ATOMS = 6  # three answers of the region times two of the tier decide the fourth
DIGITS = 2  # a latency of 53 bits, within seventeen octaves: two digits of 35

_WORD, _CODE, _FLAG, _PLACE = 8, 4, 1, 2
# A raw row: codes of three texts and a double, each with a flag that says it is not NULL.
_COLUMNS = len(TEXTS) * (_CODE + _FLAG) + _WORD + _FLAG

_WARM = 20_000  # rows of a window that needs every kernel: a sample is first swept at 4,096
_STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class Configuration:
    """What is kept: the rows inside, an index on three of their columns, a sample beside them."""

    label: str
    retains: bool = True
    indexed: bool = True
    sampling: ids.Sampling | None = None

    def engine(self, rows: int) -> ids.Engine:
        """An engine with the four predicates, before the first row."""
        window = ids.CountWindow(rows) if self.retains else ids.Changelog()
        index = tuple(TEXTS) if self.indexed else ()
        made = ids.Engine(
            window, "latency", index=index, retain=self.retains, sampling=self.sampling
        )
        return registered(made, PREDICATES)

    def analytic(self, window: int) -> dict[str, float]:
        """Bytes by component, for a window of so many rows.

        summaries  of the window, of each predicate and of each atom: a count, a sum for each digit
                   and two words for each product of two digits, 1 + 2 + 2 · 3 = 9 words, and one
                   that counts every row for COUNT(*), NULL or not. An atom has its signature
                   besides, a byte for each predicate, and three codes in the tables that lead to it
        retained   a row's atom, the measure's digits, whether it plays, and the raw columns; for a
                   sample, which needs to know which rows left, its number and its stratum besides
        index      two bytes a row and column, and for each block a key and a place of every
                   distinct value. Blocks have 65,536 rows; about sixteen smaller ones, of 1,024 at
                   least, stand behind them
        sample     rows that may yet be drawn, and up to twice as many that wait for the next sweep,
                   which comes once 4,096 are held; each with its columns, its stratum, number and
                   priority, the measure and whether it plays
        """
        summary = (Scale(0, DIGITS, 2).words + Scale(0, 0, 0).words) * _WORD
        atoms = ATOMS * (len(PREDICATES) + 3 * _CODE)
        row = _CODE + DIGITS * _WORD + _FLAG + _COLUMNS + (_WORD + _CODE if self.sampling else 0)
        blocks = window // 65_536 + min(16, window // 1_024)
        directory = blocks * sum(map(len, TEXTS.values())) * (_WORD + 4)
        candidate = _COLUMNS + _CODE + 3 * _WORD + _FLAG
        return {
            "summaries": (1 + len(PREDICATES) + ATOMS) * summary + atoms,
            "retained": window * row if self.retains else 0,
            "index": len(TEXTS) * _PLACE * window + directory if self.indexed else 0,
            "sample": _candidates(self.sampling, window) * candidate if self.sampling else 0,
        }


CONFIGURATIONS = {
    "summaries": Configuration("summaries only", retains=False, indexed=False),
    "retained": Configuration("+ retained window", indexed=False),
    "index": Configuration("+ index"),
    "sample": Configuration("+ sample", sampling=ids.Sampling(1024)),
    "strata": Configuration("+ strata", sampling=ids.Sampling(128, strata=("region",))),
}


def _candidates(sampling: ids.Sampling, window: int) -> float:
    strata = len(TEXTS["region"]) if sampling.strata else 1
    drawn = strata * survivors(sampling.size + 2 * sampling.taken_whole, window / strata)
    return min(window, max(4_096, 3 * (drawn + 2 * survivors(sampling.taken_whole, window))))


def survivors(size: int, window: float) -> float:
    """Of ``window`` rows, how many are among the ``size`` highest of themselves and all newer ones.

    The newest ``size`` are, and the j-th newest with probability size / j: their sum is about
    size · (1 + ln(window / size)).
    """
    return window if window <= size else size * (1 + log(window / size))


def measured(key: str, window: int) -> Row:
    """Bytes on paper, of this process, of its heap, and what the engine says it holds.

    Two passes over the same stream: the first watches the process, the second every allocation.
    What the imports and the compiled kernels need is there before either begins.
    """
    one = CONFIGURATIONS[key]
    needed = one.analytic(window)
    parts = {f"analytic_{name}": count for name, count in needed.items()}
    run(one, _WARM)
    resident = _resident(one, window) if _STATUS.exists() else {}  # nowhere but on Linux
    facts: Row = {"configuration": key, "label": one.label, "window": window}
    paper: Row = {"predicates": len(PREDICATES), **parts, "analytic": sum(needed.values())}
    return {**facts, **paper, **resident, **_traced(one, window)}


def run(configuration: Configuration, window: int) -> ids.Engine:
    """Fill the window batch by batch, then slide it once over its own length.

    A batch is small beside the window, so that it is not what is measured. Summaries alone keep no
    row: what leaves is made again, as an upstream would send it.
    """
    engine, rows = configuration.engine(window), max(1, min(1_000, window // 100))
    inside = window // rows
    for number in range(2 * inside):
        if configuration.retains:
            engine.ingest(make_batch(number, rows))
        else:
            gone = make_batch(number - inside, rows) if number >= inside else None
            engine.apply(inserts=make_batch(number, rows), deletes=gone)
    return engine


def make_batch(number: int, rows: int) -> pa.Table:
    """The stream's batch of that number, the same whenever it is made."""
    rng = np.random.default_rng((20260302, number))
    latency = np.rint(rng.lognormal(np.log(40.0), 0.5, rows) * 1e6) / 1e6
    columns = {}
    for name, words in TEXTS.items():
        drawn = pa.array(rng.integers(0, len(words), rows, dtype=np.int32))
        columns[name] = pa.DictionaryArray.from_arrays(drawn, pa.array(words))
    return pa.table({**columns, "latency": latency})


def _resident(configuration: Configuration, window: int) -> dict[str, int]:
    """By how much the process grew at its largest, and the four parts that make it up.

    resident_state   what goes with the engine
    resident_free    blocks that malloc keeps for later though nothing is in them
    resident_moment  what was needed for a moment only: the peak above the end
    resident_rest    what is left when all of this is gone
    """
    before = _trimmed()
    with suppress(OSError):  # forget the peak so far
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    engine = run(configuration, window)
    end = _status("VmRSS")
    peak = max(end, _status("VmHWM"))
    kept = _trimmed()
    del engine
    left = _trimmed()
    return {
        "resident_before": before,
        "resident_peak": max(0, peak - before),
        "resident_state": kept - left,
        "resident_free": end - kept,
        "resident_moment": peak - end,
        "resident_rest": left - before,
    }


def _trimmed() -> int:
    """Bytes of the process once Arrow and glibc's malloc gave back what is free."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
    return _status("VmRSS")


def _status(field: str) -> int:
    lines = _STATUS.read_text(encoding="ascii").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


def _traced(configuration: Configuration, window: int) -> dict[str, int]:
    """The heap: Python's and NumPy's allocations, and Arrow's, which are its own.

    At its peak, the batches on their way included, and at the end, when they are gone.
    """
    tracemalloc.start()
    engine = run(configuration, window)
    if (engine.rows, engine.atoms) != (window, ATOMS):
        raise AssertionError(f"{engine.rows} rows and {engine.atoms} atoms, not {window}, {ATOMS}")
    gc.collect()
    end, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    held, arrow = engine.memory(), pa.default_memory_pool()
    return {
        "heap_peak": peak + (arrow.max_memory() or 0),
        "heap_end": end + arrow.bytes_allocated(),
        "held_summaries": held.summaries + held.atoms,
        "held_retained": held.retained,
        "held_index": held.index,
        "held_sample": held.sampler,
        "held": held.total,
        "atoms": engine.atoms,
    }
