"""The chapter's figure, in the paper's three panels: error, bounds, ingest cost, each against r."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from evaluation.chapter import Figure, Tables
from evaluation.drawing import GREY, STYLES, canvas, label_lines, plot
from evaluation.rq4.findings import DEFAULT, PLAIN, inexact, ingest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

__all__ = ["FIGURES"]

End = tuple[float, float, str, str]
Line = dict[int, float]
BOUNDS = (
    ("Eq. 6", PLAIN, "eq6", 1),
    ("Hoeffding–Serfling", "Hoeffding", "bound", 3),
    ("Bernstein–Serfling", PLAIN, "bound", 2),
    ("ours", DEFAULT, "bound", 0),
    ("observed", DEFAULT, "observed", 5),
)
SAMPLERS = (
    ("eager", "eager domination", 1),
    ("priority", "priority-sample", 3),
    ("engine, all", "engine with a sample", 5),
    ("WindowSample", "WindowSample", 0),
    ("chain", "chain-sample", 2),
    ("lazy loop", "lazy sweeps", 4),
)


def _draw(tables: Tables) -> Drawing:
    drawing, (error, bounds, cost) = canvas(3, height=2.9)
    _error(error, tables)
    _bounds(bounds, tables)
    _cost(cost, tables)
    return drawing


def _error(axes: Axes, tables: Tables) -> None:
    ends: list[End] = []
    for game, at in (("VAR_POP", 1), ("AVG", 0), ("COUNT", 2)):
        line = _median(tables, DEFAULT, game, "mae")
        if not line:
            continue
        plot(axes, list(line), list(line.values()), STYLES[at])
        ends.append((*_end(line), game, STYLES[at]["color"]))
        plain = _median(tables, PLAIN, game, "mae")
        if plain and game == "VAR_POP":  # where extremes matter most; the others nearly coincide
            thin: dict[str, Any] = {"linewidth": 0.8, "linestyle": "-"}
            axes.plot(list(plain), list(plain.values()), color=STYLES[at]["color"], **thin)
            ends.append((*_end(plain), "VAR_POP,\nplain", STYLES[at]["color"]))
        if game == "AVG":
            _reference(axes, line)
    _finish(axes, "error, % of the aggregate", "(a) Error", 9, ends)


def _reference(axes: Axes, line: Line) -> None:
    """r^(-1/2), below the line that it is compared with."""
    (first, y), last = next(iter(line.items())), max(line)
    start = y / 3
    axes.plot(
        [first, last],
        [start, start * (first / last) ** 0.5],
        color=GREY,
        linestyle=(0, (4, 3)),
        linewidth=1.0,
    )
    axes.annotate(
        "$r^{-1/2}$",
        (first, start),
        xytext=(0, 4),
        textcoords="offset points",
        fontsize=7.5,
        color=GREY,
    )


def _bounds(axes: Axes, tables: Tables) -> None:
    ends: list[End] = []
    for name, way, field, at in BOUNDS:
        line = _median(tables, way, "AVG", field)
        if line:
            plot(axes, list(line), list(line.values()), STYLES[at])
            ends.append((*_end(line), name, STYLES[at]["color"]))
    _finish(axes, "% of the aggregate", "(b) Bounds for AVG", 60, ends)


def _cost(axes: Axes, tables: Tables) -> None:
    ends: list[End] = []
    for name, contender, at in SAMPLERS:
        spent = {r: one.scaled(1e-3) for r, one in ingest(tables, contender).items()}
        if spent:
            plot(axes, list(spent), list(spent.values()), STYLES[at])
            last = max(spent)
            ends.append((last, spent[last].mean, name, STYLES[at]["color"]))
    _finish(axes, "µs a tuple", "(c) Ingest cost", 40, ends)


def _median(tables: Tables, way: str, game: str, field: str) -> Line:
    """The median over predicates by r, in % of the aggregate."""
    found: dict[int, list[float]] = {}
    for row in inexact(tables, game, way=way):
        found.setdefault(row["r"], []).append(100 * row[field] / row["worth"])
    return {r: median(values) for r, values in sorted(found.items())}


def _end(line: Line) -> tuple[float, float]:
    last = max(line)
    return last, line[last]


def _finish(axes: Axes, unit: str, title: str, room: float, ends: list[End]) -> None:
    """Logarithmic axes, ticks where data are, and to the right room for the names of lines."""
    axes.set(xscale="log", yscale="log", xlabel="sample size r", ylabel=unit, title=title)
    first, last = axes.get_xlim()
    axes.set_xlim(first, last * room)
    axes.set_xticks([10.0**k for k in range(1, 7) if first <= 10.0**k <= last])
    axes.set_xticks([], minor=True)
    label_lines(axes, ends)


FIGURES = (
    Figure(
        "rq4-sampling",
        "(a) Mean error as a percentage of the aggregate falls at least as r^(−1/2); the median "
        "over predicates, the thin line of a plain sample, without extremes taken whole. "
        "(b) Bounds on AVG at confidence 0.95 above the observed 95th percentile of the error: the "
        "paper's Eq. 6 is the widest. "
        "(c) Ingest cost of a tuple: amortised sweeps are flat in r, where eager domination "
        "and priority-sample grow with it.",
        ("rq4_error", "rq4_ingest"),
        _draw,
    ),
)
