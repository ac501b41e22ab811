"""The figures of RQ2: the paper's Figure 2, and what a user would pick instead."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evaluation.drawing import GREY, OURS, STYLES, canvas, label_line, label_lines
from evaluation.tables import Tables, power

_WINDOWS = (1e3, 1e4, 1e5, 1e6)
_BESIDE: dict[str, Any] = {"color": GREY, "linestyle": ":"}


def _throughput(tables: Tables) -> Figure:
    drawing, panels = canvas(2, height=2.9)
    titles = ("(a) throughput, K = 4", "tuples/s"), ("(b) speed-up at |Δ| = 1", "over a scan")
    for axes, (title, label), draw in zip(panels, titles, (_tuples, _speedups), strict=True):
        ends = draw(axes, tables)
        axes.set(xscale="log", yscale="log", xlabel="window size N", ylabel=label, title=title)
        axes.set_xticks(_WINDOWS)
        axes.set_xlim(right=25 * _WINDOWS[-1])
        axes.set_ylim(top=10 * max(y for _, y, _, _ in ends))
        label_lines(axes, ends)
    return drawing


End = tuple[float, float, str, str]


def _tuples(axes: Axes, tables: Tables) -> list[End]:
    ends = []
    for step, marker in ((1, "o"), (10, "^"), (100, "s")):
        cells = f"kept = 'atoms' AND step = {step} AND predicates = 4"
        for column, name, style in (("ids", "IDS", STYLES[0]), ("scan", "scan", STYLES[1])):
            look = style | {"marker": marker}
            named = f"{name}, |Δ| = {step}"
            ends.append(_line(axes, tables, f"{column}_tuples_s", cells, named, look))
    cells = "kept <> 'atoms' AND step = 1 AND predicates = 4"
    ends.append(_line(axes, tables, "ids_tuples_s", cells, "and marginals, |Δ| = 1", _BESIDE))
    for row in tables.where("rq2_algorithm1", contender="Engine.ingest, an Arrow batch of one row"):
        n, speed = row["window"], 1e9 / row["ns_per_tuple"].mean
        axes.plot(n, speed, "*", color=OURS, markersize=8, zorder=3)
        label_line(axes, n, speed, "live engine", color=OURS, xytext=(-6, -5), ha="right")
    return ends


def _speedups(axes: Axes, tables: Tables) -> list[End]:
    ends = {}
    for kept, style in (("=", STYLES[0]), ("<>", _BESIDE)):
        for count, marker in ((1, "o"), (4, "^"), (16, "s"), (64, "D")):
            cells = f"kept {kept} 'atoms' AND step = 1 AND predicates = {count}"
            look = style | {"marker": marker, "markerfacecolor": "none", "linewidth": 0.9}
            look["label"] = f"K = {count}" if kept == "=" else None
            name = "atoms" if kept == "=" else "and marginals"
            ends[kept] = _line(axes, tables, "speedup", cells, name, look)
    axes.plot(_WINDOWS, [n / 2 for n in _WINDOWS], color="#bbbbbb", zorder=0, label="N / 2")
    axes.legend(loc="upper left")
    return list(ends.values())


def _line(
    axes: Axes, tables: Tables, column: str, cells: str, name: str, look: dict[str, Any]
) -> End:
    """A column of some cells of the VAR game against N; where the line ends, and its name."""
    query = f'SELECT "window" AS n, {column}.mean AS y FROM rq2_throughput WHERE {cells}'
    rows = tables.select(f"{query} AND game = 'VAR' ORDER BY n")
    axes.plot([row["n"] for row in rows], [row["y"] for row in rows], **look)
    return rows[-1]["n"], rows[-1]["y"], name, look["color"]


def _alternatives(tables: Tables) -> Figure:
    rows = tables.select(
        """SELECT rows_s.mean AS speed, contender IN ('IDS', 'IDS on Spark') AS ours,
                  contender || CASE WHEN rows < max(rows) OVER () THEN '*' ELSE '' END AS name
           FROM rq2_alternatives WHERE contender <> 'IDS, the same few rows' ORDER BY speed"""
    )
    drawing, (axes,) = canvas(1, height=0.55 + 0.3 * len(rows))
    for place, (speed, ours, _) in enumerate(row.values() for row in rows):
        colour = OURS if ours else GREY
        axes.hlines(place, 0.1, speed, linewidth=0.8, linestyle=":", color=colour)
        axes.plot(speed, place, "o" if ours else "s", markersize=5, color=colour)
        label_line(axes, speed, place, power(speed), color=colour, xytext=(7, 0))
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axes.set(xscale="log", xlabel="rows/s")
    axes.set_xlim(rows[0]["speed"] / 4, rows[-1]["speed"] * 25)
    axes.grid(visible=False, axis="y")
    return drawing


FIGURES = {"rq2-throughput": _throughput, "rq2-alternatives": _alternatives}
