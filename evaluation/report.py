"""The report: Markdown with SQL in it, its values filled in from records, and the same as a page.

A chapter's ``report.md`` begins with ``# Title`` and ``> the question``. In it

* ``{power2: SELECT …}`` is a value in a format (``formatting.FORMATS``, ``text``, or ``markdown``
  for what is Markdown itself); a paragraph with a value that is NULL is left out;
* a block fenced as ``table Title`` is a SELECT whose column names may end in ``|format``; the
  paragraph after it that begins with ``Note:`` is its note, and goes where the table has no rows;
* a block fenced as ``check The claim`` is a SELECT of a boolean that must not be false;
* ``{figure: name}`` is a drawing of ``figures.py``, with the paragraph ``Caption:`` after it;
* ``{comparisons}`` puts the paper's numbers of ``comparisons.toml`` beside ours.
"""

from __future__ import annotations

import re
import tomllib
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from evaluation import records
from evaluation.catalogue import KEYS
from evaluation.drawing import styled, svg
from evaluation.formatting import FORMATS, number, power, shown, times
from evaluation.repeated import Repeated
from evaluation.size import Size
from evaluation.step import Chapter
from evaluation.tables import Tables, Unmeasured
from ids.errors import SourceError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Comparison",
    "Edition",
    "Part",
    "Text",
    "compose",
    "fill",
    "html",
    "markdown",
    "publish",
]

HERE = Path(__file__).resolve().parent
LONG = 30
"""Rows: a table that has more is folded up until a reader asks for it."""

_ARROWS = {"lower": " ↓", "higher": " ↑", "same": " (=)"}
_KEY = (
    "↓ lower is better, ↑ higher is better, (=) should be the same. The ratio is ours over the "
    "paper's. Within 5 % is equal; where ours should be the same, within 25 %."
)
_BLOCK = re.compile(r"^```[^\n]*\n.*?^```[ \t]*$|(?:^(?!```)[^\n]*\S[^\n]*(?:\n|\Z))+", re.M | re.S)
_VALUE = re.compile(r"\{([a-z]+\d?):\s+((?:[^{}]|\{[^{}]*\})+)\}")
_FENCE = re.compile(r"```(table|check)[ \t]*([^\n]*)\n(.*?)\n?```", re.S)
_NUMBER = re.compile(r"[≈~<>≤≥±+−-]?\s*\d.*|[–—-]?")
_UNIT = re.compile(r"(?<=[\d⁰¹²³⁴⁵⁶⁷⁸⁹]) (?=(?:×|%|±|[KMG]?i?B|[nµm]?s|min|h)(?!\w))")


@dataclass(frozen=True)
class Comparison:
    """The paper's number beside ours.

    what          the quantity, for a reader who has the paper at hand
    unit          a format, or what is printed after both numbers
    paper, ours   None where the paper prints none, or this run did not measure it
    better        the better direction; "same" where ours should be the paper's
    place         the paper's table, figure or section
    reason        why ours is the worse one; printed only where it is
    incomparable  why there is no verdict: the two numbers are of unlike quantities
    """

    what: str
    paper: float | None
    ours: float | None
    better: str = ""
    place: str = ""
    unit: str = ""
    reason: str = ""
    incomparable: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours over the paper's; None where either is 0, and a ratio says nothing."""
        return self.ours / self.paper if self.ours and self.paper else None

    @property
    def verdict(self) -> str:
        """From the two numbers alone: better, equal, worse, or "" for none."""
        if self.ours is None or self.paper is None or self.incomparable or not self.better:
            return ""
        slack = (0.25 if self.better == "same" else 0.05) * abs(self.paper)
        if abs(self.ours - self.paper) <= slack:
            return "equal"
        better = self.better != "same" and (self.ours < self.paper) == (self.better == "lower")
        return "better" if better else "worse"


@dataclass(frozen=True)
class Text:
    """What a chapter says, before its values are filled in."""

    report: str
    comparisons: str = ""
    figures: Mapping[str, Callable[[Tables], Figure]] = field(default_factory=dict)

    @classmethod
    def of(cls, key: str) -> Text:
        """The text of the chapter with this key."""
        home = HERE / key
        compared, drawn = home / "comparisons.toml", home / "figures.py"
        return cls(
            (home / "report.md").read_text(encoding="utf-8"),
            compared.read_text(encoding="utf-8") if compared.is_file() else "",
            import_module(f"evaluation.{key}.figures").FIGURES if drawn.is_file() else {},
        )


