"""The figures of this chapter: latency and error, and the incident in three panels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ids.reproduce.chapter import Figure, Tables
from ids.reproduce.drawing import GREY, OURS, PAGE, STYLES
from ids.reproduce.rq6.contest import IDS
from ids.reproduce.rq6.contest_shown import GAMES
from ids.reproduce.rq6.incident import SLIDE
from ids.reproduce.rq6.leading import RULES
from ids.reproduce.rq6.replay import SIGNALS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

__all__ = ["FIGURES"]

_FLOOR = 1e-6  # below it an error is rounding
_UNITS = {"AVG lift": "AVG lift (ms)", "ΔΦ of VAR": "ΔΦ of VAR (ms²)"}
_ZOOM = (-600, 800)  # tuples since the onset
_DECOYS: list[dict[str, Any]] = [
    {"color": "#555555", "linestyle": "--"},
    {"color": "#8a8a8a", "linestyle": "-."},
    {"color": "#aaaaaa", "linestyle": "-"},
]


def _draw_cost(tables: Tables) -> Drawing:
    """One line a method, grouped by who plays: latency on the left, error on the right."""
    from matplotlib.figure import Figure as Canvas

    n = max(row["n"] for row in tables["rq6_cost"])
    rows = tables.where("rq6_cost", n=n, aggregate="AVG")
    errors = [row["error"] for row in rows if row["error"] and row["error"] >= _FLOOR]
    exact = min(errors) / 6  # where what has no error is drawn, left of a break in the axis
    drawing = Canvas(figsize=(PAGE, 3.6))
    latency, error = drawing.subplots(1, 2, sharey=True)
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


def _draw_case(tables: Tables) -> Drawing:
    from matplotlib.figure import Figure as Canvas

    facts = tables["rq6_case_facts"][0]
    rows = sorted(tables["rq6_case"], key=lambda row: int(row["tuples"]))
    drawing = Canvas(figsize=(PAGE, 4.6))
    grid = drawing.subplots(3, 2, sharex="col", width_ratios=(1, 1.25))
    for column, near in enumerate((False, True)):
        seen = [row for row in rows if row["near" if near else "far"]]
        if near:
            seen = [row for row in seen if _ZOOM[0] <= row["tuples"] <= _ZOOM[1]]
        x = np.array([row["tuples"] for row in seen])
        top = grid[0][column]
        top.plot(x, [row["average"] for row in seen], color=OURS)
        for k, signal in enumerate(SIGNALS):
            _signals(grid[k + 1][column], x, seen, signal, facts["planted"], named=near)
        for axes in grid[:, column]:
            axes.axvspan(0, min(facts["incident"], x[-1]), color="#f1e6d8", zorder=0)
            axes.set_xlim(x[0], x[-1])
    for row_of, label in zip(grid, ["AVG (ms)", *_UNITS.values()], strict=True):
        row_of[0].set_ylabel(label)
    grid[0][0].set_title("the whole incident (shaded)")
    grid[0][1].set_title("its onset")
    _mark(tables, grid)
    for axes in grid[2]:
        axes.set_xlabel("tuples since the onset")
    grid[2][0].locator_params(axis="x", nbins=4)
    grid[2][0].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}".replace("-", "−"))
    return drawing


def _signals(
    axes: Axes, x: Any, seen: list[dict[str, Any]], signal: str, planted: str, *, named: bool
) -> None:
    names = [name for name in seen[0] if name.startswith(f"{signal}: ")]
    decoys = iter(_DECOYS)
    ends = []
    for name in names:
        label = name.removeprefix(f"{signal}: ")
        style: dict[str, Any] = (
            {"color": OURS, "linewidth": 1.8, "zorder": 3}
            if label == planted
            else {"linewidth": 1.0, **next(decoys)}
        )
        y = [row[name] for row in seen]
        axes.plot(x, y, **style)
        ends.append((y[-1], label, style["color"]))
    if named and signal == SIGNALS[0]:
        _labels(axes, x[-1], ends, planted)


def _labels(axes: Axes, x: float, ends: list[tuple[float, str, str]], planted: str) -> None:
    """The lines' names to the right of them, kept apart."""
    low, high = axes.get_ylim()
    apart = 0.14 * (high - low)
    place = -np.inf
    for y, label, colour in sorted(ends):
        place = max(y, place + apart)
        axes.annotate(
            label, (x, y), xytext=(1.02, (place - low) / (high - low)), textcoords="axes fraction",
            va="center", fontsize=7, color=colour,
            weight="bold" if label == planted else "normal",
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.4},
        )  # fmt: skip


def _mark(tables: Tables, grid: Any) -> None:
    """Where each signal has led for three emits."""
    for k, signal in enumerate(SIGNALS):
        found = tables.where(
            "rq6_leads", rivals="siblings", slide=SLIDE, signal=signal, rule=RULES[0].label
        )
        led = found[0]["led_after"] if found else None
        if led is None or led > _ZOOM[1]:
            continue
        axes = grid[k + 1][1]
        axes.axvline(led, color="black", linewidth=0.9, linestyle=(0, (3, 2)))
        axes.annotate(
            f"leads: {led} tuples", (led, 1.0), xycoords=("data", "axes fraction"), xytext=(4, -9),
            textcoords="offset points", fontsize=7,
        )  # fmt: skip


FIGURES = (
    Figure(
        "rq6-cost",
        "Latency and error of one attribution of AVG, each method against its own estimand. Only "
        "where rows play is that the attribution which IDS computes; where groups play, even an "
        "exact answer is of another game.",
        ("rq6_cost",),
        _draw_cost,
    ),
    Figure(
        "rq6-case",
        "The planted incident through ids.sql: AVG, the lift of AVG and ΔΦ of VAR_POP of four "
        "candidates. Left the whole incident, of which some emits are drawn; right its onset, with "
        "marks where the planted predicate has ranked first for three emits in a row.",
        ("rq6_case", "rq6_case_facts"),
        _draw_case,
    ),
)
