"""All that is printed of one directory of records: as Markdown, as a page, in docs and README."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from string import Template
from typing import Any

from evaluation import records
from evaluation.formatting import shown
from evaluation.report import Part, fill, filled, grid, lines_of, text_of
from evaluation.step import FULL, Chapter, Size
from evaluation.tables import Tables
from ids.errors import SourceError, StateError

HERE = Path(__file__).resolve().parent
_MARKS = re.compile(r"(?<=<!-- benchmarks:begin -->\n).*(?=<!-- benchmarks:end -->)", re.S)
_UNIT = re.compile(r"(?<=[\d⁰¹²³⁴⁵⁶⁷⁸⁹]) (?=(?:×|%|±|[KMG]?i?B|[nµm]?s|min|h)(?!\w))")


@dataclass(frozen=True)
class Edition:
    """The chapters that have records, filled in, by their headings."""

    parts: dict[str, Part]
    tables: Tables
    records: list[records.Record]

    @property
    def figures(self) -> dict[str, str]:
        return {name: text for part in self.parts.values() for name, text in part.figures.items()}

    @property
    def csv(self) -> dict[str, str]:
        return {name: records.csv_text(self.tables[name]) for name in self.tables.names}

    @property
    def failed(self) -> list[str]:
        return [f"{name}: {claim}" for name, part in self.parts.items() for claim in part.failed]

    def keep(self, out: Path) -> None:
        """Write figures and tables; those that an earlier edition had alone are removed."""
        records.keep_all(out / "figures", ".svg", self.figures)
        records.keep_all(out / "tables", ".csv", self.csv)


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
    steps = [step.name for chapter in chapters for step in chapter.steps(Size(sizes[0]))]
    told = [found[name] for name in steps if name in found]
    if not told:
        raise SourceError(f"{directory} holds no record of a step that is still taken")
    rows: dict[str, list[Any]] = {}
    for record in told:
        for name, more in record["findings"].items():
            rows.setdefault(name, []).extend(more)
    tables = Tables(rows)
    _tell(told, tables)
    parts, tail, keys = dict[str, Part](), Template(text_of(HERE / "tail.md")), set(map(_key, told))
    for key in (chapter.key for chapter in chapters if chapter.key in keys):
        part = fill(HERE / key, tables, tail.safe_substitute(key=key))
        parts[f"{key.upper()}: {part.title}" if key.startswith("rq") else part.title] = part
    verdicts = [
        {"chapter": f"[{heading}](#{_anchor(heading)})", "verdict": verdict}
        for heading, part in parts.items()
        for verdict in [None, *(one.verdict for one in part.comparisons)]
    ]
    tables.load("comparisons", verdicts)
    return Edition(parts, tables, told)


def markdown(edition: Edition, place: str = "") -> str:
    """The whole evaluation; ``place`` is the path to its files, with the slash."""
    head = fill(HERE, edition.tables)
    blocks = [
        f"<!-- Generated; do not edit. -->\n\n# {head.title}\n\n{head.body}",
        *(f"- Claimed, and not borne out by these records: {claim}" for claim in edition.failed),
        *(f"## {heading}\n\n{part.body}" for heading, part in edition.parts.items()),
    ]
    return re.sub(r"\]\((?=(figures|tables|records)\b)", f"]({place}", "\n\n".join(blocks)) + "\n"


def html(text: str, figures: Mapping[str, str]) -> str:
    """Markdown as one page that needs nothing else: style and figures are inside."""
    from markdown_it import MarkdownIt

    def drawn(match: re.Match[str]) -> str:
        return f"data:image/svg+xml;base64,{b64encode(figures[match[1]].encode()).decode()}"

    def named(match: re.Match[str]) -> str:
        return f'<{match[1]} id="{_anchor(unescape(match[2]))}">{match[2]}</{match[1]}>'

    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    body = re.sub(r"<(h[1-6])>(.*)</\1>", named, _UNIT.sub("\u00a0", body))
    body = re.sub(r'(?<=src=")figures/([\w-]+)\.svg', drawn, body)
    body = body.replace("<table>", '<div class="scroll" tabindex="0"><table>')
    body = body.replace("</table>", "</table></div>")
    return text_of(HERE / "page.html").format(style=text_of(HERE / "style.css"), body=body)


def write(edition: Edition, out: Path) -> Path:
    """Write tables, figures, ``evaluation.md`` and ``report.html``; returns the report's path.

    The report comes last: where it is, all it speaks of is there.
    """
    edition.keep(out)
    text = markdown(edition)
    records.keep(out / "evaluation.md", text)
    return records.keep(out / "report.html", html(text, edition.figures))


def publish(source: Path, chapters: Sequence[Chapter], root: Path = HERE.parent) -> Path:
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
    records.keep_all(home / "records", ".json", {n: text_of(source / f"{n}.json") for n in mine})
    edition.keep(home)
    table = benchmarks(edition.tables)
    records.keep(readme, _MARKS.sub(lambda _: table, text_of(readme)))
    return records.keep(root / "docs" / "evaluation.md", markdown(edition, "evaluation/"))


def benchmarks(tables: Tables) -> str:
    """README's table: the lines of ``benchmarks.toml`` that have been measured."""
    rows = []
    for line in lines_of(text_of(HERE / "benchmarks.toml"), "line"):
        asked = filled(line["question"], tables)
        ours, theirs = tables.value(line["ours"]), tables.value(line["theirs"])
        if asked and isinstance(ours, int | float) and isinstance(theirs, int | float):
            made = f"[{Path(line['file']).name}]({line['file']})"
            other = f"{line['other']}: {shown(theirs, 'duration')}"
            ratio = shown(theirs / ours, "times")
            rows.append([asked, shown(ours, "duration"), other, ratio, made])
    if not rows:
        return "No measurements are kept yet: `make bench` makes them.\n"
    machine = "SELECT string_agg(DISTINCT cores || ' cores, ' || platform || ', Python ' || python)"
    return (
        f"{grid(['question', 'IDS', 'the other', 'other ÷ IDS', 'made by'], rows)}\n\n"
        "Best of several turns (questions: the median), side by side in one run, on "
        f"{tables.value(f'{machine} FROM records')}. A ratio above 1 means that IDS is faster.\n"
    )


def _key(record: records.Record) -> str:
    return str(record["step"]).partition("-")[0]


def _tell(told: Sequence[records.Record], tables: Tables) -> None:
    """How the records were made, and which tables they have, as tables themselves."""
    facts = [
        {name: record[name] for name in ("step", "seconds", "skipped", "commit")}
        | {"chapter": _key(record), "size": record["fingerprint"]["size"], **record["machine"]}
        | {"trips": " ".join(record.get("trips", ())) or None}
        | {"versions": ", ".join(" ".join(pair) for pair in record["versions"].items())}
        for record in told
    ]
    tables.load("records", facts)
    found = {(_key(record), name) for record in told for name in record["findings"]}
    names = [(key, name) for key, name in sorted(found) if name in tables.names]
    tables.load("findings", [{"chapter": key, "name": name} for key, name in names])


def _anchor(title: str) -> str:
    """The name GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
