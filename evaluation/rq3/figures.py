"""RQ3's figure: the components as bars on a symmetric log scale, the measured peak above them."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evaluation.drawing import GREY, OURS, canvas
from evaluation.tables import Tables, power, shown

# Told apart in grey by lightness and hatch.
_BARS: dict[str, dict[str, Any]] = {
    "summaries": {"label": "summaries and atoms", "color": OURS},
    "retained": {"label": "retained window", "color": "#c9d6e4", "hatch": "////"},
    "index": {"label": "index", "color": "#f0c9b8", "hatch": "...."},
    "sample": {"label": "sample", "color": "#e8e8e8", "hatch": "xxxx"},
}
_NAMES = ["summaries\nonly", "+ retained\nwindow", "+ index", "+ sample", "+ strata"]
_TICKS = (0, 1 << 10, 1 << 15, 1 << 20, 1 << 25)


def _draw(tables: Tables) -> Figure:
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
    entries = list(zip(*panels[0].get_legend_handles_labels(), strict=True))
    needed, heap, process, *bars = entries  # down the columns: a bar stands above a mark
    order = [bars[0], needed, bars[1], heap, bars[2], process, bars[3]]
    drawing.legend(*zip(*order, strict=True), loc="outside upper center", ncols=4)
    return drawing


def _panel(axes: Axes, rows: list[dict[str, Any]]) -> None:
    places = np.arange(len(rows))
    needed = [row["analytic"] for row in rows]
    line: Any = {"colors": GREY, "linewidth": 1.2, "label": "analytic, all of it"}
    axes.hlines(needed, places - 0.4, places + 0.4, **line)
    for name, key, shape, face, shift in (
        ("heap", "heap_peak", "D", "black", -0.07),
        ("process", "resident_peak", "o", "white", 0.07),
    ):
        style: Any = {"marker": shape, "markerfacecolor": face, "label": f"measured peak, {name}"}
        peaks = np.array([row.get(key) for row in rows], float)
        axes.plot(places + shift, peaks, linestyle="none", color="black", zorder=5, **style)
    for place, (part, style) in enumerate(_BARS.items()):
        high = [row[f"analytic_{part}"] for row in rows]
        axes.bar(places + 0.2 * (place - 1.5), high, 0.2, edgecolor="black", linewidth=0.5, **style)
    axes.set_yscale("symlog", base=2, linthresh=1024)
    axes.set_ylim(0, 1 << 29)
    axes.set_yticks(_TICKS, [shown(tick, "bytes") for tick in _TICKS])
    axes.set_xticks(places, _NAMES)
    axes.grid(visible=False, axis="x")
    axes.minorticks_off()


FIGURES = {"rq3-memory": _draw}
