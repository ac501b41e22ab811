"""The figures of RQ2: the paper's Figure 2, and what a user would pick instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evaluation.chapter import Figure, Tables
from evaluation.drawing import OURS, STYLES, canvas, label_line
from evaluation.formatting import power
from evaluation.rq2 import alternatives, on_spark
from evaluation.rq2.findings import cells
from evaluation.rq2.maintaining import ATOMS, EVERYTHING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

__all__ = ["FIGURES"]

_BESIDE: dict[str, Any] = {"color": "#6f6f6f", "linestyle": ":"}
_MARKERS = {1: "o", 10: "^", 100: "s"}
_HOLLOW = {1: "o", 4: "^", 16: "s", 64: "D"}


def _throughput(tables: Tables) -> Drawing:
    drawing, (left, right) = canvas(2, height=2.9)
    _tuples(left, tables)
    _speedups(right, tables)
    return drawing


def _tuples(axes: Axes, tables: Tables) -> None:
    ours, scan = STYLES[0], STYLES[1]
    same: dict[str, Any] = {"game": "VAR", "predicates": 4}
    for step, marker in _MARKERS.items():
        found = cells(tables, step=step, kept=ATOMS, **same)
        _line(axes, found, "ids_tuples_s", color=ours["color"], linestyle="-", marker=marker)
        x, y = _line(
            axes, found, "scan_tuples_s", color=scan["color"], linestyle="--", marker=marker
        )
        label_line(axes, x[-1], y[-1], f"scan, |Δ| = {step}", color=scan["color"])
    every = cells(tables, step=1, kept=EVERYTHING, **same)
    x, y = _line(axes, every, "ids_tuples_s", marker="x", **_BESIDE)
    label_line(axes, x[-1], y[-1], "marginals and\nwindow too", color=_BESIDE["color"])
    fastest = max(row["ids_tuples_s"].mean for row in cells(tables, kept=ATOMS, **same))
    axes.annotate(
        "IDS, |Δ| = 1 (●), 10 (▲), 100 (■)",
        (x[0], fastest), xytext=(0, 6), textcoords="offset points", fontsize=7.5, color=OURS,
    )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="window size N", ylabel="tuples/s")
    axes.set_title("(a) throughput, K = 4")
    axes.set_ylim(top=fastest * 12)
    axes.set_xlim(right=x[-1] * 14)
    axes.set_xticks(x)


def _speedups(axes: Axes, tables: Tables) -> None:
    for kept, style in ((ATOMS, STYLES[0]), (EVERYTHING, _BESIDE)):
        x: list[float] = []
        y: list[float] = []
        for count, marker in _HOLLOW.items():
            found = cells(tables, step=1, kept=kept, game="VAR", predicates=count)
            x, y = _line(
                axes, found, "speedup", color=style["color"], linestyle=style["linestyle"],
                linewidth=0.9, marker=marker, markerfacecolor="none", markersize=4.5,
                label=f"K = {count}" if kept == ATOMS else None,
            )  # fmt: skip
        lines = {ATOMS: "atoms", EVERYTHING: "marginals and\nwindow too"}
        label_line(axes, 1.1 * x[-1], y[-1], lines[kept], color=style["color"])
    axes.plot(x, [n / 2 for n in x], color="#bbbbbb", linewidth=0.8, zorder=0)
    axes.annotate(
        "N / 2", (x[0], x[0] / 2), xytext=(9, -5), textcoords="offset points",
        fontsize=7, color="#777777",
    )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="window size N", ylabel="speed-up over a scan")
    axes.set_title("(b) speed-up at |Δ| = 1")
    axes.set_xlim(right=x[-1] * 9)
    axes.set_xticks(x)
    axes.legend(loc="upper left")


def _line(
    axes: Axes, rows: list[dict[str, Any]], column: str, **style: Any
) -> tuple[list[float], list[float]]:
    x = [float(row["window"]) for row in rows]
    y = [float(row[column].mean) for row in rows]
    axes.plot(x, y, **style)
    return x, y


def _alternatives(tables: Tables) -> Drawing:
    rows = [r for r in tables["rq2_alternatives"] if r["contender"] != on_spark.IN_PROCESS]
    rows.sort(key=lambda row: float(row["rows_s"].mean))
    drawing, (axes,) = canvas(1, height=0.55 + 0.3 * len(rows))
    most = max(int(row["rows"]) for row in rows)
    names = []
    for place, row in enumerate(rows):
        speed = row["rows_s"]
        ours = row["contender"] in (alternatives.OURS, on_spark.SPARK_SQL)
        colour = OURS if ours else _BESIDE["color"]
        axes.hlines(place, 0.1, speed.mean, color=colour, linewidth=0.8, linestyle=":")
        axes.plot(speed.mean, place, marker="o" if ours else "s", color=colour, markersize=5)
        axes.annotate(
            power(speed.mean), (speed.mean, place), xytext=(7, 0), textcoords="offset points",
            va="center", fontsize=7.5, color=colour, weight="bold" if ours else "normal",
        )  # fmt: skip
        names.append(row["contender"] + ("*" if row["rows"] < most else ""))
    axes.set_yticks(range(len(rows)), names)
    speeds = [float(row["rows_s"].mean) for row in rows]
    axes.set(xscale="log", xlabel="rows/s")
    axes.set_xlim(min(speeds) / 4, max(speeds) * 25)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.grid(visible=False, axis="y")
    return drawing


FIGURES = (
    Figure(
        "rq2-throughput",
        "Throughput against window size (a): the slide loop is flat in N, a scan of every window "
        "falls as 1/N. Speed-up at |Δ| = 1 for each K (b); on the line N / 2 a row would cost as "
        "much in a slide as in a scan. The VAR game; the paper's Figure 2.",
        ("rq2_throughput",),
        _throughput,
    ),
    Figure(
        "rq2-alternatives",
        "The paper's Listing 1, with four regions and an emit at every row, by IDS and by what a "
        "user would pick instead. Starred: on fewer rows, see the table; Spark's window functions "
        "give sums only, no attribution.",
        ("rq2_alternatives",),
        _alternatives,
    ),
)
