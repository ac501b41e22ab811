"""The figures of the pipeline on Spark and of the taxi months."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evaluation.beyond.scaling import IN_PROCESS
from evaluation.beyond.stretches import NAMES, stretches
from evaluation.chapter import Figure, Tables
from evaluation.drawing import OURS, STYLES, canvas, label_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

__all__ = ["FIGURES"]

Amounts = npt.NDArray[np.float64]

_LABELS = {2: "Spark, 2 cores", 1: "Spark, 1 core", IN_PROCESS: "in process"}
# Light beside dark, so that neighbours are told apart in grey.
_FILLS = {
    "Manhattan": (OURS, ""),
    "Queens": ("#f0c987", ""),
    "Brooklyn": ("#b0613a", ""),
    "Bronx": ("#8fbfa8", "////"),
    "elsewhere": ("#bdbdbd", "...."),
}


def _draw_scaling(tables: Tables) -> Drawing:
    drawing, (axes,) = canvas()
    ends = []
    for style, cores in zip(STYLES, _LABELS, strict=False):
        rows = sorted(tables.where("beyond_scaling", cores=cores), key=lambda row: row["rows"])
        if not rows:
            continue
        counts = np.array([row["rows"] for row in rows])
        rates = [row["seconds"] for row in rows]
        mean = counts / np.array([one.mean for one in rates])
        spread = np.array([[min(one.half_width / one.mean, 0.9) for one in rates]] * 2) * mean
        axes.errorbar(counts, mean, spread, capsize=2, **style)
        ends.append((float(counts[-1]), float(mean[-1]), _LABELS[cores], style["color"]))
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="rows per second")
    low, high = axes.get_xlim()
    axes.set_xlim(low, high * (high / low) ** 0.45)  # room for the names
    label_lines(axes, ends)
    return drawing


def _draw_taxi(tables: Tables) -> Drawing:
    found = stretches(tables["beyond_taxi_days"])
    drawing, (whole, moved) = canvas(2, height=3.0)
    parts = {name: np.array([one.parts[name] for one in found]) for name in NAMES}
    average = np.array([one.average for one in found])
    _stack(whole, parts, average)
    _stack(moved, {name: part - part[0] for name, part in parts.items()}, average - average[0])
    whole.set(title="(a) What the average fare is made of", ylabel="dollars")
    moved.set(title=f"(b) Who moved it since {found[0].label}", ylabel="dollars more or less")
    for axes in (whole, moved):
        axes.set_xticks(range(len(found)), [one.label for one in found], rotation=45, ha="right")
        axes.grid(axis="x", visible=False)
        axes.axhline(0, color="black", linewidth=0.6)
    low, high = whole.get_ylim()
    whole.set_ylim(low, high + 0.42 * (high - low))  # room for the legend
    whole.legend(ncols=2, loc="upper left")
    return drawing


def _stack(axes: Axes, parts: Mapping[str, Amounts], total: Amounts) -> None:
    """Parts above and below zero, in one order; their sum is the mark."""
    places = np.arange(len(total))
    above, below = np.zeros(len(total)), np.zeros(len(total))
    for name, part in parts.items():
        color, hatch = _FILLS[name]
        base = np.where(part >= 0, above, below)
        axes.bar(
            places, part, bottom=base, width=0.7, color=color, hatch=hatch, edgecolor="white",
            linewidth=0.3, label=name,
        )  # fmt: skip
        above, below = above + np.maximum(part, 0), below + np.minimum(part, 0)
    axes.plot(
        places, total, linestyle="", marker="D", markersize=5, color="black",
        markeredgecolor="white", label="their sum: the average",
    )  # fmt: skip


FIGURES = (
    Figure(
        "beyond-scaling",
        "Spark's rows per second grow with the rows there are, as its fixed costs are shared; the "
        "process alone is faster on one machine. From Parquet to the last emit; the bars are 95 % "
        "t-intervals.",
        ("beyond_scaling",),
        _draw_scaling,
    ),
    Figure(
        "beyond-taxi",
        "The average fare of a week's taxi trips, and the boroughs' parts of it (a): they add up "
        "to it in every window, so their changes (b) add up to its change.",
        ("beyond_taxi_days",),
        _draw_taxi,
    ),
)
