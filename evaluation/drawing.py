"""How every figure looks: one hand, readable in grey, the same bytes for the same records."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from evaluation.repeated import Repeated

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLUMN",
    "GREY",
    "OURS",
    "PAGE",
    "STYLES",
    "canvas",
    "ink",
    "label_line",
    "label_lines",
    "lightness",
    "plot",
    "styled",
    "svg",
]

COLUMN = 3.6  # inches: a column of the paper
PAGE = 7.4  # inches: both

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

_LABEL = 7.5  # points: names of lines and ticks

_STYLE: dict[Any, Any] = {
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "mathtext.fontset": "dejavusans",
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 7,
    "axes.labelsize": 8,
    "axes.labelcolor": "#222222",
    "axes.edgecolor": "#555555",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.grid.which": "major",
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "lines.markeredgewidth": 0.6,
    "errorbar.capsize": 2,
    "legend.frameon": False,
    "legend.fontsize": _LABEL,
    "legend.handlelength": 2.6,
    "xtick.labelsize": _LABEL,
    "ytick.labelsize": _LABEL,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "xtick.labelcolor": "#222222",
    "ytick.labelcolor": "#222222",
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    # Letters are outlines: a figure is the same in every viewer, and raised exponents stay raised.
    # What a reader may want to copy is text in the caption and the table beside it.
    "svg.fonttype": "path",
    "svg.hashsalt": "ids",
    "hatch.linewidth": 0.6,
}


@contextmanager
def styled() -> Iterator[None]:
    """Matplotlib in our style, without a display, for as long as this lasts."""
    import matplotlib

    matplotlib.use("Agg")
    with matplotlib.rc_context(_STYLE):
        yield


def canvas(
    panels: int = 1, height: float = 2.6, *, lines: int = 1, **kwargs: Any
) -> tuple[Figure, list[Axes]]:
    """A figure of so many panels side by side, in so many lines, given line by line.

    One panel is a column of the paper wide, more are a page.
    """
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(COLUMN if panels == 1 else PAGE, height))
    axes = drawing.subplots(lines, panels, squeeze=False, **kwargs)
    return drawing, list(axes.ravel())


def plot(
    axes: Axes,
    xs: Sequence[float],
    ys: Sequence[float | Repeated],
    style: Mapping[str, Any],
    **kwargs: Any,
) -> None:
    """A line in one of the STYLES; where a quantity was repeated, its mean in its 95 % interval.

    The interval of a time may reach below zero, where a logarithmic axis has no place: there the
    band ends at half of the least sample.
    """
    means = [y.mean if isinstance(y, Repeated) else y for y in ys]
    axes.plot(xs, means, **{**style, **kwargs})
    if any(isinstance(y, Repeated) for y in ys):
        low, high = zip(*map(_interval, ys), strict=True)
        axes.fill_between(xs, low, high, color=style["color"], alpha=0.18, linewidth=0)


def label_line(axes: Axes, x: float, y: float, text: str, **kwargs: Any) -> None:
    """A line's name beside its end, in place of a legend's entry."""
    placed: dict[str, Any] = {"xytext": (4, 0), "va": "center", "fontsize": _LABEL, **kwargs}
    if "color" in placed:
        placed["color"] = ink(placed["color"])
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
    for (x, y, text, color), before, after in zip(
        ends, heights, _apart(heights, 1.25 * _LABEL, floor), strict=True
    ):
        label_line(axes, x, y, text, color=color, xytext=(4, after - before))


def lightness(color: str) -> float:
    """How light a colour is in grey, from 0 for black to 100 for white (CIE L*)."""
    y = _luminance(color)
    return 116 * y ** (1 / 3) - 16 if y > 216 / 24389 else y * 24389 / 27


def ink(color: str) -> str:
    """The same hue, dark enough for letters on white (a contrast of 4.5, WCAG's AA)."""
    from matplotlib.colors import to_hex, to_rgb

    while 1.05 / (_luminance(color) + 0.05) < 4.5:
        red, green, blue = to_rgb(color)
        color = to_hex((0.95 * red, 0.95 * green, 0.95 * blue))
    return color


def svg(drawing: Figure) -> str:
    """The figure as SVG text: no date, no random names, so equal figures are equal files."""
    out = io.StringIO()
    with styled():
        drawing.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def _interval(y: float | Repeated) -> tuple[float, float]:
    if not isinstance(y, Repeated):
        return y, y
    low, high = y.mean - y.half_width, y.mean + y.half_width
    return max(low, y.best / 2) if y.best > 0 else low, high


def _apart(heights: Sequence[float], least: float, floor: float) -> list[float]:
    """The same heights, moved no further than it takes for neighbours to be ``least`` apart.

    Neighbours that come too close are one block about the middle of where they belong, above the
    floor; blocks that come too close are joined in turn.
    """

    def bottom(block: Sequence[int]) -> float:
        middle = sum(heights[at] for at in block) / len(block)
        return max(floor, middle - least * len(block) / 2)

    blocks: list[list[int]] = []
    for at in sorted(range(len(heights)), key=heights.__getitem__):
        blocks.append([at])
        while len(blocks) > 1 and bottom(blocks[-2]) + least * len(blocks[-2]) > bottom(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    moved = list(heights)
    for block in blocks:
        for place, at in enumerate(block):
            moved[at] = bottom(block) + (place + 0.5) * least
    return moved


def _luminance(color: str) -> float:
    """Relative luminance, from 0 to 1, as WCAG 2 defines it."""
    from matplotlib.colors import to_rgb

    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in to_rgb(color)
    ]
    return float(sum(w * part for w, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True)))