@dataclass(frozen=True)
class Part:
    """A chapter as it is printed: its Markdown below the title, and what it is made of."""

    key: str
    title: str
    body: str
    comparisons: Sequence[Comparison] = ()
    figures: Mapping[str, str] = field(default_factory=dict)
    failed: Sequence[str] = ()

    @property
    def heading(self) -> str:
        """The title, after the research question's number."""
        return f"{self.key.upper()}: {self.title}" if self.key.startswith("rq") else self.title


@dataclass(frozen=True)
class Edition:
    """All that is printed of one directory of records."""

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
    parts = [_part(chapter, mine[chapter.key], tables) for chapter in chapters if mine[chapter.key]]
    return Edition(parts, tables, told)


def publish(edition: Edition, out: Path) -> Path:
    """Write tables, figures, ``evaluation.md`` and ``report.html``; returns the report's path.

    The report comes last: where it is, all it speaks of is there. Tables and figures of an earlier
    edition that this one has no more are removed.
    """
    text = markdown(edition)
    records.keep_all(out / "figures", ".svg", edition.figures, KEYS)
    records.keep_all(out / "tables", ".csv", edition.csv, KEYS)
    records.keep(out / "evaluation.md", text)
    return records.keep(out / "report.html", html(text, edition.figures))


def markdown(edition: Edition, place: str = "") -> str:
    """The whole evaluation; ``place`` is the path to its files, with the slash."""
    head = fill("head", Text((HERE / "report.md").read_text(encoding="utf-8")), _facts(edition))
    blocks = [
        f"<!-- Generated; do not edit. -->\n\n# {head.title}\n\n{head.body}",
        *(f"## {part.heading}\n\n{part.body}" for part in edition.parts),
    ]
    return re.sub(r"\]\((?=(figures|tables|records)\b)", f"]({place}", "\n\n".join(blocks)) + "\n"


def fill(key: str, text: Text, tables: Tables) -> Part:
    """A chapter's text with its values filled in."""
    return _Filling(key, text, tables).part()


