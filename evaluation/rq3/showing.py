"""RQ3 in words, tables and comparisons, from its rows alone."""

from __future__ import annotations

from typing import Any

from evaluation.chapter import Comparison, Section, Table, Tables
from evaluation.formatting import bytes_, number, percent, times
from evaluation.rq3 import paper

__all__ = ["show"]

_MIB = float(1 << 20)
_FULL = "sample"
_INDEXED = "index"  # the paper's "full" one: its window and index alone come to its 4.6 MiB
_DIGITS = (
    "sums are exact: a summary is ten words of 64 bits, where three doubles would round, "
    "and an atom has tables that find it without a test of every predicate"
)
_ROW = (
    "beside its raw columns, which take a flag for NULL each, a row keeps its measure as exact "
    "digits, so that expiry subtracts the very bits that were added"
)
_LIKE = "retained window and index, N = 10⁵"
_MORE = "retained window, index and a sample, N = 10⁵"

Found = dict[str, Any]


def show(tables: Tables) -> Section:
    """What was found."""
    rows = tables["rq3_memory"]
    if not rows:
        return Section()
    return Section(_remarks(rows), _comparisons(rows), [_components(rows), _peaks(rows)])


def _at(rows: list[Found], configuration: str, window: int) -> Found | None:
    for row in rows:
        if (row["configuration"], row["window"]) == (configuration, window):
            return row
    return None


def _spread(rows: list[Found]) -> float:
    """The largest summaries over the smallest, over all windows and configurations."""
    held = [row["held_summaries"] for row in rows]
    return float(max(held) / min(held))


def _remarks(rows: list[Found]) -> list[str]:
    largest = max(row["window"] for row in rows)
    alone, full = (_at(rows, key, largest) for key in ("summaries", _FULL))
    assert alone is not None and full is not None
    rest = [row for row in rows if row["window"] == largest and row["configuration"] != "summaries"]
    worst = max(row["heap_peak"] / row["analytic"] for row in rest)
    process = max(row["resident_peak"] / row["analytic"] for row in rest)
    small = min(row["window"] for row in rows)
    smallest = _at(rows, _FULL, small)
    assert smallest is not None
    return [
        f"Summaries and atoms of {alone['predicates']} predicates ({alone['atoms']} live atoms) "
        f"need {bytes_(alone['analytic_summaries'])} whatever N; the engine holds "
        f"{bytes_(alone['held_summaries'])} at N = {largest:,}, and over all windows and "
        f"configurations the largest is {times(_spread(rows))} the smallest.",
        f"Fed by a changelog, a process that keeps summaries only grew by "
        f"{bytes_(alone['resident_peak'])} at N = {largest:,}; its heap peaked at "
        f"{bytes_(alone['heap_peak'])}, the batches on their way included, and holds no row.",
        f"At N = {largest:,} the full configuration (retained window, index on three columns, "
        f"sample) needs {bytes_(full['analytic'])}, of which the retained window is "
        f"{percent(full['analytic_retained'] / full['analytic'])}, the index "
        f"{percent(full['analytic_index'] / full['analytic'])} and summaries "
        f"{percent(full['analytic_summaries'] / full['analytic'])}.",
        f"The measured peak at N = {largest:,} is at most {times(worst)} what is needed on the "
        f"heap and {times(process)} as the process grows, over the configurations that keep rows. "
        f"The engine holds {times(full['held'] / full['analytic'])} what the full configuration "
        f"needs: a quarter of room to spare, so that a row moves at most four times in its life, "
        f"and {times(full['held_index'] / full['analytic_index'])} the index, as a block of rows "
        f"goes only when all of them have left.",
        f"At N = {small:,} constants outweigh rows: the full configuration needs "
        f"{bytes_(smallest['analytic'])} and its heap peaks at {bytes_(smallest['heap_peak'])}, "
        f"most of it room for the sample's candidates and the engine's own objects.",
    ]


