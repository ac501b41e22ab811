"""All that is printed of one directory of records: as Markdown, as a page, in docs and README."""

from __future__ import annotations

import re
import tomllib
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from evaluation import records
from evaluation.catalogue import KEYS
from evaluation.formatting import shown
from evaluation.report import HERE, Part, Text, fill, filled, grid, lines_of, plain
from evaluation.size import FULL, Size
from evaluation.step import Chapter, Step
from evaluation.tables import Tables
from ids.errors import SourceError, StateError

__all__ = ["Edition", "benchmarks", "compose", "feeding", "html", "markdown", "publish", "write"]

ROOT = HERE.parent
_MARKS = re.compile(r"(?<=<!-- benchmarks:begin -->\n).*(?=<!-- benchmarks:end -->)", re.S)
_UNIT = re.compile(r"(?<=[\d⁰¹²³⁴⁵⁶⁷⁸⁹]) (?=(?:×|%|±|[KMG]?i?B|[nµm]?s|min|h)(?!\w))")


@dataclass(frozen=True)
class Edition:
    """The chapters that have records, filled in; ``tables`` has how they were made, too."""

    parts: list[Part]
    tables: Tables
    records: list[records.Record]

    @property
    def figures(self) -> dict[str, str]:
        """Every figure as SVG, by its name."""
        return {name: text for part in self.parts for name, text in part.figures.items()}

    @property
    def csv(self) -> dict[str, str]:
        """Every table as CSV, by its name."""
        return {name: records.csv_text(self.tables[name]) for name in self.tables.names}

    @property
    def failed(self) -> list[str]:
        """What the text claims and the records do not bear out."""
        return [f"{part.key}: {claim}" for part in self.parts for claim in part.failed]


def compose(chapters: Sequence[Any], directory: Path) -> Edition:
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
    names = {c.key: [step.name for step in c.steps(Size(sizes[0]))] for c in chapters}
    mine = {key: [found[name] for name in some if name in found] for key, some in names.items()}
    told = [record for some in mine.values() for record in some]
    if not told:
        raise SourceError(f"{directory} holds no record of a step that is still taken")
    rows: dict[str, list[Any]] = {}
    for record in told:
        for name, more in record["findings"].items():
            rows.setdefault(name, []).extend(more)
    tables = Tables(rows)
    _tell(told, tables)
    parts = [_part(chapter, mine[chapter.key], tables) for chapter in chapters if mine[chapter.key]]
    compared = [
        {"chapter": f"[{part.heading}](#{_anchor(part.heading)})", "verdict": one.verdict}
        for part in parts
        for one in part.comparisons
    ]
    tables.load("comparisons", compared)
    return Edition(parts, tables, told)


def markdown(edition: Edition, place: str = "") -> str:
    """The whole evaluation; ``place`` is the path to its files, with the slash."""
    head = fill("head", Text((HERE / "report.md").read_text(encoding="utf-8")), edition.tables)
    belied = [f"- Claimed, and not borne out by these records: {one}" for one in edition.failed]
    blocks = [
        f"<!-- Generated; do not edit. -->\n\n# {head.title}\n\n{head.body}",
        *belied,
        *(f"## {part.heading}\n\n{part.body}" for part in edition.parts),
    ]
    return re.sub(r"\]\((?=(figures|tables|records)\b)", f"]({place}", "\n\n".join(blocks)) + "\n"


def html(text: str, figures: Mapping[str, str]) -> str:
    """Markdown as one page that needs nothing else: style and figures are inside."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    tokens = parser.parse(text)
    contents, title = "", ""
    for token, inside in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        if token.type == "heading_open":
            words = "".join(child.content for child in inside.children or ())
            token.attrSet("id", _anchor(words))
            title = title or escape(words)
            if token.tag == "h2":
                contents += f'<li><a href="#{_anchor(words)}">{escape(words)}</a></li>\n'
        for child in token.children or ():
            child.content = _UNIT.sub("\u00a0", child.content)
            if child.type == "image":
                drawn = b64encode(figures[Path(str(child.attrs["src"])).stem].encode()).decode()
                child.attrSet("src", f"data:image/svg+xml;base64,{drawn}")
    body = parser.renderer.render(tokens, parser.options, {})
    body = body.replace("<table>", '<div class="scroll" tabindex="0"><table>')
    body = body.replace("</table>", "</table></div>")
    style = (HERE / "style.css").read_text(encoding="utf-8")
    page = (HERE / "page.html").read_text(encoding="utf-8")
    return page.format(title=title, style=style, contents=contents, body=body)


def write(edition: Edition, out: Path) -> Path:
    """Write tables, figures, ``evaluation.md`` and ``report.html``; returns the report's path.

    The report comes last: where it is, all it speaks of is there. Tables and figures of an earlier
    edition that this one has no more are removed.
    """
    _write_files(edition, out)
    text = markdown(edition)
    records.keep(out / "evaluation.md", text)
    return records.keep(out / "report.html", html(text, edition.figures))


def publish(source: Path, chapters: Sequence[Any], root: Path = ROOT) -> Path:
    """Take over the records of a full run into docs, and write there, and in README, what they say.

    Refuses what is not the whole evaluation at the paper's sizes, or belies a claim of the text.
    """
    edition = compose(chapters, source)
    mine = {record["step"] for record in edition.records}
    if (size := edition.records[0]["fingerprint"]["size"]) != FULL.name:
        raise SourceError(f"{source} holds a {size} run; docs/evaluation is of a full one")
    steps = [step.name for chapter in chapters for step in chapter.steps(FULL)]
    if lacking := [name for name in steps if name not in mine]:
        some = ", ".join(lacking[:3]) + (", …" if len(lacking) > 3 else "")
        raise SourceError(f"{source} lacks {len(lacking)} of {len(steps)} steps: {some}; finish it")
    if edition.failed:
        raise StateError(f"no longer true: {'; '.join(edition.failed)}")
    home, readme = root / "docs" / "evaluation", root / "README.md"
    texts = {name: (source / f"{name}.json").read_text(encoding="utf-8") for name in mine}
    records.keep_all(home / "records", ".json", texts, KEYS)
    _write_files(edition, home)
    table = benchmarks(edition.tables)
    records.keep(readme, _MARKS.sub(lambda _: table, readme.read_text(encoding="utf-8")))
    return records.keep(root / "docs" / "evaluation.md", markdown(edition, "evaluation/"))


def feeding(chapters: Sequence[Any]) -> list[Any]:
    """These chapters with none but the steps that README's table is made of."""
    names = tuple(tomllib.loads((HERE / "benchmarks.toml").read_text(encoding="utf-8"))["steps"])

    def of(chapter: Any) -> Callable[[Size], list[Step]]:
        return lambda size: [s for s in chapter.steps(size) if s.name.startswith(names)]

    return [replace(chapter, steps=of(chapter)) for chapter in chapters]


