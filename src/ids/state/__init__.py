"""What survives between slides: summaries, the retained window, checkpoints."""

from ids.state.checkpoint import load, save
from ids.state.index import Access, Index
from ids.state.membership import Enumerated, Refined
from ids.state.rescale import (
    decode,
    encode,
    fit,
    fit_column,
    fit_most,
    grid,
    lowest_bit,
    spans,
    uncut,
    widen,
    within,
)
from ids.state.retained_rows import Array, Retained, RowBlock
from ids.state.row_hash import contents, priorities, tie_breaks
from ids.state.summaries import (
    Summaries,
    Triple,
    answer,
    answer_by_atoms,
    empty_emits,
    in_units,
    moments_of,
    residual,
    window_alone,
    worth,
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
    "answer",
    "answer_by_atoms",
    "contents",
    "decode",
    "empty_emits",
    "encode",
    "fit",
    "fit_column",
    "fit_most",
    "grid",
    "in_units",
    "load",
    "lowest_bit",
    "moments_of",
    "priorities",
    "residual",
    "save",
    "spans",
    "tie_breaks",
    "uncut",
    "widen",
    "window_alone",
    "within",
    "worth",
]
