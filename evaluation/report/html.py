"""An edition as one HTML page that needs nothing else: style and figures are inside."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from evaluation.report.chapter_page import chapter_page
from evaluation.report.facts import VERDICTS, WARNING, facts, heading, tallies, verdict
from evaluation.report.markup import Markup, element, scrolled
from evaluation.report.style import STYLE

if TYPE_CHECKING:
    from evaluation.publishing import Edition

__all__ = ["html"]

_TITLE = "The evaluation of IDS, run again"
_LEAD = (
    "The paper's research questions, measured anew; each of its numbers stands beside ours. "
    "Everything on this page is drawn from the records named at the end of each chapter."
)


def html(edition: Edition) -> str:
    """The page."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", _TITLE),
        element("style", Markup(STYLE)),
    )
    body = element(
        "body",
        element("a", "Skip to the summary", href="#summary", class_="skip"),
        element("header", element("h1", _TITLE), element("p", _LEAD)),
        _contents(edition),
        element("main", _summary(edition), *map(chapter_page, edition.parts)),
        element("footer", element("p", "Made by python -m evaluation.", class_="note")),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _contents(edition: Edition) -> Markup:
    links = [("summary", "Summary"), *((p.chapter.key, heading(p.chapter)) for p in edition.parts)]
    listed = [element("li", element("a", title, href=f"#{key}")) for key, title in links]
    return element("nav", element("p", "Contents"), element("ol", *listed), aria_label="Contents")


def _summary(edition: Edition) -> Markup:
    said = [element("p", WARNING, class_="warning")] if edition.size == "quick" else []
    said.append(element("p", verdict(edition), class_="verdict"))
    made = [(element("dt", name), element("dd", told)) for name, told in facts(edition)]
    return element(
        "section",
        element("h2", "Summary", id="summary-title"),
        *said,
        _tallies(edition),
        element("dl", *chain.from_iterable(made)),
        id="summary",
        aria_labelledby="summary-title",
    )


def _tallies(edition: Edition) -> Markup:
    """How often each chapter is better, equal, worse."""
    head = [element("th", "chapter", scope="col")]
    head += [element("th", name, scope="col", class_="n") for name in VERDICTS]
    rows = []
    for chapter, counts in tallies(edition):
        link = element("a", heading(chapter), href=f"#{chapter.key}")
        cells = [element("td", str(count), class_="n") for count in counts]
        rows.append(element("tr", element("th", link, scope="row"), *cells))
    table = element("table", element("thead", element("tr", *head)), element("tbody", *rows))
    return scrolled("Verdicts by chapter", table) if rows else Markup()
