"""RQ3's figure: the components as bars on a symmetric log scale, the measured peak above them."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from evaluation.chapter import Figure, Tables
from evaluation.drawing import GREY, OURS, canvas
from evaluation.formatting import bytes_, power

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

__all__ = ["FIGURES"]

# Told apart in grey by lightness and hatch.
_BARS: dict[str, dict[str, Any]] = {
    "summaries": {"label": "summaries and atoms", "color": OURS},
    "retained": {"label": "retained window", "color": "#c9d6e4", "hatch": "////"},
    "index": {"label": "index", "color": "#f0c9b8", "hatch": "...."},
    "sample": {"label": "sample", "color": "#e8e8e8", "hatch": "xxxx"},
}
_PEAKS: dict[str, dict[str, Any]] = {
    "heap_peak": {"label": "measured peak, heap", "marker": "D", "color": "black"},
    "resident_peak": {
        "label": "measured peak, process",
        "marker": "o",
        "markerfacecolor": "white",
        "markeredgecolor": "black",
        "color": "black",
    },
}
_ALL = "analytic, all of it"
_NAMES = {
    "summaries": "summaries\nonly",
    "retained": "+ retained\nwindow",
    "index": "+ index",
    "sample": "+ sample",
    "strata": "+ strata",
}
_WIDTH = 0.2
_LINEAR = 1024
_TICKS = (0, 1 << 10, 1 << 15, 1 << 20, 1 << 25)
_TOP = 1 << 29


def _draw(tables: Tables) -> Drawing:
    """One panel a window size."""
    windows = sorted({row["window"] for row in tables["rq3_memory"]})
    columns = min(2, len(windows))
    lines = -(-len(windows) // columns)
    drawing, panels = canvas(columns, height=2.1 * lines + 0.4, lines=lines, sharey=True)
    for axes, window in zip(panels, windows, strict=False):
        _panel(axes, tables.where("rq3_memory", window=window))
        axes.set_title(f"N = {power(window, 1).removeprefix('1×')}")
    for axes in panels[len(windows) :]:
        axes.set_axis_off()
    for axes in panels[::columns]:
        axes.set_ylabel("bytes")
    handles, labels = panels[0].get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))
    # down the columns: the bars stand above what is measured
    bars = [style["label"] for style in _BARS.values()]
    marks = [_ALL, *(style["label"] for style in _PEAKS.values())]
    order = [label for pair in zip_longest(bars, marks) for label in pair if label is not None]
    drawing.legend([named[label] for label in order], order, loc="outside upper center", ncols=4)
    return drawing


def _panel(axes: Axes, rows: list[dict[str, Any]]) -> None:
    for place, (part, style) in enumerate(_BARS.items()):
        at = [n + (place - 1.5) * _WIDTH for n in range(len(rows))]
        high = [row[f"analytic_{part}"] for row in rows]
        axes.bar(at, high, _WIDTH, edgecolor="black", linewidth=0.5, **style)
    for n, row in enumerate(rows):
        axes.hlines(
            row["analytic"], n - 2 * _WIDTH, n + 2 * _WIDTH, colors=GREY, linewidth=1.2,
            label=_ALL if not n else "",
        )  # fmt: skip
    for shift, (name, style) in zip((-0.07, 0.07), _PEAKS.items(), strict=True):
        at = [n + shift for n in range(len(rows))]
        axes.plot(at, [row[name] for row in rows], linestyle="none", zorder=5, **style)
    axes.set_yscale("symlog", base=2, linthresh=_LINEAR)
    axes.set_ylim(0, _TOP)
    axes.set_yticks(_TICKS, [bytes_(tick) for tick in _TICKS])
    axes.set_xticks(range(len(rows)), [_NAMES[row["configuration"]] for row in rows])
    axes.grid(visible=False, axis="x")
    axes.minorticks_off()


FIGURES = (
    Figure(
        "rq3-memory",
        "Summaries and atoms do not grow with N; all else does (the paper's Figure 3, symmetric "
        "logarithmic scale). Bars: what each component needs by analysis. Markers: the measured "
        "peak of the whole configuration, in a process of its own.",
        ("rq3_memory",),
        _draw,
    ),
)
