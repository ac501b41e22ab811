"""RQ5 drawn: what each policy touches as a trace goes on, and a provisional error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.chapter import Figure, Tables
from evaluation.drawing import GREY, STYLES, canvas, label_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

__all__ = ["FIGURES"]

_STYLES = {
    "static": {"color": GREY, "linestyle": "-"},
    "adaptive, f = 10": {k: STYLES[1][k] for k in ("color", "linestyle")},
    "ours": {k: STYLES[0][k] for k in ("color", "linestyle")},
    "oracle": {k: STYLES[2][k] for k in ("color", "linestyle")},
}
_DECADES = 2.6  # of the axis: what comes before is the first few questions


def _touched(tables: Tables) -> Drawing:
    alphas = sorted({row["alpha"] for row in tables["rq5_curve"]})
    drawing, panels = canvas(2, height=2.7, sharey=True)
    finished = []
    for panel, alpha, letter in zip(panels, alphas, "ab", strict=False):
        ends = {}
        for policy, style in _STYLES.items():
            rows = tables.where("rq5_curve", alpha=alpha, policy=policy)
            rows.sort(key=lambda row: row["question"])
            x, y = ([row[key] for row in rows] for key in ("question", "touched"))
            panel.plot(x, y, label=policy, **style)
            ends[policy] = x[-1], y[-1]
        panel.set_yscale("log")
        panel.set_xlabel("questions asked")
        panel.set_title(f"({letter}) α = {alpha}")
        panel.set_xlim(0, ends["static"][0])
        panel.set_ylim(ends["static"][1] / 10**_DECADES, 1.3 * ends["static"][1])
        finished.append((panel, ends))
    panels[0].set_ylabel("tuples touched so far")
    for panel, ends in finished:
        label_lines(panel, [(*end, p, _STYLES[p]["color"]) for p, end in ends.items()])
    return drawing


def _provisional(tables: Tables) -> Drawing:
    rows = sorted(tables["rq5_provisional"], key=lambda row: row["slide"])
    drawing, (panel,) = canvas(1, height=2.1)
    x = [row["slide"] for row in rows]
    y = [row["rows_missed"] for row in rows]
    panel.axhline(0, color=GREY, linewidth=0.8)
    panel.plot(x, y, color=STYLES[0]["color"], drawstyle="steps-post")
    panel.plot(x[-1:], y[-1:], color=STYLES[0]["color"], marker="o")
    side = 1 if y[0] >= 0 else -1
    panel.annotate(
        f"off by {y[0]:+,} of {rows[0]['rows_exact']:,} rows", (x[len(x) // 2], y[len(x) // 2]),
        xytext=(0, -5 * side), textcoords="offset points", ha="center",
        va="top" if side > 0 else "bottom", fontsize=7.5,
    )  # fmt: skip
    panel.annotate(
        "exact rebuild", (x[-1], 0), xytext=(-8, 7 * side), textcoords="offset points",
        ha="right", va="bottom" if side > 0 else "top", fontsize=7.5,
    )  # fmt: skip
    panel.set_ylim(*sorted((-0.25 * y[0] or -1, 1.15 * y[0] or 1)))
    panel.set_xlabel("slides since the promotion")
    panel.set_ylabel("rows counted too many" if side > 0 else "rows counted, less exact")
    return drawing


FIGURES = (
    Figure(
        "rq5-touched",
        "Tuples touched as a Zipfian trace of ad hoc questions goes on, by policy (log scale). "
        "Promotion bends the line away from static; ours comes close to an oracle that knows the "
        "trace.",
        ("rq5_curve",),
        _touched,
    ),
    Figure(
        "rq5-provisional",
        "What a predicate promoted from a sample counts wrong: the same at every slide, and "
        "nothing once the rows inside are counted exactly.",
        ("rq5_provisional",),
        _provisional,
    ),
)
