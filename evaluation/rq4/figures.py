"""The chapter's figure, in the paper's three panels: error, bounds, ingest cost, each against r."""

from typing import Any

from matplotlib.figure import Figure

from evaluation.drawing import GREY, STYLES, canvas, label_lines, plot
from evaluation.step import Repeated
from evaluation.tables import Tables

THIN: dict[str, Any] = {"color": STYLES[1]["color"], "linestyle": "-", "linewidth": 0.8}
DASHED: dict[str, Any] = {"color": GREY, "linestyle": (0, (4, 3)), "linewidth": 1.0}


def _error(of: str, game: str = "AVG", way: str = "extremes whole") -> str:
    """The median over predicates by r, in % of the aggregate; where there is an error at all."""
    return f"""SELECT r, median(100 * {of} / worth) AS y FROM rq4_error
               WHERE way = '{way}' AND game = '{game}' AND kind = 'equality'
                 AND observed > 1e-9 * abs(exact) GROUP BY r ORDER BY r"""


ROOT = f"""SELECT r, first(y) OVER by_r / 3 * sqrt(first(r) OVER by_r / r) AS y
           FROM ({_error("mae")}) WINDOW by_r AS (ORDER BY r)"""
COST = """SELECT r, scaled(ns, 1e-3) AS y FROM rq4_ingest WHERE contender = '{}' ORDER BY r"""
SAMPLERS = (("eager", 1, "eager domination"), ("priority", 3, "priority-sample"),
            ("engine, all", 5, "engine with a sample"), ("WindowSample", 0, "WindowSample"),
            ("chain", 2, "chain-sample"), ("lazy loop", 4, "lazy sweeps"))  # fmt: skip
# Each panel's title, unit, room to the right for the names of its lines, and the lines.
PANELS = (
    ("(a) Error", "error, % of the aggregate", 9, [
        ("VAR_POP", STYLES[1], _error("mae", "VAR_POP")), ("AVG", STYLES[0], _error("mae")),
        ("COUNT", STYLES[2], _error("mae", "COUNT")), ("$r^{-1/2}$", DASHED, ROOT),
        ("VAR_POP,\nplain", THIN, _error("mae", "VAR_POP", "without replacement")),
    ]),
    ("(b) Bounds for AVG", "% of the aggregate", 60, [
        ("Eq. 6", STYLES[1], _error("eq6", way="without replacement")),
        ("Hoeffding–Serfling", STYLES[3], _error("bound", way="Hoeffding")),
        ("Bernstein–Serfling", STYLES[2], _error("bound", way="without replacement")),
        ("ours", STYLES[0], _error("bound")), ("observed", STYLES[5], _error("observed")),
    ]),
    ("(c) Ingest cost", "µs a tuple", 60,
     [(name, STYLES[at], COST.format(contender)) for name, at, contender in SAMPLERS]),
)  # fmt: skip


def _sampling(tables: Tables) -> Figure:
    drawing, panels = canvas(3, height=2.9)
    for axes, (title, unit, room, lines) in zip(panels, PANELS, strict=True):
        ends = []
        for name, style, query in lines:
            rows = tables.select(query)
            if rows:
                x, y = ([row[key] for row in rows] for key in ("r", "y"))
                plot(axes, x, y, style)
                end = y[-1].mean if isinstance(y[-1], Repeated) else y[-1]
                ends.append((x[-1], end, name, style["color"]))
        axes.set(xscale="log", yscale="log", xlabel="sample size r", ylabel=unit, title=title)
        first, last = axes.get_xlim()
        axes.set_xlim(first, last * room)
        axes.set_xticks([10.0**k for k in range(1, 7) if first <= 10.0**k <= last])
        axes.set_xticks([], minor=True)
        label_lines(axes, ends)
    return drawing


FIGURES = {"rq4-sampling": _sampling}
