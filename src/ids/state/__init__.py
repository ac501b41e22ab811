"""The state that is kept between slides: sums, retained rows, index, sample and checkpoint."""

from ids.state.checkpoint import load, save
from ids.state.index import Access, Index
from ids.state.retained_rows import Array, Retained, RowBlock
from ids.state.row_hash import contents, priorities, tie_breaks
from ids.state.summaries import (
    Enumerated,
    Refined,
    Summaries,
    Triple,
    cut_column,
    empty_emits,
    moments_of,
)
from ids.state.window_sample import Drawing, WindowSample

__all__ = [
    "Access",
    "Array",
    "Drawing",
    "Enumerated",
    "Index",
    "Refined",
    "Retained",
    "RowBlock",
    "Summaries",
    "Triple",
    "WindowSample",
    "contents",
    "cut_column",
    "empty_emits",
    "load",
    "moments_of",
    "priorities",
    "save",
    "tie_breaks",
]
