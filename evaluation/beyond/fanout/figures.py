"""The fan-out of atoms drawn: how many live, and what a row of a slide costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evaluation.chapter import Figure, Tables
from evaluation.drawing import GREY, STYLES, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

__all__ = ["FIGURES"]

Found = dict[str, Any]


def _draw(tables: Tables) -> Drawing:
    from matplotlib.ticker import LogLocator, StrMethodFormatter

    rows = tables["beyond_fanout"]
    drawing, (left, right) = canvas(2, height=2.9)
    labels = list(dict.fromkeys(row["label"] for row in rows))
    for style, label in zip(STYLES, labels, strict=False):
        mine = tables.where("beyond_fanout", label=label)
        mine.sort(key=lambda row: int(row["predicates"]))
        at = [row["predicates"] for row in mine]
        left.plot(at, [row["signatures"] for row in mine], label=label, **style)
        right.plot(at, [row["slide_ns"].median for row in mine], **style)
        for axes, name in ((left, "signatures"), (right, "slide_ns")):
            _mark_given_up(axes, mine, name, style)
    left.set_title("(a) live atoms")
    left.set_ylabel("live atoms")
    right.set_title("(b) a row of a slide")
    right.set_ylabel("ns a row, slides of 1,000")
    for axes in (left, right):
        axes.set_yscale("log")
        ticks = sorted({row["predicates"] for row in rows})
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.set_xlabel("registered predicates, K")
    right.yaxis.set_major_locator(LogLocator(subs=(1, 3)))  # it spans little more than a decade
    right.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    _guides(left, rows)
    drawing.legend(loc="outside lower center", ncols=3)
    return drawing


def _mark_given_up(axes: Axes, rows: list[Found], name: str, style: dict[str, Any]) -> None:
    """Hollow where the atoms were given up."""
    for row in rows:
        if not row["refined"]:
            value = row[name] if name == "signatures" else row[name].median
            axes.plot(
                row["predicates"], value, marker=style["marker"], color=style["color"],
                markerfacecolor="white", markersize=6, zorder=5,
            )  # fmt: skip


def _guides(axes: Axes, rows: list[Found]) -> None:
    """The rows of the window, the limit, and the beginning of 2^K."""
    window, every = rows[0]["window"], sorted({row["predicates"] for row in rows})
    least, free = every[0], 0.6 * every[-1]
    for value, text, dash, shift in (
        (window, "N", "-", 2),
        (rows[0]["limit"], "atom limit", "--", -8),
    ):
        axes.axhline(value, color=GREY, linewidth=0.9, linestyle=dash, zorder=1)
        axes.annotate(
            text, (free, value), xytext=(0, shift), textcoords="offset points", fontsize=7,
            color="#555555",
        )  # fmt: skip
    top = 8 * window
    steepest = [k for k in range(least, least + 64) if 2**k <= top]
    axes.plot(steepest, [2**k for k in steepest], color=GREY, linewidth=0.9, linestyle=":")
    axes.annotate(
        "2^K", (steepest[-1], 2 ** steepest[-1]), xytext=(4, -4), textcoords="offset points",
        fontsize=7, color="#555555",
    )  # fmt: skip
    axes.set_ylim(2, 2 * top)


FIGURES = (
    Figure(
        "beyond-fanout",
        "Fan-out of atoms. (a) Live atoms against the number of registered predicates, by schema; "
        "they are bounded by the rows of the window, N, and by what the columns can hold, far "
        "below 2^K. (b) What a row costs in a slide through the engine, the median of five. "
        "Hollow: past the limit, where the engine keeps the registered predicates alone.",
        ("beyond_fanout",),
        _draw,
    ),
)
