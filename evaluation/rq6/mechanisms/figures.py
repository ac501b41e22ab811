"""The ad hoc mechanisms drawn: what a question costs, over how much of the window it speaks of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.chapter import Figure, Tables
from evaluation.drawing import GREY, STYLES, canvas, label_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

__all__ = ["FIGURES"]

_STYLES = {
    "index assisted": STYLES[0],
    "brute force scan": STYLES[1],
    "uniform sample": STYLES[2],
    "stratified sample": STYLES[3],
    "registered": {**STYLES[5], "color": GREY},
}


def _draw(tables: Tables) -> Drawing:
    drawing, (panel,) = canvas(1, height=2.7)
    ends = []
    for name, style in _STYLES.items():
        rows = tables.where("rq6_mechanisms_questions", mechanism=name)
        rows.sort(key=lambda row: row["selectivity"])
        x = [row["selectivity"] for row in rows]
        y = [1e6 * row["query"].median for row in rows]
        panel.plot(x, y, **style)
        ends.append((x[-1], y[-1], name, style["color"]))
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("selectivity")
    panel.set_ylabel("a question (µs)")
    panel.set_ylim(top=2 * max(y for _, y, _, _ in ends))
    label_lines(panel, ends)
    return drawing


FIGURES = (
    Figure(
        "rq6-mechanisms",
        "What an ad hoc question costs by mechanism, over the share of the rows it holds on (log "
        "scales). The index pays where few rows match; where most do, the planner scans.",
        ("rq6_mechanisms_questions",),
        _draw,
    ),
)
