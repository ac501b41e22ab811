"""publish: records become tables, figures and the report, all in one directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation import records
from evaluation.catalogue import KEYS
from evaluation.chapter import Chapter, Section, Tables
from evaluation.drawing import styled, svg
from evaluation.keeping import keep, keep_all
from evaluation.size import Size
from ids.errors import SourceError

__all__ = ["Edition", "Part", "compose", "publish"]


@dataclass(frozen=True)
class Part:
    """A chapter as it is printed.

    figures   SVG by the figure's name; one whose tables are empty is not there
    skipped   why a step was left out, by the step's name
    tables    the names of its tables
    steps     the names of its records
    """

    chapter: Chapter
    section: Section
    figures: dict[str, str]
    skipped: dict[str, str]
    tables: list[str]
    steps: list[str]


@dataclass(frozen=True)
class Edition:
    """All that is printed of one directory of records."""

    parts: list[Part]
    tables: Tables
    records: list[records.Record]

    @property
    def size(self) -> str:
        """``quick`` or ``full``."""
        return str(self.records[0]["fingerprint"]["size"])

    @property
    def figures(self) -> dict[str, str]:
        """Every figure as SVG, by its name."""
        return {name: text for part in self.parts for name, text in part.figures.items()}

    @property
    def csv(self) -> dict[str, str]:
        """Every table as CSV, by its name."""
        return {name: records.csv_text(self.tables[name]) for name in self.tables.names}


def compose(chapters: Sequence[Chapter], directory: Path) -> Edition:
    """What the records in ``directory`` say, drawn and in words.

    A record of a step that its chapter no longer has says nothing: its rows would stand beside
    those of the step that took its place. Rows come in the order of the steps.
    """
    found = {record["step"]: record for record in records.read_all(directory)}
    sizes = sorted({str(record["fingerprint"]["size"]) for record in found.values()})
    if not sizes:
        raise SourceError(f"{directory} holds no records; run python -m evaluation first")
    if len(sizes) > 1:
        raise SourceError(f"{directory} holds records of {' and '.join(sizes)} runs; keep one")
    mine = {chapter.key: _of(chapter, sizes[0], found) for chapter in chapters}
    told = [record for some in mine.values() for record in some]
    if not told:
        raise SourceError(f"{directory} holds no record of a step that is still taken")
    rows: dict[str, list[Any]] = {}
    for record in told:
        for name, more in record["findings"].items():
            rows.setdefault(name, []).extend(more)
    tables = Tables(rows)
    parts = [_part(chapter, mine[chapter.key], tables) for chapter in chapters if mine[chapter.key]]
    return Edition(parts, tables, told)


def publish(edition: Edition, out: Path) -> Path:
    """Write tables, figures, ``evaluation.md`` and ``report.html``; returns the report's path.

    The report comes last: where it is, all it speaks of is there. Tables and figures of an earlier
    edition that this one has no more are removed.
    """
    from evaluation.report import html, markdown

    keep_all(out / "figures", ".svg", edition.figures, KEYS)
    keep_all(out / "tables", ".csv", edition.csv, KEYS)
    keep(out / "evaluation.md", markdown(edition))
    return keep(out / "report.html", html(edition))


def _of(chapter: Chapter, size: str, found: dict[str, records.Record]) -> list[records.Record]:
    names = [step.name for step in chapter.steps(Size(size))]
    return [found[name] for name in names if name in found]


def _part(chapter: Chapter, mine: Sequence[records.Record], tables: Tables) -> Part:
    with styled():
        figures = {
            figure.name: svg(figure.draw(tables))
            for figure in chapter.figures
            if tables.filled(figure.needs)
        }
    names = {name for record in mine for name, rows in record["findings"].items() if rows}
    return Part(
        chapter,
        chapter.show(tables),
        figures,
        {record["step"]: record["skipped"] for record in mine if record["skipped"]},
        sorted(names),
        [record["step"] for record in mine],
    )
