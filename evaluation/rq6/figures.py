"""The chapter's figures: the estimators, the incident among both sets of rivals, the mechanisms."""

from collections.abc import Callable
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from evaluation.drawing import OURS, STYLES, canvas, label_lines
from evaluation.rq6.incident import RIVALS, SIGNALS, SLIDE
from evaluation.tables import Tables

_GAMES = {"tuples": "rows play", "two": "P and the rest play", "atoms": "16 atoms play"}
_PLANTED: dict[str, Any] = {"color": OURS, "linewidth": 1.8, "zorder": 3}
_DECOYS = [
    {"color": color, "linestyle": dash, "linewidth": 1.0}
    for color, dash in (("#444444", "--"), ("#6b6b6b", "-."), ("#767676", "-"))
]


def _cost(tables: Tables) -> Figure:
    """One line a method, grouped by who plays: latency on the left, error on the right."""
    n = max(row["n"] for row in tables["rq6_cost"])
    rows = tables.where("rq6_cost", n=n, aggregate="AVG")
    drawing, (latency, error) = canvas(2, height=3.6, sharey=True)
    lines: list[float] = []
    for (estimand, players), style in zip(_GAMES.items(), STYLES[1:], strict=False):
        mine = [row for row in rows if row["estimand"] == estimand]
        at = [(lines[-1] + 1.6 if lines else 0.0) + k for k in range(len(mine))]
        lines += at
        kind = {**style, "linestyle": "none", "markersize": 5}
        latency.plot([1e6 * row["seconds"].mean for row in mine], at, **kind)
        error.plot([row["error"] or 0.0 for row in mine], at, **kind)
        beside: Any = {"xycoords": ("axes fraction", "data"), "va": "center", "fontsize": 7.5}
        error.annotate(players, (1.01, (at[0] + at[-1]) / 2), color=style["color"], **beside)
    for axes, ours in ((latency, 1e6 * rows[0]["seconds"].mean), (error, 0.0)):
        axes.plot([ours], [0.0], color=OURS, marker="o", markersize=7)
    latency.set(xscale="log", xlabel="latency of one attribution (µs)", title=f"AVG, N = {n:,}")
    latency.set_yticks(lines, [row["method"] for row in rows])
    latency.get_yticklabels()[0].set_fontweight("bold")
    latency.invert_yaxis()
    error.set_xscale("symlog", linthresh=0.01)
    error.set_xticks([0.0, 0.01, 0.1, 1.0], ["exact", "1 %", "10 %", "100 %"])
    error.set(xlim=(-0.002, 3.0), xlabel="relative error against its own estimand")
    return drawing


def _case(tables: Tables, *, onset: bool) -> Figure:
    """Siblings on the left, parents on the right; AVG, its lift, and the variance's changes."""
    rows = tables.where("rq6_case", **{"near" if onset else "far": True})
    rows = [row for row in rows if not onset or -600 <= row["tuples"] <= 800]
    x = [row["tuples"] for row in rows]
    drawing, panels = canvas(2, height=4.8, lines=3, sharex=True, sharey="row")
    for column, (rivals, candidates) in enumerate(RIVALS.items()):
        mine = panels[column::2]
        mine[0].plot(x, [row["average"] for row in rows], color=OURS)
        for axes, signal in zip(mine[1:], SIGNALS, strict=True):
            ends = []
            for candidate, style in zip(candidates, (_PLANTED, *_DECOYS), strict=True):
                y = [row[f"{signal}: {candidate.label}"] for row in rows]
                axes.plot(x, y, **style)
                ends.append((x[-1], y[-1], candidate.label, style["color"]))
            rule = {"slide": SLIDE, "rule": "first of four", "rivals": rivals, "signal": signal}
            led = tables.where("rq6_leads", **rule)[0]["led_after"]
            if onset and led is not None and led <= x[-1]:
                axes.axvline(led, color="black", linewidth=0.9, linestyle=(0, (3, 2)))
                at: Any = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
                text = f"leads: {led} tuples"
                axes.annotate(text, (led, 1.0), (-4, -9), ha="right", fontsize=7, **at)
            if axes is mine[1]:
                label_lines(axes, ends)
        incident = tables["rq6_case_facts"][0]["incident"]
        for axes in mine:
            axes.axvspan(0, min(incident, x[-1]), color="#f1e6d8", zorder=0)
        mine[0].set(title=f"among {rivals}", xlim=(x[0], x[-1]))
        mine[-1].set_xlabel("tuples since the onset")
        mine[-1].locator_params(axis="x", nbins=4 if onset else 3)
        mine[-1].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}".replace("-", "−"))
    labels = ("AVG (ms)", "AVG lift (ms)", "ΔΦ of VAR (ms²)")
    for axes, label in zip(panels[::2], labels, strict=True):
        axes.set_ylabel(label)
    return drawing


def _mechanisms(tables: Tables) -> Figure:
    drawing, (panel,) = canvas(1, height=2.7)
    names = ("index assisted", "brute force scan", "uniform sample", "stratified sample")
    ends = []
    for name, style in zip((*names, "registered"), (*STYLES[:4], STYLES[5]), strict=True):
        rows = tables.where("rq6_mechanisms_questions", mechanism=name)
        x = [row["selectivity"] for row in rows]
        y = [1e6 * row["query"].median for row in rows]
        panel.plot(x, y, **style)
        ends.append((x[-1], y[-1], name, style["color"]))
    panel.set(xscale="log", yscale="log", xlabel="selectivity", ylabel="a question (µs)")
    panel.set_ylim(top=2 * max(y for _, y, _, _ in ends))
    label_lines(panel, ends)
    return drawing


FIGURES: dict[str, Callable[[Tables], Figure]] = {
    "rq6-cost": _cost,
    "rq6-case": partial(_case, onset=True),
    "rq6-incident": partial(_case, onset=False),
    "rq6-mechanisms": _mechanisms,
}