def _comparisons(rows: list[Found]) -> list[Comparison]:
    some = rows[0]["analytic_summaries"]
    full, sampled, indexed, alone = (
        _at(rows, key, window)
        for key, window in (
            (_INDEXED, 10**5), (_FULL, 10**5), (_INDEXED, 10**6), ("summaries", 10**5)
        )
    )  # fmt: skip

    place = paper.PLACE
    return [
        Comparison(
            "summaries and atoms at K = 4", "B", paper.SUMMARIES, some, "lower", place, _DIGITS
        ),
        Comparison(
            "summaries and atoms held, largest over smallest, all N", "", 1.0, _spread(rows),
            "same", place,
        ),
        Comparison(
            "summaries in retained window and index, N = 10⁵", "%", paper.SHARE_FULL,
            _share(full), "lower", place, _DIGITS,
        ),
        Comparison(
            "summaries in retained window and index, N = 10⁶", "%", paper.SHARE_INDEXED,
            _share(indexed), "lower", place, _DIGITS,
        ),
        Comparison(
            "retained window, N = 10⁶", "MiB", paper.RETAINED,
            _part(indexed, "analytic_retained"), "lower", place, _ROW,
        ),
        Comparison(
            "index, N = 10⁶", "MiB", paper.INDEX, _part(indexed, "analytic_index"), "lower", place
        ),
        Comparison(
            "summaries only, heap peak, N = 10⁵", "MiB", paper.SUMMARIES_HEAP,
            _part(alone, "heap_peak"), "lower", place,
            "the batches on their way and the engine's own objects; no row is kept",
        ),
        Comparison(
            f"analytic, {_LIKE} (which make up the paper's)", "MiB", paper.ANALYTIC,
            _part(full, "analytic"), "lower", place, _ROW,
        ),
        Comparison(
            f"heap peak, {_LIKE}", "MiB", paper.PEAK, _part(full, "heap_peak"), "lower", place
        ),
        Comparison(
            f"heap peak over analytic, {_LIKE}", "", paper.PEAK / paper.ANALYTIC,
            _part(full, "heap_peak", full["analytic"] if full else 1.0), "lower", place,
        ),
        Comparison(
            f"analytic, {_MORE}", "MiB", paper.ANALYTIC, _part(sampled, "analytic"), "lower", place,
            f"{_ROW}; and the sample",
        ),
        Comparison(
            f"heap peak, {_MORE}", "MiB", paper.PEAK, _part(sampled, "heap_peak"), "lower", place
        ),
    ]  # fmt: skip


def _part(row: Found | None, name: str, unit: float = _MIB) -> float | None:
    return None if row is None else row[name] / unit


def _share(row: Found | None) -> float | None:
    return None if row is None else 100 * row["analytic_summaries"] / row["analytic"]


def _components(rows: list[Found]) -> Table:
    parts = ("summaries", "retained", "index", "sample")
    return Table(
        "Memory by component, analytic",
        ["N", "configuration", "summaries and atoms", "retained", "index", "sample", "all"],
        [
            [
                f"{row['window']:,}",
                row["label"],
                *(bytes_(row[f"analytic_{part}"]) for part in parts),
                bytes_(row["analytic"]),
            ]
            for row in _ordered(rows)
        ],
        "Each configuration adds to the one above it; strata stand in place of the plain sample.",
    )


def _peaks(rows: list[Found]) -> Table:
    return Table(
        "Needed, held, and the measured peak",
        [
            "N",
            "configuration",
            "analytic",
            "held, room to spare included",
            "heap peak",
            "over analytic",
            "growth of the process",
            "over analytic",
        ],
        [
            [
                f"{row['window']:,}",
                row["label"],
                bytes_(row["analytic"]),
                bytes_(row["held"]),
                bytes_(row["heap_peak"]),
                _over(row, "heap_peak"),
                bytes_(row["resident_peak"]),
                _over(row, "resident_peak"),
            ]
            for row in _ordered(rows)
        ],
        "Peaks over filling the window and sliding it once over its own length, in a process of "
        "its own, after imports and a small engine that compiles everything. The heap is what "
        "Python, NumPy and Arrow allocate; the process, its resident set, which need not grow for "
        "what fits into memory that the warm-up gave back. What the heap's peak has beyond what is "
        "held is with an index mostly the scratch of sorting a block of 65,536 rows, a constant.",
    )


def _over(row: Found, name: str) -> str:
    """Where nothing grows with N there is nothing to be a multiple of."""
    if row["configuration"] == "summaries":
        return number(None)
    return times(row[name] / row["analytic"])


def _ordered(rows: list[Found]) -> list[Found]:
    return sorted(rows, key=lambda row: int(row["window"]))
