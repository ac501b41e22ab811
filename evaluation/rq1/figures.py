"""The figures of RQ1: errors beside the paper's, and what running sums do over a long stream."""

import tomllib
from pathlib import Path
from string import Template
from typing import Any

from matplotlib.figure import Figure

from evaluation.drawing import GREY, OURS, STYLES, canvas, label_lines
from evaluation.tables import Tables

_FLOOR: Any = {"color": GREY, "linewidth": 0.8, "linestyle": ":", "zorder": 0}  # at 2⁻⁵³
_PAPER: Any = {"color": "white", "markeredgecolor": "#c4512d", "markersize": 6.5, "label": "paper"}
_STATES = {
    "IDS": "IDS",
    "doubles, += and -=": "+= and −=",
    "doubles, centred": "centred",
    "doubles, centred and compensated": "compensated",
}
_STREAMS = {"stress": "stress: mean 10⁹, deviation 10⁻³", "spikes": "spikes come and go"}


def _errors(tables: Tables) -> Figure:
    """A panel for each column of the paper's table, a line for each game, a dot for each of us."""
    compared = tomllib.loads(Path(__file__).with_name("comparisons.toml").read_text("utf-8"))
    columns = [entry for entry in compared["comparison"] if "panel" in entry]
    games = [line["game"] for line in columns[0]["each"]]
    drawing, panels = canvas(len(columns), height=2.2, sharey=True)
    for entry, axes in zip(columns, panels, strict=True):
        for at, line in enumerate(entry["each"]):
            (answer,) = tables.select(Template(entry["ours"]).substitute(line))
            (ours,) = answer.values()
            axes.plot([ours, line["paper"]], [at, at], color=GREY, linewidth=0.8, zorder=1)
            axes.plot(ours, at, "o", color=OURS, markersize=4.5, zorder=3, label="IDS")
            axes.plot(line["paper"], at, "s", **_PAPER)
        axes.set_xscale("symlog", linthresh=1e-17, linscale=0.6)
        axes.set(xlim=(-3e-18, 3e-11), ylim=(len(games) - 0.4, -0.6), title=entry["panel"])
        axes.set_xticks([0, 1e-16, 1e-14, 1e-12], ["0", "10⁻¹⁶", "10⁻¹⁴", "10⁻¹²"])
        axes.minorticks_off()
        axes.axvline(2.0**-53, **_FLOOR)
        axes.grid(axis="y", visible=False)
    panels[0].set_yticks(range(len(games)), games)
    handles, labels = panels[0].get_legend_handles_labels()
    panels[-1].legend(handles[:2], labels[:2], loc="lower right")
    return drawing


def _drift(tables: Tables) -> Figure:
    """The relative error of VAR_POP against slides, on the two streams."""
    drawing, panels = canvas(len(_STREAMS), height=2.7, sharey=True)
    panels[0].set_ylabel("relative error of VAR_POP")
    ends: list[list[tuple[float, float, str, str]]] = [[] for _ in panels]
    for (stream, title), axes, lines in zip(_STREAMS.items(), panels, ends, strict=True):
        for (state, name), style in zip(_STATES.items(), STYLES, strict=False):
            rows = tables.where("rq1_drift", stream=stream, state=state)
            slides = [row["slides"] for row in rows]
            ys = [max(row["var_pop"], 1e-18) for row in rows]  # 0 has no place on a log axis
            axes.plot(slides, ys, markersize=2.8, zorder=3 if state == "IDS" else 2, **style)
            lines.append((slides[-1], ys[-1], name, style["color"]))
        axes.set(xscale="log", yscale="log", ylim=(1e-19, 1e12), title=title)
        axes.set(xlabel="slides of one row", yticks=[10.0**k for k in range(-16, 13, 4)])
        axes.set_xticks([10.0**k for k in range(1, 7) if 10**k <= slides[-1]])
        axes.minorticks_off()
        axes.hlines(2.0**-53, slides[0], slides[-1], **_FLOOR)
        axes.set_xlim(right=slides[-1] * 40)
    for axes, lines in zip(panels, ends, strict=True):
        label_lines(axes, lines)
    return drawing


FIGURES = {"rq1-errors": _errors, "rq1-drift": _drift}