def html(text: str, figures: Mapping[str, str]) -> str:
    """Markdown as one page that needs nothing else: style and figures are inside."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    tokens = parser.parse(text)
    contents, title = [], ""
    for token, inside in zip(tokens, [*tokens[1:], None], strict=False):
        if token.type == "heading_open" and inside is not None:
            words = "".join(child.content for child in inside.children or ())
            token.attrSet("id", _anchor(words))
            if token.tag == "h1":
                title = words
            elif token.tag == "h2":
                contents.append(f'<li><a href="#{_anchor(words)}">{escape(words)}</a></li>')
        for child in token.children or ():
            if child.type == "image":
                drawn = figures[Path(str(child.attrs["src"])).stem]
                child.attrSet(
                    "src", "data:image/svg+xml;base64," + b64encode(drawn.encode()).decode()
                )
            child.content = _UNIT.sub("\u00a0", child.content)
    body = parser.renderer.render(tokens, parser.options, {})
    body = body.replace("<table>", '<div class="scroll" tabindex="0"><table>')
    return (
        (HERE / "page.html")
        .read_text(encoding="utf-8")
        .format(
            title=escape(title),
            style=(HERE / "style.css").read_text(encoding="utf-8"),
            contents="\n".join(contents),
            body=body.replace("</table>", "</table></div>"),
        )
    )


class _Filling:
    """One chapter being filled in; the blocks of its text one after the other."""

    def __init__(self, key: str, text: Text, tables: Tables) -> None:
        self.key, self.text, self.tables = key, text, tables
        self.figures: dict[str, str] = {}
        self.failed: list[str] = []
        self.comparisons = list(self._compared())

    def part(self) -> Part:
        title, _, rest = self.text.report.lstrip().partition("\n")
        body = "\n\n".join(self._blocks(_BLOCK.findall(rest)))
        return Part(self.key, title.lstrip("# "), body, self.comparisons, self.figures, self.failed)

    def _blocks(self, blocks: Sequence[str]) -> Iterator[str]:
        headings: list[str] = []
        for block, after in zip_longest(blocks, blocks[1:], fillvalue=""):
            if block.startswith(("Note:", "Caption:")):
                continue  # said with the table or the figure before
            if block.startswith("#"):
                level = len(block.partition(" ")[0])
                headings = [h for h in headings if len(h.partition(" ")[0]) < level + 1]
                headings.append(f"#{block.strip()}")
                continue
            made = self._block(block.strip(), after.strip())
            if made:
                yield from headings  # one under which everything is left out is left out itself
                yield from made
                headings = []

    def _block(self, block: str, after: str) -> list[str]:
        if fence := _FENCE.fullmatch(block):
            kind, title, query = fence.groups()
            if kind == "table":
                return self._table(title, query, self._said(after, "Note:"))
            if self.tables.value(query) is False:
                self.failed.append(title or " ".join(query.split()))
            return []
        if block == "{comparisons}":
            return list(_beside(self.comparisons))
        if named := re.fullmatch(r"\{figure:\s*([\w-]+)\}", block):
            return self._figure(named[1], self._said(after, "Caption:"))
        said = self._filled(block)
        return [said] if said else []

    def _said(self, after: str, label: str) -> str:
        """The paragraph after a table or a figure that belongs to it."""
        said = self._filled(after.removeprefix(label).strip()) if after.startswith(label) else ""
        return said or ""

    def _filled(self, text: str) -> str | None:
        """The text with its values; None where one of them is NULL."""
        missing = False

        def value(match: re.Match[str]) -> str:
            nonlocal missing
            found = self.tables.value(match[2])
            missing = missing or found is None
            return str(found) if match[1] == "markdown" else _plain(shown(found, match[1]))

        filled = _VALUE.sub(value, text)
        return None if missing else filled

    def _table(self, title: str, query: str, note: str) -> list[str]:
        names, rows = self.tables.answer(query)
        if not rows:
            return []
        heads, _, specs = zip(*(name.partition("|") for name in names), strict=True)
        cells = [
            [
                str(value) if spec == "markdown" else _plain(shown(value, spec))
                for value, spec in zip(row, specs, strict=True)
            ]
            for row in rows
        ]
        grid = _grid(list(map(_plain, heads)), cells)
        said = [note] if note else []
        if len(rows) > LONG:
            folded = f"<b>{escape(title)}</b> ({len(rows)} rows)"
            return [f"<details><summary>{folded}</summary>", grid, *said, "</details>"]
        return [f"**{_plain(title)}**", grid, *said] if title else [grid, *said]

    def _figure(self, name: str, caption: str) -> list[str]:
        try:
            with styled():
                self.figures[name] = svg(self.text.figures[name](self.tables))
        except Unmeasured:
            return []
        alt = re.split(r"(?<=[.!?])\s", caption, maxsplit=1)[0]
        return [f"![{alt}](figures/{name}.svg)", f"*{caption}*"]

    def _compared(self) -> Iterator[Comparison]:
        """``each`` lists the lines of a comparison; ``$name`` stands for what a line gives."""
        for entry in tomllib.loads(self.text.comparisons).get("comparison", ()):
            for line in entry.pop("each", [{}]):
                yield self._comparison(
                    {
                        name: Template(value).safe_substitute(line)
                        if isinstance(value, str)
                        else value
                        for name, value in (entry | line).items()
                        if name in Comparison.__dataclass_fields__
                    }
                )

    def _comparison(self, given: dict[str, Any]) -> Comparison:
        paper, ours = self._number(given.get("paper")), self._number(given["ours"])
        reason = self._filled(given.get("reason", "")) or ""
        return Comparison(**{**given, "paper": paper, "ours": ours, "reason": reason})

    def _number(self, given: Any) -> float | None:
        value = self.tables.value(given) if isinstance(given, str) else given
        value = value.mean if isinstance(value, Repeated) else value
        return None if value is None else float(value)


def _part(chapter: Any, mine: Sequence[records.Record], tables: Tables) -> Part:
    if isinstance(chapter, Chapter):
        part = fill(chapter.key, Text.of(chapter.key), tables)
    else:
        from evaluation.legacy import part_of

        part = part_of(chapter, tables)
    skipped: dict[str, list[str]] = {}
    for record in mine:
        if record["skipped"]:
            skipped.setdefault(record["skipped"], []).append(f"`{record['step']}`")
    names = sorted({name for record in mine for name, rows in record["findings"].items() if rows})
    files = [f"Tables as CSV: {_links(names, 'tables', 'csv')}."] if names else []
    files += [f"Records as JSON: {_links([r['step'] for r in mine], 'records', 'json')}."]
    blocks = [part.body]
    if skipped:
        left = [f"- {', '.join(steps)}: {_plain(why)}." for why, steps in skipped.items()]
        blocks += ["### Left out", "\n".join(left)]
    body = "\n\n".join([*blocks, "  \n".join(files)])
    return Part(chapter.key, part.title, body, part.comparisons, part.figures, part.failed)


def _links(names: Iterable[str], directory: str, ending: str) -> str:
    return ", ".join(f"[{name}]({directory}/{name}.{ending})" for name in names)


def _facts(edition: Edition) -> Tables:
    """How the records were made, and how ours and the paper's numbers compare, as tables."""
    told = edition.records
    return Tables(
        {
            "records": [
                {
                    "step": record["step"],
                    "size": record["fingerprint"]["size"],
                    "seconds": record["seconds"],
                    "skipped": record["skipped"],
                    "commit": record["commit"],
                    "trips": len(record.get("trips", ())),
                    **record["machine"],
                }
                for record in told
            ],
            "versions": [
                {"package": package, "version": version}
                for record in told
                for package, version in record["versions"].items()
            ],
            "trips": [{"file": name} for record in told for name in record.get("trips", ())],
            "comparisons": [
                {"chapter": f"[{part.heading}](#{_anchor(part.heading)})", "verdict": one.verdict}
                for part in edition.parts
                for one in part.comparisons
            ],
            "failed": [{"claim": claim} for claim in edition.failed],
            **{name: edition.tables[name] for name in edition.tables.names},
        }
    )


