"""The chapter's figures: the estimators, the incident among both sets of rivals, the mechanisms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from evaluation.drawing import GREY, OURS, STYLES, canvas, label_lines
from evaluation.rq6.candidates import RIVALS
from evaluation.rq6.incident import SIGNALS, SLIDE
from evaluation.tables import Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GAMES = {"tuples": "rows play", "two": "P and the rest play", "atoms": "16 atoms play"}
_FLOOR = 1e-6  # below it an error is rounding
_ZOOM = (-600, 800)  # tuples since the onset
_UNITS = ("AVG lift (ms)", "ΔΦ of VAR (ms²)")
_CANDIDATES: list[dict[str, Any]] = [
    {"color": OURS, "linewidth": 1.8, "zorder": 3},
    {"color": "#555555", "linewidth": 1.0, "linestyle": "--"},
    {"color": "#8a8a8a", "linewidth": 1.0, "linestyle": "-."},
    {"color": "#aaaaaa", "linewidth": 1.0},
]


def _cost(tables: Tables) -> Figure:
    """One line a method, grouped by who plays: latency on the left, error on the right."""
    n = max(row["n"] for row in tables["rq6_cost"])
    rows = tables.where("rq6_cost", n=n, aggregate="AVG")
    errors = [row["error"] for row in rows if (row["error"] or 0.0) >= _FLOOR]
    exact = min(errors) / 6  # where what has no error is drawn, left of a break in the axis
    drawing, (latency, error) = canvas(2, height=3.6, sharey=True)
    lines: list[float] = []
    for (estimand, players), style in zip(_GAMES.items(), STYLES[1:], strict=False):
        mine = [row for row in rows if row["estimand"] == estimand]
        at = [(lines[-1] + 1.6 if lines else 0.0) + k for k in range(len(mine))]
        middle = (1.01, (at[0] + at[-1]) / 2)
        error.annotate(players, middle, xycoords=("axes fraction", "data"), va="center",
                       fontsize=7.5, color=style["color"])  # fmt: skip
        kind = {**style, "linestyle": "none", "markersize": 5}
        latency.plot([1e6 * row["seconds"].mean for row in mine], at, **kind)
        error.plot([max(row["error"] or 0.0, exact) for row in mine], at, **kind)
        lines += at
    ours: dict[str, Any] = {"color": OURS, "marker": "o", "markersize": 7}
    latency.plot([1e6 * rows[0]["seconds"].mean], [0.0], **ours)
    error.plot([exact], [0.0], **ours)
    latency.set(xscale="log", xlabel="latency of one attribution (µs)", title=f"AVG, N = {n:,}")
    latency.margins(x=0.12)
    latency.set_yticks(lines, [row["method"] for row in rows])
    latency.get_yticklabels()[0].set_fontweight("bold")
    latency.invert_yaxis()
    ticks = [10.0**k for k in range(-4, 3) if min(errors) / 2 <= 10.0**k <= 2 * max(errors)]
    error.set(xscale="log", xlabel="relative error against its own estimand")
    error.set_xticks([exact, *ticks], ["exact", *(f"{100 * tick:g} %" for tick in ticks)])
    error.minorticks_off()
    error.axvline(exact * 2.2, color=GREY, linewidth=0.7, linestyle=(0, (1, 2)))
    error.set_xlim(exact / 1.7, max(errors) * 1.9)
    for axes in (latency, error):
        axes.tick_params(axis="y", length=0)
    return drawing


def _case(tables: Tables, *, onset: bool) -> Figure:
    """Siblings on the left, parents on the right; AVG, its lift, and the variance's changes."""
    (facts,) = tables["rq6_case_facts"]
    rows = tables.where("rq6_case", **{"near" if onset else "far": True})
    rows = [row for row in rows if not onset or _ZOOM[0] <= row["tuples"] <= _ZOOM[1]]
    x = [row["tuples"] for row in rows]
    drawing, panels = canvas(2, height=4.8, lines=3, sharex=True, sharey="row")
    for column, (rivals, candidates) in enumerate(RIVALS.items()):
        top, *below = mine = panels[column::2]
        top.plot(x, [row["average"] for row in rows], color=OURS)
        top.set_title(f"among {rivals}")
        for axes, signal in zip(below, SIGNALS, strict=True):
            ends = []
            for candidate, style in zip(candidates, _CANDIDATES, strict=True):
                y: list[Any] = [row.get(f"{signal}: {candidate.label}") for row in rows]
                if None not in y:  # parents are in no record of before
                    axes.plot(x, y, **style)
                    ends.append((x[-1], y[-1], candidate.label, style["color"]))
            if onset:
                _mark(axes, tables, rivals, signal)
            if signal == SIGNALS[0]:
                label_lines(axes, ends)
        for axes in mine:
            axes.axvspan(0, min(facts["incident"], x[-1]), color="#f1e6d8", zorder=0)
            axes.set_xlim(x[0], x[-1])
        mine[-1].set_xlabel("tuples since the onset")
        mine[-1].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}".replace("-", "−"))
    for axes, label in zip(panels[::2], ("AVG (ms)", *_UNITS), strict=True):
        axes.set_ylabel(label)
    return drawing


def _mark(axes: Axes, tables: Tables, rivals: str, signal: str) -> None:
    """Where the planted predicate has been first for three emits."""
    (found,) = tables.where(
        "rq6_leads", rivals=rivals, signal=signal, slide=SLIDE, rule="first of four"
    )
    led = found["led_after"]
    if led is not None and led <= _ZOOM[1]:
        axes.axvline(led, color="black", linewidth=0.9, linestyle=(0, (3, 2)))
        place: Any = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
        axes.annotate(f"leads: {led} tuples", (led, 1.0), (-4, -9), ha="right", fontsize=7, **place)


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
