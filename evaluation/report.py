"""The report: Markdown with SQL in it, its values filled in from the records' tables.

A chapter's ``report.md`` begins with ``# Title`` and ``> the question``. In it

* ``{power2: SELECT …}`` is a value in a format (``tables.FORMATS``, ``text``, or ``markdown``
  for what is Markdown itself); a paragraph with a value that is NULL is left out;
* a block fenced as ``table Title`` is a SELECT whose column names may end in ``|format``; the
  paragraph after it that begins with ``Note:`` is its note, and goes where the table has no rows;
* a block fenced as ``check The claim`` is a SELECT of a boolean that must not be false;
* ``{figure: name}`` is a drawing of ``figures.py``, with the paragraph ``Caption:`` after it;
* ``{comparisons}`` puts the paper's numbers of ``comparisons.toml`` beside ours.
"""

import re
import tomllib
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape, unescape
from itertools import zip_longest
from pathlib import Path
from runpy import run_path
from string import Template
from typing import Any

from evaluation import records
from evaluation.drawing import svg
from evaluation.step import FULL, Chapter, Repeated, Size
from evaluation.tables import FORMATS, Tables, Unmeasured, number, power, shown
from ids.errors import SourceError, StateError

HERE = Path(__file__).resolve().parent
LONG = 30  # rows: a table that has more is folded up until a reader asks for it
_ARROWS = {"lower": " ↓", "higher": " ↑", "same": " (=)"}
_KEY = (
    "↓ lower is better, ↑ higher is better, (=) should be the same. The ratio is ours over the "
    "paper's. Within 5 % is equal; where ours should be the same, within 25 %."
)
_BLOCK = re.compile(r"^```[^\n]*\n.*?^```[ \t]*$|(?:^(?!```)[^\n]*\S[^\n]*(?:\n|\Z))+", re.M | re.S)
_VALUE = re.compile(r"\{([a-z]+\d?):\s+((?:[^{}]|\{[^{}]*\})+)\}")
_FENCE = re.compile(r"```(table|check)[ \t]*([^\n]*)\n(.*?)\n?```", re.S)
_NUMBER = re.compile(r"[≈~<>≤≥±+−-]?\s*\d.*|[–—-]?")
_BEGIN, _END = "<!-- benchmarks:begin -->\n", "<!-- benchmarks:end -->"
_UNIT = re.compile(r"(?<=[\d⁰¹²³⁴⁵⁶⁷⁸⁹]) (?=(?:×|%|±|[KMG]?i?B|[nµm]?s|min|h)(?!\w))")


@dataclass(frozen=True)
class Comparison:
    """The paper's number beside ours."""

    what: str  # the quantity, for a reader who has the paper at hand
    paper: float | None  # None where the paper prints none
    ours: float | None  # None where this run did not measure it
    better: str = ""  # "lower" or "higher"; "same" where ours should be the paper's
    place: str = ""  # the paper's table, figure or section
    unit: str = ""  # a format, or what is printed after both numbers
    reason: str = ""  # why ours is the worse one; printed only where it is
    incomparable: str = ""  # why there is no verdict: the two are of unlike quantities

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


@dataclass
class Part:
    """A text filled in: its Markdown below the title, and what it is made of."""

    title: str
    body: str = ""
    comparisons: list[Comparison] = field(default_factory=list)
    figures: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)  # what it claims, and the records do not say


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
        return {name: records.csv_text(rows) for name, rows in self.tables.items()}

    @property
    def failed(self) -> list[str]:
        return [f"{name}: {claim}" for name, part in self.parts.items() for claim in part.failed]

    def keep(self, out: Path) -> None:
        """Write figures and tables; those that an earlier edition had alone are removed."""
        records.keep_all(out / "figures", ".svg", self.figures)
        records.keep_all(out / "tables", ".csv", self.csv)


def compose(chapters: Sequence[Chapter], directory: Path) -> Edition:
    """What the records in ``directory`` say, of steps that are still taken, drawn and in words."""
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
    rows = defaultdict[str, list[Any]](list)
    for name, more in (pair for record in told for pair in record["findings"].items()):
        rows[name] += more
    tables, facts = Tables(rows), list(map(_facts, told))
    tables.load("records", facts)
    parts, tail = dict[str, Part](), Template(text_of(HERE / "tail.md"))
    for key in dict.fromkeys(fact["chapter"] for fact in facts):
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

    def named(match: re.Match[str]) -> str:
        return f'<{match[1]} id="{_anchor(unescape(match[2]))}">{match[2]}</{match[1]}>'

    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    body = re.sub(r"<(h[1-6])>(.*)</\1>", named, _UNIT.sub("\u00a0", body))
    for name, drawn in figures.items():
        inside = f"data:image/svg+xml;base64,{b64encode(drawn.encode()).decode()}"
        body = body.replace(f'src="figures/{name}.svg"', f'src="{inside}"')
    body = body.replace("<table>", '<div class="scroll" tabindex="0"><table>')
    body = body.replace("</table>", "</table></div>")
    return text_of(HERE / "page.html").format(style=text_of(HERE / "style.css"), body=body)