def _beside(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """The table of comparisons; below it why ours is worse, and why there is no verdict."""
    if not comparisons:
        return
    header = ["quantity", "paper", "ours", "ratio", "verdict", "in the paper"]
    rows = [
        [
            re.sub(r"(?<!\\)\|", r"\|", one.what + _ARROWS.get(one.better, "")),
            _printed(one.paper, one.unit),
            _quantity(one.ours, one.unit),
            times(one.ratio),
            "**worse**" if one.verdict == "worse" else one.verdict or "–",
            one.place,
        ]
        for one in comparisons
    ]
    yield "### Beside the paper"
    yield _grid(header, rows)
    yield _KEY
    worse = [
        (one.what, one.reason or "no reason is known.")
        for one in comparisons
        if one.verdict == "worse"
    ]
    yield from _whys("What is worse, and why:", worse)
    unlike = [(one.what, one.incomparable) for one in comparisons if one.incomparable]
    yield from _whys("What has no verdict, and why:", unlike)


def _whys(lead: str, whys: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A line for each reason, with all that have it."""
    reasons: dict[str, list[str]] = {}
    for what, why in whys:
        reasons.setdefault(why, []).append(f"**{what}**")
    if reasons:
        yield lead
        yield "\n".join(f"- {', '.join(some)}: {why}" for why, some in reasons.items())


def _quantity(value: float | None, unit: str) -> str:
    """Our number in its unit; a million and more of no format as a power of ten."""
    if value is None or unit.rstrip("0123456789") in FORMATS:
        return shown(value, unit)
    return f"{power(value, 3) if abs(value) >= 1e6 else number(value)} {unit}".rstrip()


def _printed(value: float | None, unit: str) -> str:
    """The paper's number with the figures that it prints, which are those that were typed.

    One that was worked out of others has more than anybody prints: it is shown like ours.
    """
    if value is None:
        return _quantity(value, unit)
    figures = len(f"{value:.11e}".partition("e")[0].rstrip("0").replace(".", "").lstrip("-"))
    name = unit.rstrip("0123456789")
    if figures > 7:
        return _quantity(value, unit)
    if name in FORMATS:
        return FORMATS[name](value, figures=figures)
    short = figures <= 3 and abs(value) >= 1e6
    return f"{power(value, figures) if short else number(value, figures)} {unit}".rstrip()


def _grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; columns of numbers are flush right."""
    rule = [
        "---:" if all(map(_NUMBER.fullmatch, column)) and any(column) else "---"
        for column in zip(*rows, strict=True)
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))


def _plain(text: str) -> str:
    """Plain text, in a cell or out of one: nothing in it is taken for Markdown."""
    return re.sub(r"([\\`*_\[\]<>|~$&#])", r"\\\1", " ".join(text.split()))


def _anchor(title: str) -> str:
    """The name GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
