"""The fan-out of atoms, Spark over rows and cores, and the taxi months, drawn."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from evaluation.beyond.queries import query
from evaluation.drawing import GREY, OURS, STYLES, canvas, label_line, label_lines, plot
from evaluation.tables import Tables

_FILLS = {  # light beside dark, so that neighbours are told apart in grey
    "Manhattan": (OURS, ""), "Queens": ("#f0c987", ""), "Brooklyn": ("#b0613a", ""),
    "Bronx": ("#8fbfa8", "////"), "elsewhere": ("#bdbdbd", "...."),
}  # fmt: skip


def _fanout(tables: Tables) -> Figure:
    drawing, (left, right) = canvas(2, height=2.9)
    rows = tables.select("FROM beyond_fanout ORDER BY predicates")
    labels = dict.fromkeys(row["label"] for row in tables["beyond_fanout"])
    for style, label in zip(STYLES, labels, strict=False):
        mine = [row for row in rows if row["label"] == label]
        given_up = [n for n, row in enumerate(mine) if not row["refined"]]
        ks, atoms = [row["predicates"] for row in mine], [row["signatures"] for row in mine]
        for axes, ys in ((left, atoms), (right, [row["slide_ns"].median for row in mine])):
            axes.plot(ks, ys, label=label if axes is left else None, **style)
            hollow = {**style, "linestyle": "", "markerfacecolor": "white", "markersize": 6}
            axes.plot([ks[n] for n in given_up], [ys[n] for n in given_up], zorder=5, **hollow)
    left.set(title="(a) live atoms", ylabel="live atoms")
    right.set(title="(b) a row of a slide", ylabel="ns a row, slides of 1,000")
    ticks = sorted({row["predicates"] for row in rows})
    for axes in (left, right):
        axes.set(yscale="log", xlabel="registered predicates, K")
        axes.set_xticks(ticks, map(str, ticks))
        axes.minorticks_off()
    right.yaxis.set_major_locator(LogLocator(subs=(1, 3)))  # it spans little more than a decade
    right.yaxis.set_major_formatter("{x:,.0f}")
    window, limit = rows[0]["window"], rows[0]["limit"]
    for value, text, dash, shift in ((window, "N", "-", 5), (limit, "atom limit", "--", -6)):
        left.axhline(value, color=GREY, linewidth=0.9, linestyle=dash, zorder=1)
        label_line(left, 0.6 * ticks[-1], value, text, xytext=(0, shift), color=GREY)
    steep = np.arange(ticks[0], np.log2(8 * window))
    left.plot(steep, 2.0**steep, color=GREY, linewidth=0.9, linestyle=":")
    label_line(left, steep[-1], 2.0 ** steep[-1], "2^K", color=GREY)
    left.set_ylim(2, 16 * window)
    drawing.legend(loc="outside lower center", ncols=3)
    return drawing


def _scaling(tables: Tables) -> Figure:
    drawing, (axes,) = canvas()
    ends = []
    names = {2: "Spark, 2 cores", 1: "Spark, 1 core", 0: "in process"}
    for style, (cores, name) in zip(STYLES, names.items(), strict=False):
        rows = tables.select(f"FROM beyond_scaling WHERE cores = {cores} ORDER BY rows")
        rates = [row["seconds"].rate(row["rows"]) for row in rows]
        plot(axes, [row["rows"] for row in rows], rates, style)
        ends.append((rows[-1]["rows"], rates[-1].mean, name, style["color"]))
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="rows per second")
    low, high = axes.get_xlim()
    axes.set_xlim(low, high * (high / low) ** 0.45)  # room for the names
    label_lines(axes, ends)
    return drawing


def _taxi(tables: Tables) -> Figure:
    found = pd.DataFrame(tables.select(query("stretches"))).set_index("label")
    found = found.rename(columns={name.lower(): name for name in _FILLS})
    drawing, (whole, moved) = canvas(2, height=3.0)
    for axes, parts in ((whole, found), (moved, found - found.iloc[0])):
        bars = {"width": 0.7, "edgecolor": "white", "linewidth": 0.3, "legend": False}
        colors = [color for color, _ in _FILLS.values()]
        parts[[*_FILLS]].plot.bar(stacked=True, ax=axes, xlabel="", color=colors, rot=45, **bars)
        for container, (_, hatch) in zip(axes.containers, _FILLS.values(), strict=True):
            for bar in container:
                bar.set_hatch(hatch)
        average, label = parts["average"].to_numpy(), "their sum: the average"
        axes.plot(average, "kD", markersize=5, markeredgecolor="white", label=label)
        axes.grid(axis="x", visible=False)
        axes.axhline(0, color="black", linewidth=0.6)
    whole.set(title="(a) What the average fare is made of", ylabel="dollars")
    moved.set(title=f"(b) Who moved it since {found.index[0]}", ylabel="dollars more or less")
    low, high = whole.get_ylim()
    whole.set_ylim(low, high + 0.42 * (high - low))  # room for the legend
    whole.legend(ncols=2, loc="upper left")
    return drawing


FIGURES = {"beyond-fanout": _fanout, "beyond-scaling": _scaling, "beyond-taxi": _taxi}
