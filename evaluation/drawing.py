"""How every figure looks: one hand, readable in grey, the same bytes for the same records."""

import io
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import isotonic_regression

from evaluation.step import Repeated

OURS = "#08325e"
GREY = "#6b6b6b"

# Told apart in grey by lightness (7 of 100 at least between any two), dash and marker, not by hue
# alone; each stands out from white; ours comes first and is the darkest.
STYLES: list[dict[str, Any]] = [
    {"color": OURS, "linestyle": "-", "marker": "o"},
    {"color": "#cf5a30", "linestyle": "--", "marker": "s"},
    {"color": "#26654a", "linestyle": "-.", "marker": "^"},
    {"color": "#c08a20", "linestyle": ":", "marker": "D"},
    {"color": "#612f77", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "v"},
    {"color": GREY, "linestyle": (0, (1, 1)), "marker": "X"},
]
INK = {"#cf5a30": "#bb522c", "#c08a20": "#946a19"}
"""The same hue for letters, where a line's colour is too light to be read on white (WCAG's AA)."""
_LETTERS = 7.5  # points, as in figures.mplstyle
styled = partial(matplotlib.rc_context, fname=Path(__file__).with_name("figures.mplstyle"))


def canvas(
    panels: int = 1, height: float = 2.6, *, lines: int = 1, **kwargs: Any
) -> tuple[Figure, list[Axes]]:
    """Panels side by side, line by line; one is a column of the paper wide, more are a page."""
    drawing = Figure(figsize=(3.6 if panels == 1 else 7.4, height))  # inches
    axes = drawing.subplots(lines, panels, squeeze=False, **kwargs)
    return drawing, list(axes.ravel())


def plot(axes: Axes, xs: Sequence[float], ys: Sequence[float | Repeated], style: Any) -> None:
    """A line in one of the STYLES; where a quantity was repeated, its mean in its 95 % interval."""
    some = [y if isinstance(y, Repeated) else Repeated.of([y]) for y in ys]
    axes.plot(xs, [y.mean for y in some], **style)
    if any(y.half_width for y in some):  # below zero a logarithmic axis has no place
        low = [max(y.mean - y.half_width, y.best / 2 if y.best > 0 else -np.inf) for y in some]
        high = [y.mean + y.half_width for y in some]
        axes.fill_between(xs, low, high, color=style["color"], alpha=0.18, linewidth=0)


def label_line(axes: Axes, x: float, y: float, text: str, **kwargs: Any) -> None:
    """A line's name beside its end, in place of a legend's entry."""
    usual = {"xytext": (4, 0), "va": "center", "fontsize": _LETTERS, "color": "black"}
    placed: Any = usual | kwargs
    placed["color"] = INK.get(placed["color"], placed["color"])
    axes.annotate(text, (x, y), textcoords="offset points", **placed)


def label_lines(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """The names of several lines beside their ends (x, y, name, colour), none over another.

    Call it last, once scales and limits are settled: names are moved apart as the axes stand.
    """
    if not ends:
        return
    drawing = axes.get_figure(root=True)
    assert drawing is not None
    drawing.draw_without_rendering()  # only now does the layout know where a point lies
    per_point = drawing.dpi / 72
    floor = float(axes.get_window_extent().y0) / per_point
    heights = [float(axes.transData.transform((x, y))[1]) / per_point for x, y, _, _ in ends]
    apart = _apart(heights, 1.25 * _LETTERS, floor)
    for (x, y, text, color), before, after in zip(ends, heights, apart, strict=True):
        label_line(axes, x, y, text, color=color, xytext=(4, after - before))


def svg(draw: Callable[..., Figure], *of: object) -> str:
    """A figure in our style as SVG: no date, no random names, so equal figures are equal files."""
    out = io.StringIO()
    with styled():
        draw(*of).savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def _apart(heights: Sequence[float], least: float, floor: float) -> list[float]:
    """The same heights, above the floor, moved no further than neighbours ``least`` apart need."""
    order = np.argsort(heights, kind="stable")
    steps = least * np.arange(len(heights))
    moved = np.empty(len(heights))
    freed = isotonic_regression(np.asarray(heights, float)[order] - steps).x
    moved[order] = np.maximum(freed, floor + least / 2) + steps
    return [float(height) for height in moved]