def write(edition: Edition, out: Path) -> Path:
    """Write tables, figures, ``evaluation.md`` and, last, ``report.html``; returns its path."""
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
    for page, headlines in ((readme, True), (root / "docs" / "benchmarks.md", False)):
        before, mark, rest = text_of(page).partition(_BEGIN)
        table = benchmarks(edition.tables, headlines)
        records.keep(page, before + mark + table + rest[rest.find(_END) :] if mark else before)
    return records.keep(root / "docs" / "evaluation.md", markdown(edition, "evaluation/"))


def benchmarks(tables: Tables, headlines: bool = False) -> str:
    """The lines of ``benchmarks.toml`` that have been measured, or only README's headlines.

    Links are relative to README; docs/benchmarks.md is one directory below it.
    """
    rows, toml = [], text_of(HERE / "benchmarks.toml")
    for line in lines_of(toml, "line"):
        if headlines and "headline" not in line:
            continue
        asked = line["headline"] if headlines else filled(line["question"], tables)
        ours, theirs = _number(line["ours"], tables), _number(line["theirs"], tables)
        if asked and ours and theirs:
            own, others = shown(ours, "duration"), f"{line['other']}: {shown(theirs, 'duration')}"
            made = f"[{Path(line['file']).name}]({'' if headlines else '../'}{line['file']})"
            rows.append([asked, own, others, shown(theirs / ours, "times"), made])
    if not rows:
        return "No measurements are kept yet: `make bench` makes them.\n"
    table = grid(["task", "IDS", "alternative", "alternative ÷ IDS", "measured by"], rows)
    return f"{table}\n\n{filled(tomllib.loads(toml)['note'], tables)}\n"


def fill(home: Path, tables: Tables, tail: str = "") -> Part:
    """The text in a directory, and what comes after it, with its values filled in."""
    title, _, rest = (text_of(home / "report.md") + tail).lstrip().partition("\n")
    compared = lines_of(text_of(home / "comparisons.toml"), "comparison")
    part = Part(title.lstrip("# "), comparisons=[_comparison(line, tables) for line in compared])
    blocks, heading, made = _BLOCK.findall(rest), list[str](), list[str]()
    for block, after in zip_longest(blocks, blocks[1:], fillvalue=""):
        if block.startswith("#"):
            heading = [f"#{block.strip()}"]
        elif said := list(filter(None, _block(block.strip(), after.strip(), home, tables, part))):
            made += heading + said  # a heading over nothing is left out itself
            heading = []
    part.body = "\n\n".join(made)
    return part


def filled(text: str, tables: Tables) -> str | None:
    """A text with its values; None where one of them is NULL."""
    values = [tables.value(query) for _, query in _VALUE.findall(text)]
    each = iter(values)
    said = _VALUE.sub(lambda match: _cell(next(each), match[1]), text)
    return None if None in values else said


def lines_of(toml: str, name: str) -> Iterator[dict[str, Any]]:
    """The entries of an array of tables; ``each`` repeats one, with ``$key`` for what it gives."""
    for entry in tomllib.loads(toml).get(name, ()):
        for line in entry.pop("each", [{}]):
            yield {
                key: Template(value).safe_substitute(line) if isinstance(value, str) else value
                for key, value in (entry | line).items()
            }


def grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; columns of numbers are flush right."""
    rule = [
        "---:" if all(map(_NUMBER.fullmatch, column)) and any(column) else "---"
        for column in zip(*rows, strict=True)
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))


def plain(text: str) -> str:
    """Plain text, in a cell or out of one: nothing in it is taken for Markdown."""
    return re.sub(r"([\\`*_\[\]<>|~$&#])", r"\\\1", " ".join(text.split()))


def text_of(file: Path) -> str:
    """What a file says; nothing where there is none."""
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _block(block: str, after: str, home: Path, tables: Tables, part: Part) -> Iterator[str | None]:
    """A paragraph, table, figure or claim; a note or caption is said with the block before it."""
    label, _, said = after.partition(":")
    beside = (filled(said.strip(), tables) or "") if label in ("Note", "Caption") else ""
    if fence := _FENCE.fullmatch(block):
        kind, title, query = fence.groups()
        if kind == "table":
            yield from _table(title, *tables.answer(query), beside)
        elif tables.value(query) is False:
            part.failed.append(title or " ".join(query.split()))
    elif block == "{comparisons}":
        yield from _beside(part.comparisons)
    elif named := re.fullmatch(r"\{figure:\s*([\w-]+)\}", block):
        draw = run_path(str(home / "figures.py"))["FIGURES"][named[1]]
        try:
            part.figures[named[1]] = svg(draw, tables)
        except Unmeasured:
            return
        alt = re.split(r"(?<=[.!?])\s", beside, maxsplit=1)[0]
        yield from (f"![{alt}](figures/{named[1]}.svg)", f"*{beside}*")
    elif not block.startswith(("Note:", "Caption:")):
        yield filled(block, tables)


def _table(title: str, names: list[str], rows: list[Any], note: str) -> Iterator[str]:
    if not rows:
        return
    heads, _, specs = zip(*(name.partition("|") for name in names), strict=True)
    table = grid(list(map(plain, heads)), [list(map(_cell, row, specs)) for row in rows])
    if len(rows) > LONG:
        yield f"<details><summary><b>{escape(title)}</b> ({len(rows)} rows)</summary>"
        yield from (table, note, "</details>")
    else:
        yield from (f"**{plain(title)}**" if title else "", table, note)


def _cell(value: Any, spec: str) -> str:
    return str(value) if spec == "markdown" else plain(shown(value, spec))


def _comparison(line: Mapping[str, Any], tables: Tables) -> Comparison:
    given = {key: line[key] for key in Comparison.__dataclass_fields__ if key in line}
    given |= {key: _number(line.get(key), tables) for key in ("paper", "ours")}
    return Comparison(**{**given, "reason": filled(line.get("reason", ""), tables) or ""})


def _number(given: Any, tables: Tables) -> float | None:
    """A number, or the one that a query answers; the mean of one measured several times."""
    value = tables.value(given) if isinstance(given, str) else given
    value = value.mean if isinstance(value, Repeated) else value
    return None if value is None else float(value)


def _beside(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """The table of comparisons; below it, by number, why ours is worse or has no verdict."""
    rows, whys = list[list[str]](), dict[str, int]()
    for one in comparisons:
        why, verdict = one.incomparable, one.verdict or "–"
        if verdict == "worse":
            why, verdict = one.reason or "no reason is known", "**worse**"
        if why:
            verdict += f" ({whys.setdefault(why, len(whys) + 1)})"
        what = re.sub(r"(?<!\\)\|", r"\|", one.what + _ARROWS.get(one.better, ""))
        paper = _quantity(one.paper, one.unit, _typed(one.paper))
        ours, ratio = _quantity(one.ours, one.unit), shown(one.ratio, "times")
        rows.append([what, paper, ours, ratio, verdict, one.place])
    header = ["quantity", "paper", "ours", "ratio", "verdict", "in the paper"]
    yield from ("### Beside the paper", grid(header, rows), _KEY)
    if whys:
        yield "Why ours is worse, or why there is no verdict:"
        yield "\n".join(f"{number}. {why}" for why, number in whys.items())


def _quantity(value: float | None, unit: str, figures: int = 0) -> str:
    """A number in its unit; a million and more of no format as a power of ten."""
    if value is None or unit in FORMATS:
        return shown(value, f"{unit}{figures or ''}")
    written = power if abs(value) >= 1e6 and figures <= 3 else number
    return f"{written(value, figures or 3)} {unit}".rstrip()


def _typed(value: float | None) -> int:
    """How many figures the paper prints: those that were typed; 0 for one worked out of others."""
    figures = f"{value or 0:.11e}".partition("e")[0].rstrip("0").replace(".", "").lstrip("-")
    return len(figures) if len(figures) <= 7 else 0


def _facts(record: records.Record) -> dict[str, Any]:
    """How a record was made, as a row of the table ``records``."""
    return {
        **{name: record[name] for name in ("step", "seconds", "skipped", "commit")},
        **record["machine"],
        "chapter": record["step"].partition("-")[0],
        "size": record["fingerprint"]["size"],
        "trips": " ".join(record.get("trips", ())) or None,
        "versions": ", ".join(map(" ".join, record["versions"].items())),
    }


def _anchor(title: str) -> str:
    """The name GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
