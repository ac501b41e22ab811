"""What an engine may keep: the bytes it needs on paper, and those that a process of its own takes.

A measurement shows on top the room that arrays have to spare, and what is needed for a moment only.
"""

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
from ids.model import Scale

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
        kept = ids.CountWindow(rows) if self.retains else ids.Changelog()
        index = tuple(TEXTS) if self.indexed else ()
        made = ids.Engine(kept, "latency", index=index, retain=self.retains, sampling=self.sampling)
        return registered(made, PREDICATES)

    def analytic(self, window: int) -> dict[str, float]:
        """Bytes by component, for a window of so many rows.

        summaries  of the window, each predicate and each atom: 1 + 2 + 2 · 3 words of count, digits
                   and their products, and one for COUNT(*); of an atom its signature, a byte for
                   each predicate, and three codes in the tables that lead to it
        retained   a row's atom, digits, whether it plays, and raw columns; for a sample, which must
                   know which rows left, its number and stratum besides
        index      two bytes a row and column, and for each block a key and a place of every
                   distinct value; behind blocks of 65,536 rows stand about sixteen smaller ones
        sample     rows that may yet be drawn, and up to twice as many that wait for the next sweep;
                   each with its columns, stratum, number, priority, measure and whether it plays
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
    """Of ``window`` rows, how many are among the ``size`` highest of themselves and newer ones."""
    # the newest ``size`` are, and the j-th newest with probability size / j
    return window if window <= size else size * (1 + log(window / size))


def measured(key: str, window: int) -> Row:
    """Bytes on paper, of this process, of its heap in a second pass, and as the engine says."""
    one = CONFIGURATIONS[key]
    needed = one.analytic(window)
    parts = {f"analytic_{name}": count for name, count in needed.items()}
    run(one, _WARM)  # what imports and compiled kernels need is there before either begins
    resident = _resident(one, window) if _STATUS.exists() else {}  # nowhere but on Linux
    facts: Row = {"configuration": key, "label": one.label, "window": window}
    paper: Row = {"predicates": len(PREDICATES), **parts, "analytic": sum(needed.values())}
    return {**facts, **paper, **resident, **_traced(one, window)}


def run(configuration: Configuration, window: int) -> ids.Engine:
    """Fill the window batch by batch, then slide it once over its own length."""
    # a batch is small beside the window, so that it is not what is measured
    engine, rows = configuration.engine(window), max(1, min(1_000, window // 100))
    inside = window // rows
    for number in range(2 * inside):
        if configuration.retains:
            engine.ingest(make_batch(number, rows))
        else:  # no row is kept: what leaves is made again, as an upstream would send it
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
        "resident_before": before, "resident_peak": max(0, peak - before),
        "resident_state": kept - left, "resident_free": end - kept,
        "resident_moment": peak - end, "resident_rest": left - before,
    }  # fmt: skip


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
    """The heap, Arrow's own included: at its peak, and at the end, when all batches are gone."""
    tracemalloc.start()
    engine = run(configuration, window)
    if (engine.rows, engine.atoms) != (window, ATOMS):
        raise AssertionError(f"{engine.rows} rows and {engine.atoms} atoms, not {window}, {ATOMS}")
    gc.collect()
    end, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    held, arrow = engine.memory(), pa.default_memory_pool()
    return {
        "heap_peak": peak + (arrow.max_memory() or 0), "heap_end": end + arrow.bytes_allocated(),
        "held_summaries": held.summaries + held.atoms, "held_retained": held.retained,
        "held_index": held.index, "held_sample": held.sampler,
        "held": held.total, "atoms": engine.atoms,
    }  # fmt: skip
