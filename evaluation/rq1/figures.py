"""The figures of RQ1: errors beside the paper's, and what running sums do over a long stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evaluation.chapter import Figure, Tables
from evaluation.drawing import GREY, OURS, STYLES, canvas, label_lines
from evaluation.rq1 import paper
from evaluation.rq1.findings import ERRORS, Found

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

__all__ = ["FIGURES"]

_FLOOR = 2.0**-53
_NAMES = {
    "IDS": "IDS",
    "doubles, += and -=": "+= and −=",
    "doubles, centred": "centred",
    "doubles, centred and compensated": "compensated",
}
_TITLES = {
    "absolute": "max abs err",
    "relative": "max rel err",
    "delta": "max rel delta err",
    "residual": "max rel Eff. resid.",
}


def _draw_errors(tables: Tables) -> Drawing:
    """A panel for each column of the paper's table, a line for each game, a dot for each of us."""
    found = Found(tables)
    drawing, panels = canvas(len(ERRORS), height=2.2, sharey=True)
    games = list(paper.PRINTED)
    for column, axes in zip(ERRORS, panels, strict=True):
        for at, game in enumerate(games):
            ours, theirs = found.errors(game)[column], getattr(paper.PRINTED[game], column)
            axes.plot([ours or 0.0, theirs], [at, at], color=GREY, linewidth=0.8, zorder=1)
            axes.plot(
                theirs,
                at,
                "s",
                color="white",
                markeredgecolor="#c4512d",
                markersize=6.5,
                label="paper",
            )
            if ours is not None:
                axes.plot(ours, at, "o", color=OURS, markersize=4.5, label="IDS")
        axes.set_xscale("symlog", linthresh=1e-17, linscale=0.6)
        axes.set_xlim(-3e-18, 3e-11)
        axes.set_xticks([0, 1e-16, 1e-14, 1e-12], ["0", "10⁻¹⁶", "10⁻¹⁴", "10⁻¹²"])
        axes.minorticks_off()
        axes.axvline(_FLOOR, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
        axes.set_title(_TITLES[column])
        axes.grid(axis="y", visible=False)
    panels[0].set_yticks(range(len(games)), games)
    panels[0].set_ylim(len(games) - 0.4, -0.6)
    handles = panels[0].get_legend_handles_labels()
    named = dict(zip(handles[1], handles[0], strict=True))
    panels[-1].legend(
        [named[each] for each in ("IDS", "paper") if each in named],
        [each for each in ("IDS", "paper") if each in named],
        loc="lower right",
    )
    return drawing


def _draw_drift(tables: Tables) -> Drawing:
    """The relative error of VAR_POP against slides, on the two streams."""
    rows = tables["rq1_drift"]
    streams = [s for s in ("stress", "spikes") if any(row["stream"] == s for row in rows)]
    drawing, panels = canvas(len(streams), height=2.7, sharey=True)
    titles = {"stress": "stress: mean 10⁹, deviation 10⁻³", "spikes": "spikes come and go"}
    ends = []
    for stream, axes in zip(streams, panels, strict=True):
        ends.append(_draw_stream([row for row in rows if row["stream"] == stream], axes))
        axes.set_title(titles[stream])
        axes.set_xlabel("slides of one row")
    panels[0].set_ylabel("relative error of VAR_POP")
    for axes, lines in zip(panels, ends, strict=True):
        label_lines(axes, lines)
    return drawing


def _draw_stream(rows: list[dict[str, Any]], axes: Axes) -> list[tuple[float, float, str, str]]:
    """A line for each state; where each ends, its name and its colour."""
    ends = []
    end = max(row["slides"] for row in rows)
    for state, style in zip(_NAMES, STYLES, strict=False):
        mine = sorted((r["slides"], r["var_pop"]) for r in rows if r["state"] == state)
        ys = [max(y, 1e-18) for _, y in mine]  # an error of 0 has no place on a log axis
        if ys:
            front = 3 if state == "IDS" else 2
            axes.plot([x for x, _ in mine], ys, markersize=2.8, zorder=front, **style)
            ends.append((end, ys[-1], _NAMES[state], style["color"]))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(1e-19, 1e12)
    axes.set_yticks([10.0**k for k in range(-16, 13, 4)])
    axes.set_xticks([10.0**k for k in range(1, 7) if 10**k <= end])
    axes.minorticks_off()
    first = min(row["slides"] for row in rows)
    axes.hlines(_FLOOR, first, end, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
    axes.set_xlim(right=end * 40)
    return ends


FIGURES = (
    Figure(
        "rq1-errors",
        "The paper's Table 4 as dots: no delta error is left, for attributions kept by deltas have "
        "the bits of recomputed ones. The other errors are roundings. Dotted: 2⁻⁵³, half a unit in "
        "the last place of a double.",
        ("rq1_enumeration", "rq1_deltas"),
        _draw_errors,
    ),
    Figure(
        "rq1-drift",
        "Relative error of VAR_POP of a window of 1,000 rows as it slides. Running sums of doubles "
        "lose a variance beside a large mean, or after one spike; exact sums stay at the last "
        "rounding (dotted: 2⁻⁵³). Compensated sums are centred, too.",
        ("rq1_drift",),
        _draw_drift,
    ),
)
