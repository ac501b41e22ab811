"""The estimators drawn: latency and error of each, grouped by who plays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evaluation.chapter import Figure, Tables
from evaluation.drawing import GREY, OURS, STYLES, canvas
from evaluation.rq6.contest.measuring import IDS
from evaluation.rq6.contest.showing import GAMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

__all__ = ["FIGURES"]

_FLOOR = 1e-6  # below it an error is rounding


def _draw(tables: Tables) -> Drawing:
    """One line a method, grouped by who plays: latency on the left, error on the right."""
    n = max(row["n"] for row in tables["rq6_cost"])
    rows = tables.where("rq6_cost", n=n, aggregate="AVG")
    errors = [row["error"] for row in rows if row["error"] and row["error"] >= _FLOOR]
    exact = min(errors) / 6  # where what has no error is drawn, left of a break in the axis
    drawing, (latency, error) = canvas(2, height=3.6, sharey=True)
    line = 0.0
    lines: dict[float, str] = {}
    for (estimand, players), style in zip(GAMES.items(), STYLES[1:], strict=False):
        mine = [row for row in rows if row["estimand"] == estimand]
        error.annotate(
            f"{players} play", (1.01, line + (len(mine) - 1) / 2), va="center", fontsize=7.5,
            xycoords=("axes fraction", "data"), color=style["color"],
        )  # fmt: skip
        for row in mine:
            _draw_method(latency, error, line, row, style, exact)
            lines[line] = row["method"]
            line += 1.0
        line += 0.6
    latency.set(xscale="log", xlabel="latency of one attribution (µs)", title=f"AVG, N = {n:,}")
    error.set(xscale="log", xlabel="relative error against its own estimand")
    latency.margins(x=0.12)
    ticks = [10.0**k for k in range(-4, 3) if min(errors) / 2 <= 10.0**k <= 2 * max(errors)]
    error.set_xticks([exact, *ticks], ["exact", *(f"{100 * tick:g} %" for tick in ticks)])
    error.minorticks_off()
    error.axvline(exact * 2.2, color=GREY, linewidth=0.7, linestyle=(0, (1, 2)))
    error.set_xlim(exact / 1.7, max(errors) * 1.9)
    latency.set_yticks(list(lines), list(lines.values()))
    latency.get_yticklabels()[0].set_fontweight("bold")  # ours
    latency.tick_params(axis="y", length=0)
    error.tick_params(axis="y", length=0)
    latency.invert_yaxis()
    return drawing


def _draw_method(
    latency: Axes,
    error: Axes,
    line: float,
    row: dict[str, Any],
    style: dict[str, Any],
    exact: float,
) -> None:
    ours = row["method"] == IDS
    kind: dict[str, Any] = {
        "color": OURS if ours else style["color"],
        "marker": "o" if ours else style["marker"],
        "markersize": 7 if ours else 5,
        "linestyle": "none",
    }
    off = row["error"]
    latency.plot([1e6 * row["seconds"].mean], [line], **kind)
    error.plot([exact if off is None or off < _FLOOR else off], [line], **kind)


FIGURES = (
    Figure(
        "rq6-cost",
        "Latency and error of one attribution of AVG, each method against its own estimand. Only "
        "where rows play is that the attribution which IDS computes; where groups play, even an "
        "exact answer is of another game.",
        ("rq6_cost",),
        _draw,
    ),
)
