"""An edition as Markdown: what ``docs/evaluation.md`` is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from evaluation.chapter import Comparison, Table
from evaluation.formatting import times
from evaluation.report.columns import numeric
from evaluation.report.facts import (
    BETTER,
    KEY,
    LONG,
    PAPER,
    VERDICTS,
    WARNING,
    facts,
    heading,
    left_out,
    printed,
    quantity,
    reasons,
    tallies,
    verdict,
)

if TYPE_CHECKING:
    from evaluation.publishing import Edition, Part

__all__ = ["markdown"]


def markdown(edition: Edition, figures: str = "figures") -> str:
    """The whole evaluation; ``figures`` is the path to the figures from where it will lie.

    Tables and records lie beside the figures.
    """
    place = PurePosixPath(figures).parent
    blocks = [_head(edition, place), *_summary(edition)]
    for part in edition.parts:
        blocks += _chapter(part, PurePosixPath(figures), place)
    return "\n\n".join(block for block in blocks if block) + "\n"


def _head(edition: Edition, place: PurePosixPath) -> str:
    told = dict(facts(edition))
    return (
        "<!-- Generated; do not edit. -->\n\n# The evaluation, run again\n\n"
        f"This file is generated from the records in [{place / 'records'}]({place / 'records'}) by "
        "`python -m evaluation run --out DIR`; every number and figure in it is read "
        "from them. Made with: "
        f"{_text(told['Machine'])}; Python {_text(told['Python'])}; {_text(told['Versions'])}; "
        f"commit {_text(told['Commit'])}. The paper's numbers: {_text(PAPER)}."
    )


def _summary(edition: Edition) -> Iterator[str]:
    if edition.size == "quick":
        yield f"> {_text(WARNING)}"
    yield f"**{_text(verdict(edition))}**"
    rows = [
        [f"[{_text(heading(chapter))}](#{_anchor(heading(chapter))})", *map(str, counts)]
        for chapter, counts in tallies(edition)
    ]
    yield _grid(["chapter", *VERDICTS], rows, range(1, 5)) if rows else ""
    yield "\n".join(
        f"- {name}: {_text(told)}"
        for name, told in facts(edition)
        if name in ("Sizes", "Measured in", "Load before a step")
    )


def _chapter(part: Part, figures: PurePosixPath, place: PurePosixPath) -> Iterator[str]:
    yield f"## {_text(heading(part.chapter))}"
    yield f"*{_text(part.chapter.question)}*" if part.chapter.question else ""
    yield from map(_text, part.section.remarks)
    yield from _beside(part.section.comparisons)
    for figure in part.chapter.figures:
        if figure.name in part.figures:
            caption = _text(figure.caption)
            yield f"![{caption}]({figures / figure.name}.svg)"
            yield f"*{caption}*"
    for table in part.section.tables:
        yield from _table(table)
    if part.skipped:
        yield "### Left out"
        yield "\n".join(
            f"- {', '.join(f'`{step}`' for step in steps)}: {_text(why)}."
            for why, steps in left_out(part.skipped)
        )
    yield _data(part, place)


def _beside(comparisons: Sequence[Comparison]) -> Iterator[str]:
    if not comparisons:
        return
    yield "### Beside the paper"
    header = ["quantity", "paper", "ours", "ratio", "verdict", "in the paper"]
    rows = [
        [
            _text(f"{one.what} {BETTER[one.better]}"),
            _text(printed(one.paper, one.unit)),
            _text(quantity(one.ours, one.unit)),
            times(one.ratio),
            "**worse**" if one.verdict == "worse" else one.verdict or "–",
            _text(one.where),
        ]
        for one in comparisons
    ]
    yield _grid(header, rows, [1, 2, 3])
    yield KEY
    if worse := reasons(comparisons):
        yield "What is worse, and why:"
        yield "\n".join(
            f"- {', '.join(f'**{_text(one.what)}**' for one in some)}: {_text(why)}"
            for why, some in worse.items()
        )


def _table(table: Table) -> Iterator[str]:
    right = [at for at in range(len(table.header)) if numeric(table.rows, at)]
    grid = _grid(
        [_text(name) for name in table.header],
        [[_text(cell) for cell in row] for row in table.rows],
        right,
    )
    if len(table.rows) > LONG:
        named = f"<b>{escape(table.title)}</b> ({len(table.rows)} rows)"
        yield f"<details><summary>{named}</summary>"
        yield from (grid, _text(table.note), "</details>")
    else:
        yield from (f"**{_text(table.title)}**", grid, _text(table.note))


def _grid(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int]) -> str:
    rule = ["---:" if at in right else "---" for at in range(len(header))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))


def _data(part: Part, place: PurePosixPath) -> str:
    tables = [f"[{name}]({place / 'tables' / name}.csv)" for name in part.tables]
    steps = [f"[{name}]({place / 'records' / name}.json)" for name in part.steps]
    lines = [f"Tables as CSV: {', '.join(tables)}."] if tables else []
    return "  \n".join([*lines, f"Records as JSON: {', '.join(steps)}."])


def _text(plain: str) -> str:
    """Plain text, in a cell or out of one: nothing in it is taken for Markdown."""
    return re.sub(r"([\\`*_\[\]<>|~$&#])", r"\\\1", " ".join(plain.split()))


def _anchor(title: str) -> str:
    """The name GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
