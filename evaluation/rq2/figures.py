"""The figures of RQ2: the paper's Figure 2, and what a user would pick instead."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evaluation.drawing import GREY, OURS, STYLES, canvas, label_line, label_lines
from evaluation.tables import Tables, power

_BESIDE: dict[str, Any] = {"color": GREY, "linestyle": ":"}
Line = tuple[str, str, str, dict[str, Any]]  # column, cells, name, look


def _throughput(tables: Tables) -> Figure:
    tuples = [
        (f"{column}_tuples_s", f"kept = 'atoms' AND step = {step} AND predicates = 4",
         f"{name}, |Δ| = {step}", style | {"marker": marker})
        for step, marker in ((1, "o"), (10, "^"), (100, "s"))
        for column, name, style in (("ids", "IDS", STYLES[0]), ("scan", "scan", STYLES[1]))
    ]  # fmt: skip
    marginals = "kept <> 'atoms' AND step = 1 AND predicates = 4"
    tuples.append(("ids_tuples_s", marginals, "and marginals, |Δ| = 1", _BESIDE))
    speedups = [
        ("speedup", f"kept {kept} 'atoms' AND step = 1 AND predicates = {count}",
         f"{name}K = {count}", style | {"marker": marker, "markerfacecolor": "none"})
        for kept, name, style in (("=", "", STYLES[0]), ("<>", "and marginals, ", _BESIDE))
        for count, marker in ((1, "o"), (4, "^"), (16, "s"), (64, "D"))
    ]  # fmt: skip
    drawing, (left, right) = canvas(2, height=3.2)
    for row in tables.where("rq2_algorithm1", contender="Engine.ingest, an Arrow batch of one row"):
        n, speed = row["window"], 1e9 / row["ns_per_tuple"].mean
        left.plot(n, speed, "*", color=OURS, markersize=8, zorder=3)
        label_line(left, n, speed, "live engine", color=OURS, xytext=(-6, -5), ha="right")
    right.plot((1e3, 1e6), (5e2, 5e5), color="#bbbbbb", zorder=0)
    label_line(right, 1e3, 5e2, "N / 2", color=GREY, xytext=(-4, 12))
    _panel(left, tables, "(a) throughput, K = 4", "tuples/s", tuples)
    _panel(right, tables, "(b) speed-up at |Δ| = 1", "speed-up over a scan", speedups)
    return drawing


def _panel(axes: Axes, tables: Tables, title: str, label: str, lines: list[Line]) -> None:
    """Lines of the VAR game's cells against N, each named where it ends."""
    ends = []
    for column, cells, name, look in lines:
        query = f'SELECT "window" AS n, {column}.mean AS y FROM rq2_throughput WHERE {cells}'
        rows = tables.select(f"{query} AND game = 'VAR' ORDER BY n")
        axes.plot([row["n"] for row in rows], [row["y"] for row in rows], linewidth=0.9, **look)
        ends.append((rows[-1]["n"], rows[-1]["y"], name, look["color"]))
    axes.set(xscale="log", yscale="log", xlabel="window size N", ylabel=label, title=title)
    axes.set_xticks([1e3, 1e4, 1e5, 1e6])
    axes.set_xlim(right=6e7)
    axes.set_ylim(top=20 * max(y for _, y, _, _ in ends))
    label_lines(axes, ends)


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
