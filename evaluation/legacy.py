"""Chapters that still say in Python what they found, as the Markdown of the others."""

from __future__ import annotations

from collections.abc import Iterator

from evaluation.chapter import Chapter, Section, Tables
from evaluation.drawing import styled, svg
from evaluation.report import LONG, Comparison, Part, _beside, grid, plain
from evaluation.tables import Tables as Asked

__all__ = ["part_of"]


def part_of(chapter: Chapter, asked: Asked) -> Part:
    """The chapter as it is printed."""
    tables = Tables({name: asked[name] for name in asked.names})
    section = chapter.show(tables)
    with styled():
        figures = {
            figure.name: svg(figure.draw(tables))
            for figure in chapter.figures
            if tables.filled(figure.needs)
        }
    compared = [
        Comparison(
            plain(one.what),
            one.paper,
            one.ours,
            "" if one.better == "neither" else one.better,
            plain(one.where),
            one.unit,
            plain(one.reason),
        )
        for one in section.comparisons
    ]
    blocks = _blocks(chapter, section, compared, figures)
    return Part(chapter.title, "\n\n".join(filter(None, blocks)), compared, figures)


def _blocks(
    chapter: Chapter, section: Section, compared: list[Comparison], figures: dict[str, str]
) -> Iterator[str]:
    yield f"> {plain(chapter.question)}" if chapter.question else ""
    yield from map(plain, section.remarks)
    yield from _beside(compared) if compared else ()
    for figure in chapter.figures:
        if figure.name in figures:
            yield f"![{plain(figure.caption)}](figures/{figure.name}.svg)"
            yield f"*{plain(figure.caption)}*"
    for table in section.tables:
        cells = [[plain(cell) for cell in row] for row in table.rows]
        table_ = grid([plain(name) for name in table.header], cells)
        if len(table.rows) > LONG:
            yield f"<details><summary><b>{plain(table.title)}</b></summary>"
            yield from (table_, plain(table.note), "</details>")
        else:
            yield from (f"**{plain(table.title)}**", table_, plain(table.note))