def benchmarks(tables: Tables) -> str:
    """README's table: the lines of ``benchmarks.toml`` that have been measured."""
    rows = []
    for line in lines_of((HERE / "benchmarks.toml").read_text(encoding="utf-8"), "line"):
        asked = filled(line["question"], tables)
        ours, theirs = tables.value(line["ours"]), tables.value(line["theirs"])
        if asked and isinstance(ours, int | float) and isinstance(theirs, int | float):
            made = f"[{Path(line['file']).name}]({line['file']})"
            other = f"{line['other']}: {shown(theirs, 'duration')}"
            ratio = shown(theirs / ours, "times")
            rows.append([asked, shown(ours, "duration"), other, ratio, made])
    if not rows:
        return "No measurements are kept yet: `make bench` makes them.\n"
    header = ["question", "IDS", "the other", "other ÷ IDS", "made by"]
    machine = "SELECT string_agg(DISTINCT cores || ' cores, ' || platform || ', Python ' || python)"
    return (
        f"{grid(header, rows)}\n\nBest of several turns (questions: the median), side by side in "
        f"one run, on {tables.value(f'{machine} FROM records')}. A ratio above 1 means that IDS is "
        "faster.\n"
    )


def _write_files(edition: Edition, out: Path) -> None:
    records.keep_all(out / "figures", ".svg", edition.figures, KEYS)
    records.keep_all(out / "tables", ".csv", edition.csv, KEYS)


def _part(chapter: Any, mine: Sequence[records.Record], tables: Tables) -> Part:
    """A chapter filled in, and below it what was left out, and the files behind."""
    if isinstance(chapter, Chapter):
        part = fill(chapter.key, Text.of(chapter.key), tables)
    else:
        from evaluation.legacy import part_of

        part = part_of(chapter, tables)
    skipped: dict[str, list[str]] = {}
    for record in mine:
        if record["skipped"]:
            skipped.setdefault(record["skipped"], []).append(f"`{record['step']}`")
    left = [f"- {', '.join(steps)}: {plain(why)}." for why, steps in skipped.items()]
    names = sorted({name for record in mine for name, rows in record["findings"].items() if rows})
    steps = [record["step"] for record in mine]
    files = [f"Tables as CSV: {_links(names, 'tables', 'csv')}.  \n"] if names else []
    files += [f"Records as JSON: {_links(steps, 'records', 'json')}."]
    blocks = [part.body, *(["### Left out", "\n".join(left)] if left else []), "".join(files)]
    return replace(part, body="\n\n".join(blocks))


def _links(names: Iterable[str], directory: str, ending: str) -> str:
    return ", ".join(f"[{name}]({directory}/{name}.{ending})" for name in names)


def _tell(told: Sequence[records.Record], tables: Tables) -> None:
    """How the records were made, as tables beside what they found."""
    facts = [
        {
            **{name: record[name] for name in ("step", "seconds", "skipped", "commit")},
            **record["machine"],
            "size": record["fingerprint"]["size"],
            "trips": len(record.get("trips", ())),
        }
        for record in told
    ]
    tables.load("records", facts)
    versions = {pair for record in told for pair in record["versions"].items()}
    tables.load("versions", [{"package": name, "version": one} for name, one in sorted(versions)])
    trips = {name for record in told for name in record.get("trips", ())}
    tables.load("trips", [{"file": name} for name in sorted(trips)])


def _anchor(title: str) -> str:
    """The name GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
