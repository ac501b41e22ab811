"""RQ5 drawn: what each policy touches as a trace goes on, and a provisional error."""

from matplotlib.figure import Figure

from evaluation.drawing import GREY, OURS, STYLES, canvas, label_line, label_lines
from evaluation.tables import Tables

LINES = {"static": {"color": GREY}, "adaptive, f = 10": STYLES[1], "ours": STYLES[0],
         "oracle": STYLES[2]}  # fmt: skip
DECADES = 2.6  # of the axis: what comes before is the first few questions


def _touched(tables: Tables) -> Figure:
    drawing, panels = canvas(2, height=2.7, sharey=True)
    panels[0].set_ylabel("tuples touched so far")
    for panel, alpha, letter in zip(panels, (1, 2), "ab", strict=True):
        ends = []
        for policy, style in LINES.items():
            rows = tables.where("rq5_curve", alpha=alpha, policy=policy)
            x, y = ([row[key] for row in rows] for key in ("question", "touched"))
            panel.plot(x, y, **{**style, "marker": ""})
            ends.append((x[-1], y[-1], policy, style["color"]))
        last, most, *_ = ends[0]  # static's
        panel.set(yscale="log", xlabel="questions asked", title=f"({letter}) α = {alpha}",
                  xlim=(0, last), ylim=(most / 10**DECADES, 1.3 * most))  # fmt: skip
        label_lines(panel, ends)
    return drawing


def _provisional(tables: Tables) -> Figure:
    rows = tables["rq5_provisional"]
    drawing, (panel,) = canvas(1, height=2.1)
    x, y = ([row[key] for row in rows] for key in ("slide", "rows_missed"))
    side = 1 if y[0] >= 0 else -1
    panel.axhline(0, color=GREY, linewidth=0.8)
    panel.plot(x, y, color=OURS, drawstyle="steps-post")
    panel.plot(x[-1:], y[-1:], color=OURS, marker="o")
    label_line(panel, x[len(x) // 2], y[0], f"off by {y[0]:+,} of {rows[0]['rows_exact']:,} rows",
               xytext=(0, -5 * side), ha="center", va="top" if side > 0 else "bottom")  # fmt: skip
    label_line(panel, x[-1], 0, "exact rebuild", xytext=(-8, 7 * side), ha="right",
               va="bottom" if side > 0 else "top")  # fmt: skip
    panel.set(xlabel="slides since the promotion",
              ylabel="rows counted too many" if side > 0 else "rows counted, less exact",
              ylim=sorted((-0.25 * y[0] or -1, 1.15 * y[0] or 1)))  # fmt: skip
    return drawing


FIGURES = {"rq5-touched": _touched, "rq5-provisional": _provisional}
