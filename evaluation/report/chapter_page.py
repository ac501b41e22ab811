"""A chapter as a section of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from evaluation.chapter import Comparison, Figure, Table
from evaluation.formatting import times
from evaluation.report.columns import numeric
from evaluation.report.facts import (
    BETTER,
    KEY,
    LONG,
    UNEXPLAINED,
    heading,
    left_out,
    printed,
    quantity,
)
from evaluation.report.inline import inlined, points
from evaluation.report.markup import Markup, element, joined, scrolled

if TYPE_CHECKING:
    from evaluation.publishing import Part

__all__ = ["chapter_page"]

_MARKS = {"better": "▲ better", "equal": "= equal", "worse": "▼ worse", "": "–"}
_COLUMNS = (
    ("quantity", False),
    ("paper", True),
    ("ours", True),
    ("ratio", True),
    ("verdict", False),
    ("in the paper", False),
)


def chapter_page(part: Part) -> Markup:
    """Question, remarks, our numbers beside the paper's, figures, tables, and the data behind."""
    key, section = part.chapter.key, part.section
    inside = [
        element("h2", heading(part.chapter), id=f"{key}-title"),
        element("p", part.chapter.question, class_="question"),
        joined(element("p", remark) for remark in section.remarks),
    ]
    if section.comparisons:
        inside += [
            element("h3", "Beside the paper"),
            _beside(section.comparisons, heading(part.chapter)),
            element("p", KEY, class_="key"),
        ]
    drawn = [figure for figure in part.chapter.figures if figure.name in part.figures]
    if drawn:
        figures = [_figure(figure, part.figures[figure.name]) for figure in drawn]
        inside += [element("h3", "Figures" if len(drawn) > 1 else "Figure")]
        inside += [element("div", *figures, class_="figures")]
    if section.tables:
        inside += [element("h3", "Tables" if len(section.tables) > 1 else "Table")]
        inside += map(_table, section.tables)
    if part.skipped:
        inside += [element("h3", "Left out"), _left_out(part.skipped)]
    inside += [element("h3", "Data"), _data(part)]
    return element("section", *inside, id=key, aria_labelledby=f"{key}-title")


def _beside(comparisons: Sequence[Comparison], title: str) -> Markup:
    """A table that a narrow screen shows row by row; told its roles, it stays one to all."""
    head = [
        element("th", name, scope="col", role="columnheader", class_="n" if flush else None)
        for name, flush in _COLUMNS
    ]
    body = list(_compared(comparisons))
    return scrolled(
        f"The paper's numbers and ours: {title}",
        element(
            "table",
            element("thead", element("tr", *head, role="row"), role="rowgroup"),
            element("tbody", *body, role="rowgroup"),
            class_="beside",
            role="table",
        ),
    )


def _compared(comparisons: Sequence[Comparison]) -> Iterator[Markup]:
    """A row each; beneath those that are worse for one reason, the reason, in full only once."""
    told: dict[str, str] = {}
    for one, after in zip_longest(comparisons, comparisons[1:]):
        yield _row(one)
        if one.verdict == "worse" and not _shared(one, after):
            reason = one.reason or UNEXPLAINED
            why = f"as for {told[reason]}, above." if reason in told else reason
            told.setdefault(reason, one.what)
            cell = element("td", element("b", "Why: "), why, colspan="6", role="cell")
            yield element("tr", cell, class_="reason", role="row")


def _shared(one: Comparison, after: Comparison | None) -> bool:
    return after is not None and after.verdict == "worse" and after.reason == one.reason


def _row(one: Comparison) -> Markup:
    numbers = (printed(one.paper, one.unit), quantity(one.ours, one.unit), times(one.ratio))
    texts = (*numbers, _MARKS[one.verdict], one.where)
    classes = ("n", "n", "n", f"mark {one.verdict}".rstrip(), "mark")
    cells = [
        element("td", text, class_=named, role="cell", data_label=label if flush else None)
        for text, named, (label, flush) in zip(texts, classes, _COLUMNS[1:], strict=True)
    ]
    what = element("th", f"{one.what}\u00a0{BETTER[one.better]}", scope="row", role="rowheader")
    worse = "is-worse" if one.verdict == "worse" else None
    return element("tr", what, *cells, class_=worse, role="row")


def _figure(figure: Figure, svg: str) -> Markup:
    alt = re.split(r"(?<=[.!?])\s", figure.caption, maxsplit=1)[0]
    drawing = scrolled(f"Figure: {alt}", inlined(svg, figure.name, alt), "card")
    natural = f"--natural:{points(svg):g}pt"
    return element("figure", drawing, element("figcaption", figure.caption), style=natural)


def _table(table: Table) -> Markup:
    flush = ["n" if numeric(table.rows, at) else None for at in range(len(table.header))]
    head = [
        element("th", name, scope="col", class_=side)
        for name, side in zip(table.header, flush, strict=True)
    ]
    body = [
        element("tr", *(element("td", t, class_=side) for t, side in zip(row, flush, strict=True)))
        for row in table.rows
    ]
    parts = [element("thead", element("tr", *head)), element("tbody", *body)]
    note = element("p", table.note, class_="note") if table.note else Markup()
    if len(table.rows) <= LONG:
        caption = element("caption", table.title)
        return joined([scrolled(table.title, element("table", caption, *parts)), note])
    named = element("summary", element("b", table.title), f" ({len(table.rows)} rows)")
    return element("details", named, scrolled(table.title, element("table", *parts)), note)


def _left_out(skipped: dict[str, str]) -> Markup:
    return element(
        "ul",
        *(element("li", f"{', '.join(steps)}: {why}.") for why, steps in left_out(skipped)),
    )


def _data(part: Part) -> Markup:
    lines = []
    for label, directory, ending, names in (
        ("Tables as CSV", "tables", "csv", part.tables),
        ("Records as JSON", "records", "json", part.steps),
    ):
        links = [element("a", name, href=f"{directory}/{name}.{ending}") for name in names]
        spaced = [piece for link in links for piece in (", ", link)][1:]
        if links:
            lines.append(element("p", f"{label}: ", *spaced, class_="files"))
    return joined(lines)
