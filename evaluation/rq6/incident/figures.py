"""The incident drawn in three panels: the average, the lifts, the changes of the variance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.chapter import Figure, Tables
from evaluation.drawing import GREY, OURS, canvas
from evaluation.rq6.incident.leading import RULES
from evaluation.rq6.incident.measuring import SLIDE
from evaluation.rq6.incident.replay import SIGNALS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

__all__ = ["FIGURES"]

_UNITS = {"AVG lift": "AVG lift (ms)", "ΔΦ of VAR": "ΔΦ of VAR (ms²)"}
_ZOOM = (-600, 800)  # tuples since the onset
_DECOYS: list[dict[str, Any]] = [
    {"color": "#555555", "linestyle": "--"},
    {"color": "#8a8a8a", "linestyle": "-."},
    {"color": "#aaaaaa", "linestyle": "-"},
]


def _draw(tables: Tables) -> Drawing:
    facts = tables["rq6_case_facts"][0]
    rows = sorted(tables["rq6_case"], key=lambda row: int(row["tuples"]))
    drawing, panels = canvas(2, height=4.6, lines=3, sharex="col", width_ratios=(1, 1.25))
    grid: Any = np.array(panels, dtype=object).reshape(3, 2)
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
        "rq6-case",
        "The planted incident through ids.sql: AVG, the lift of AVG and ΔΦ of VAR_POP of four "
        "candidates. Left the whole incident, of which some emits are drawn; right its onset, with "
        "marks where the planted predicate has ranked first for three emits in a row (the paper's "
        "Figure 5).",
        ("rq6_case", "rq6_case_facts"),
        _draw,
    ),
)
