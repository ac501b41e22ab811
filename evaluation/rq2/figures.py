"""The figures of RQ2: the paper's Figure 2, and what a user would pick instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evaluation.drawing import GREY, OURS, STYLES, canvas, label_line
from evaluation.formatting import power
from evaluation.tables import Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BESIDE: dict[str, Any] = {"color": GREY, "linestyle": ":"}
_KEPT = {"atoms": STYLES[0], "atoms, marginals, window": _BESIDE}
_NAMED = dict(zip(_KEPT, ("atoms", "marginals and\nwindow too"), strict=True))


def _throughput(tables: Tables) -> Figure:
    drawing, (left, right) = canvas(2, height=2.9)
    _tuples(left, tables)
    _speedups(right, tables)
    return drawing


def _tuples(axes: Axes, tables: Tables) -> None:
    ours, scan = ({**STYLES[k]} for k in (0, 1))
    fastest = 0.0
    for step, marker in ((1, "o"), (10, "^"), (100, "s")):
        same = f"kept = 'atoms' AND step = {step} AND predicates = 4"
        x, y = _line(axes, tables, "ids_tuples_s", same, **ours | {"marker": marker})
        fastest = max(fastest, *y)
        x, y = _line(axes, tables, "scan_tuples_s", same, **scan | {"marker": marker})
        label_line(axes, x[-1], y[-1], f"scan, |Δ| = {step}", color=scan["color"])
    same = "kept <> 'atoms' AND step = 1 AND predicates = 4"
    x, y = _line(axes, tables, "ids_tuples_s", same, marker="x", **_BESIDE)
    label_line(axes, x[-1], y[-1], "marginals and\nwindow too", color=GREY)
    label_line(axes, x[0], fastest, "IDS, |Δ| = 1 (●), 10 (▲), 100 (■)", color=OURS, xytext=(0, 9))
    for row in tables.where("rq2_algorithm1", contender="Engine.ingest, an Arrow batch of one row"):
        speed = 1e9 / row["ns_per_tuple"].mean
        axes.plot(row["window"], speed, "*", color=OURS, markersize=8, zorder=3)
        beside: dict[str, Any] = {"color": OURS, "xytext": (-6, -5), "ha": "right"}
        label_line(axes, row["window"], speed, "live engine, |Δ| = 1", **beside)
    axes.set(xscale="log", yscale="log", xlabel="window size N", ylabel="tuples/s", xticks=x)
    axes.set_title("(a) throughput, K = 4")
    axes.set_ylim(top=fastest * 12)
    axes.set_xlim(right=x[-1] * 14)


def _speedups(axes: Axes, tables: Tables) -> None:
    for kept, style in _KEPT.items():
        for count, marker in ((1, "o"), (4, "^"), (16, "s"), (64, "D")):
            same = f"kept = '{kept}' AND step = 1 AND predicates = {count}"
            hollow = {"marker": marker, "markerfacecolor": "none", "linewidth": 0.9}
            named = {"label": f"K = {count}"} if kept == "atoms" else {}
            x, y = _line(axes, tables, "speedup", same, **style | hollow | named)
        label_line(axes, 1.1 * x[-1], y[-1], _NAMED[kept], color=style["color"])
    axes.plot(x, [n / 2 for n in x], color="#bbbbbb", linewidth=0.8, zorder=0)
    label_line(axes, x[0], x[0] / 2, "N / 2", color="#777777", xytext=(9, -5))
    axes.set(xscale="log", yscale="log", xlabel="window size N", xticks=x)
    axes.set_ylabel("speed-up over a scan")
    axes.set_title("(b) speed-up at |Δ| = 1")
    axes.set_xlim(right=x[-1] * 9)
    axes.legend(loc="upper left")


def _line(
    axes: Axes, tables: Tables, column: str, where: str, **style: Any
) -> tuple[list[float], list[float]]:
    """A column of the VAR game's cells against N."""
    cells = f"""SELECT "window" AS x, {column}.mean AS y FROM rq2_throughput
                WHERE game = 'VAR' AND {where} ORDER BY x"""
    x, y = zip(*((row["x"], row["y"]) for row in tables.select(cells)), strict=True)
    axes.plot(x, y, **style)
    return list(x), list(y)


def _alternatives(tables: Tables) -> Figure:
    rows = tables.select(
        """SELECT contender, rows_s.mean AS speed, contender IN ('IDS', 'IDS on Spark') AS ours,
                  contender || CASE WHEN rows < max(rows) OVER () THEN '*' ELSE '' END AS name
           FROM rq2_alternatives WHERE contender <> 'IDS, the same few rows' ORDER BY speed"""
    )
    drawing, (axes,) = canvas(1, height=0.55 + 0.3 * len(rows))
    for place, row in enumerate(rows):
        speed, colour = row["speed"], OURS if row["ours"] else GREY
        axes.hlines(place, 0.1, speed, color=colour, linewidth=0.8, linestyle=":")
        axes.plot(speed, place, "o" if row["ours"] else "s", color=colour, markersize=5)
        weight = "bold" if row["ours"] else "normal"
        label_line(axes, speed, place, power(speed), color=colour, xytext=(7, 0), weight=weight)
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axes.set(xscale="log", xlabel="rows/s")
    axes.set_xlim(rows[0]["speed"] / 4, rows[-1]["speed"] * 25)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.grid(visible=False, axis="y")
    return drawing


FIGURES = {"rq2-throughput": _throughput, "rq2-alternatives": _alternatives}
