"""The report from hand-made records: what is filled in, what is left out, what fails."""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation import records, report
from evaluation.report import (
    Edition,
    Part,
    benchmarks,
    compose,
    fill,
    html,
    markdown,
    plain,
    publish,
    write,
)
from evaluation.step import Chapter, Findings, Repeated, Row, Size, Step
from evaluation.tables import Tables, Unmeasured
from ids.errors import SinkError, SourceError, StateError

NASTY = """a|b <i>*c*</i> & "d" 'e' `f` _g_ [h](i) $j$ ~k~ #l \\m"""
FINDINGS: dict[str, Findings] = {
    "rq2-ingest": {
        "rq2_ingest": [
            {"method": method, "n": n, "rate": Repeated((least, 1.02 * least, 1.04 * least))}
            for n in (1_000, 10_000)
            for method, least in (("IDS", 7e7), ("scan", 9e9 / n))
        ]
    },
    "rq2-latency": {"rq2_latency": [{"k": 4, "note": NASTY, "p50": 1.5e-6, "alike": True}]},
}
REPORT = """# Throughput & latency
> How does the advantage change with N?

IDS takes {power2: SELECT max(rate.mean) FROM rq2_ingest WHERE method = 'IDS'} rows a second; {text:
SELECT note FROM rq2_latency}.

On real trips it takes {number: SELECT rate FROM rq2_real}.

Nobody had asked for {number: SELECT max(age) FROM rq2_ingest}.

## Real trips

{figure: rq2-real}

Caption: Nobody measured this.

## Rates

{figure: rq2-ingest}

Caption: IDS is flat in N, up to {number: SELECT max(n) FROM rq2_ingest}. The scan falls.

```table Throughput
SELECT n AS "N", method AS "Method", rate AS "rows/s", rate AS "mean|power3",
       over(rate, rate) AS "over itself|times", best(rate) / 1e7 AS "best",
       shown(n, 'power') || ' rows' AS "in words", NULL AS "nothing"
FROM rq2_ingest WHERE method = 'IDS' ORDER BY n
```

Note: Means of {number: SELECT len(any_value(rate).samples) FROM rq2_ingest}.

```table Real trips
SELECT * FROM rq2_real
```

Note: This goes with its table.

```table
SELECT note AS "a|text", p50 AS "p50|duration", alike FROM rq2_latency
```

```check IDS is flat in N
SELECT max(rate.mean) = min(rate.mean) FROM rq2_ingest WHERE method = 'IDS'
```

```check nothing is known of trips
SELECT count(*) > 5 FROM rq2_real
```

{comparisons}
"""
COMPARED = """
[[comparison]]
what = "latency, K = $k"
unit = "duration"
ours = "SELECT p50 FROM rq2_latency WHERE k = $k"
better = "lower"
place = "Table 4"
reason = "shared cores, {number: SELECT count(*) FROM rq2_latency} of them"
each = [{ k = 4, paper = 1.37e-6 }, { k = 8, paper = 1.9e-6 }]

[[comparison]]
what = "throughput |y|"
unit = "tuples/s"
paper = 7.3e7
ours = "SELECT rate FROM rq2_ingest WHERE method = 'IDS' AND n = 1000"
better = "higher"
place = "§7.2"

[[comparison]]
what = "the scan's throughput"
unit = "power"
paper = 1e3
ours = "SELECT rate FROM rq2_ingest WHERE method = 'scan' AND n = 1000"
better = "higher"
place = "§7.2"
incomparable = "another scan on another machine."
"""


FIGURES = """
from evaluation.drawing import STYLES, canvas, label_lines, plot

def draw(tables, name="rq2_ingest"):
    drawing, (axes,) = canvas()
    ends = []
    for style, method in zip(STYLES, ("IDS", "scan")):
        rows = tables.where(name, method=method)
        plot(axes, [row["n"] for row in rows], [row["rate"] for row in rows], style)
        ends.append((rows[-1]["n"], rows[-1]["rate"].mean, method, style["color"]))
    axes.set(xscale="log", yscale="log")
    label_lines(axes, ends)
    return drawing

FIGURES = {"rq2-ingest": draw, "rq2-real": lambda tables: draw(tables, "rq2_real")}
"""
HEADING = "RQ2: Throughput & latency"


def steps(_: Size) -> list[Step]:
    return [Step(name, name, 1.0, lambda _: {}) for name in (*FINDINGS, "rq2-real")]


CHAPTERS = [Chapter("rq2", steps), Chapter("rq3", lambda _: [])]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The evaluation's own frame with one chapter in it."""
    directory = tmp_path_factory.mktemp("evaluation")
    for name in ("report.md", "tail.md", "page.html", "style.css", "benchmarks.toml"):
        shutil.copy(report.HERE / name, directory)
    (directory / "rq2").mkdir()
    texts = {"report.md": REPORT, "comparisons.toml": COMPARED, "figures.py": FIGURES}
    for name, text in texts.items():
        (directory / "rq2" / name).write_text(text, encoding="utf-8")
    return directory


@pytest.fixture(autouse=True)
def frame(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "HERE", home)


def keep_record(directory: Path, step: str, findings: Findings, **facts: Any) -> None:
    machine = {"cores": 2, "load_before": 0.1, "python": "3.12.1", "platform": "Linux x86_64"}
    record: dict[str, Any] = {
        "step": step,
        "fingerprint": {"size": "full"},
        "skipped": None,
        "machine": machine,
        "versions": {"ids-engine": "0.1.0", "numpy": "2.4.0"},
        "commit": "0123456789abcdef",
        "seconds": 61.0,
    }
    records.write(directory / f"{step}.json", record | facts, findings)


def edition(directory: Path, **facts: Any) -> Edition:
    for step, findings in FINDINGS.items():
        keep_record(directory, step, findings, **facts)
    keep_record(directory, "rq2-real", {}, **{**facts, "skipped": "no trips were given"})
    return compose(CHAPTERS, directory)


@pytest.fixture(scope="module")
def part(home: Path) -> Part:
    rows = {name: rows for found in FINDINGS.values() for name, rows in found.items()}
    return fill(home / "rq2", Tables(rows))


def unescaped(said: str) -> str:
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", said)


def cells(line: str) -> list[str]:
    """The cells of a row as GitHub divides them: at bars that are not escaped."""
    return [cell.strip() for cell in re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1]]


def test_values_stand_in_their_sentences_in_the_format_asked_for(part: Part) -> None:
    assert part.title == "Throughput & latency"
    assert "> How does the advantage change with N?" in part.body
    assert f"IDS takes 7.1×10⁷ rows a second; {plain(NASTY)}." in part.body


def test_what_was_not_measured_is_not_spoken_of(part: Part) -> None:
    for absent in ("real trips", "Real trips", "Nobody", "This goes with", "rq2-real"):
        assert absent not in part.body
    assert list(part.figures) == ["rq2-ingest"]


def test_a_table_shows_each_column_in_its_format_with_its_note(part: Part) -> None:
    assert "### Rates" in part.body
    assert (
        "**Throughput**\n\n"
        "| N | Method | rows/s | mean | over itself | best | in words | nothing |\n"
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| 1,000 | IDS | 71,400,000 ± 3,477,793 | 7.14×10⁷ | 1 × | 7 | 1.0×10³ rows | – |\n"
    ) in part.body
    assert "\n\nMeans of 3.\n\n" in part.body
    assert f"| {plain(NASTY)} | 1.50 µs | yes |" in part.body


def test_a_figure_stands_above_its_caption(part: Part) -> None:
    caption = "IDS is flat in N, up to 10,000. The scan falls."
    drawn = "![IDS is flat in N, up to 10,000.](figures/rq2-ingest.svg)"
    assert f"{drawn}\n\n*{caption}*" in part.body
    assert ElementTree.fromstring(part.figures["rq2-ingest"]).tag.endswith("svg")


def test_a_claim_that_is_false_fails_and_one_of_nothing_does_not(tmp_path: Path) -> None:
    claim = "# X\n\n```check There are five\nSELECT count(*) = 5 FROM kept\n```\n"
    (tmp_path / "report.md").write_text(claim, encoding="utf-8")
    assert fill(tmp_path, Tables({"kept": [{"n": 1}]})).failed == ["There are five"]
    assert not fill(tmp_path, Tables({"kept": [{"n": 1}] * 5})).failed
    assert not fill(tmp_path, Tables({})).failed


def test_the_papers_numbers_stand_beside_ours(part: Part) -> None:
    for line in (
        "| latency, K = 4 ↓ | 1.37 µs | 1.50 µs | 1.09 × | **worse** (1) | Table 4 |",
        "| latency, K = 8 ↓ | 1.9 µs | – | – | – | Table 4 |",
        r"| throughput \|y\| ↑ | 7.3×10⁷ tuples/s | 7.14×10⁷ tuples/s | 0.978 × | equal | §7.2 |",
        "| the scan's throughput ↑ | 1×10³ | 9.2×10⁶ | 9,180 × | – (2) | §7.2 |",
        "1. shared cores, 1 of them\n2. another scan on another machine.",
    ):
        assert line in part.body


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=40))
def test_a_text_is_one_cell_and_comes_back_as_it_was(said: str) -> None:
    (cell,) = cells(f"| {plain(said)} |")
    assert unescaped(cell) == " ".join(said.split())


def test_a_mistake_in_a_query_is_not_taken_for_something_unmeasured() -> None:
    tables = Tables({"kept": [{"n": 1, "m": None}, {"n": 2.5}]})
    assert tables.value("SELECT sum(n) FROM kept") == 3.5
    assert tables.value("SELECT max(m) FROM kept") is None
    for wrong in ("SELEC n", "SELECT nofn(n) FROM kept", "SELECT n FROM kept"):
        with pytest.raises(ValueError, match=re.escape(wrong)):
            tables.value(wrong)
    assert not tables.lacking
    assert tables.value("SELECT max(n) FROM other") is None
    assert tables.value("SELECT max(k) FROM kept") is None
    assert len(tables.lacking) == 2
    with pytest.raises(Unmeasured, match="other"):
        tables["other"]


class Page(HTMLParser):
    """The elements of a page and its text, everything opened being closed again."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag != "meta":
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data.replace("\u00a0", " ")


def test_the_page_is_the_markdown_and_asks_nothing_of_the_network(tmp_path: Path) -> None:
    made = edition(tmp_path)
    page = html(markdown(made), made.figures)
    assert not re.search(r"<script|<link|<iframe|@import|@font-face|https?:", page)
    read = Page(page)
    assert read.text.count(NASTY) == 2
    assert "1.50 µs" in read.text
    names = [attrs["id"] for _, attrs in read.elements if "id" in attrs]
    asked = [str(attrs["href"]) for tag, attrs in read.elements if tag == "a"]
    assert len(set(names)) == len(names)
    assert {name[1:] for name in asked if name.startswith("#")} == {"rq2-throughput--latency"}
    (drawn,) = (str(attrs["src"]) for tag, attrs in read.elements if tag == "img")
    assert drawn.startswith("data:image/svg+xml;base64,")


def test_the_head_says_how_it_was_made(tmp_path: Path) -> None:
    head = unescaped(markdown(edition(tmp_path)).partition("\n## ")[0])
    for told in (
        "0 of 2 numbers are better than the paper's, 1 equal, 1 worse. 2 have no verdict",
        "| [RQ2: Throughput & latency](#rq2-throughput--latency) | – | 1 | 1 | 2 |",
        "Measured in 3 min 3 s, 3 steps, of which 1 left out",
        "2 cores, Linux x86_64; Python 3.12.1; ids-engine 0.1.0, numpy 2.4.0",
        "Commit: 0123456789ab (3 steps)",
        "No taxi trips were given",
    ):
        assert told in head
    assert "This is a quick run" not in head
    quick = markdown(edition(tmp_path, fingerprint={"size": "quick"}, trips=["green_2022-01.x"]))
    assert "> This is a quick run" in quick
    assert "made here of *green* taxi trips, 1 months between 2022-01 and 2022-01" in quick


def test_a_chapter_ends_with_what_was_left_out_and_its_files(tmp_path: Path) -> None:
    made = edition(tmp_path)
    assert list(made.parts) == [HEADING]
    body = made.parts[HEADING].body
    assert "### Left out\n\n- `rq2-real`: no trips were given." in body
    links = set(re.findall(r"\]\(([^)#][^)]*)\)", markdown(made, "evaluation/")))
    assert links == {
        "evaluation/records",
        "evaluation/figures/rq2-ingest.svg",
        "evaluation/tables/rq2_ingest.csv",
        "evaluation/tables/rq2_latency.csv",
        "evaluation/records/rq2-ingest.json",
        "evaluation/records/rq2-latency.json",
        "evaluation/records/rq2-real.json",
    } | ({"i"} & links)


def test_the_record_of_a_step_that_is_no_more_says_nothing(tmp_path: Path) -> None:
    made = edition(tmp_path)
    keep_record(tmp_path, "rq2-a-former-step", FINDINGS["rq2-ingest"])
    assert compose(CHAPTERS, tmp_path).csv == made.csv


def test_a_directory_without_records_or_of_two_sizes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no records; run python -m evaluation first"):
        compose(CHAPTERS, tmp_path)
    keep_record(tmp_path, "rq2-a-former-step", {})
    with pytest.raises(SourceError, match="no record of a step that is still taken"):
        compose(CHAPTERS, tmp_path)
    edition(tmp_path)
    keep_record(tmp_path, "rq2-real", {}, fingerprint={"size": "quick"})
    with pytest.raises(SourceError, match="holds records of full and quick runs; keep one"):
        compose(CHAPTERS, tmp_path)


def test_all_that_the_report_speaks_of_is_written_and_what_is_stale_goes(tmp_path: Path) -> None:
    made = edition(tmp_path / "records")
    old = tmp_path / "figures" / "rq3-old.svg"
    old.parent.mkdir()
    old.write_text("old", encoding="utf-8")
    assert write(made, tmp_path) == tmp_path / "report.html"
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")} == {
        "records/rq2-ingest.json",
        "records/rq2-latency.json",
        "records/rq2-real.json",
        "figures/rq2-ingest.svg",
        "tables/rq2_ingest.csv",
        "tables/rq2_latency.csv",
        "evaluation.md",
        "report.html",
    }
    first = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    write(compose(CHAPTERS, tmp_path / "records"), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == first


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    made = edition(tmp_path / "records")
    (tmp_path / "tables").write_text("in the way", encoding="utf-8")
    with pytest.raises(SinkError, match=r"cannot write .*tables"):
        write(made, tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_a_full_run_is_taken_over_and_what_was_there_before_goes(tmp_path: Path) -> None:
    run, docs, readme = tmp_path / "run", tmp_path / "docs", tmp_path / "README.md"
    edition(run)
    marks = ("Numbers:\n<!-- benchmarks:begin -->\n", "<!-- benchmarks:end -->\nThe end.")
    readme.write_text("old numbers\n".join(marks), encoding="utf-8")
    stale = [
        docs / "evaluation" / name
        for name in ("records/rq2-old.json", "tables/rq2_old.csv", "figures/rq2-old.svg")
    ]
    for path in stale:
        path.parent.mkdir(parents=True)
        path.write_text("old", encoding="utf-8")
    written = publish(run, CHAPTERS, tmp_path).read_text(encoding="utf-8")
    assert not any(path.exists() for path in stale)
    kept = "No measurements are kept yet: `make bench` makes them.\n".join(marks)
    assert readme.read_text(encoding="utf-8") == kept
    again = publish(docs / "evaluation" / "records", CHAPTERS, tmp_path)
    assert again.read_text(encoding="utf-8") == written


def test_a_run_that_is_quick_unfinished_or_belies_the_text_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_record(tmp_path, "rq2-ingest", FINDINGS["rq2-ingest"])
    with pytest.raises(SourceError, match="lacks 2 of 3 steps: rq2-latency, rq2-real; finish it"):
        publish(tmp_path, CHAPTERS, tmp_path)
    edition(tmp_path, fingerprint={"size": "quick"})
    with pytest.raises(SourceError, match="holds a quick run"):
        publish(tmp_path, CHAPTERS, tmp_path)
    edition(tmp_path)
    false = tmp_path / "frame"
    shutil.copytree(report.HERE, false)
    (false / "rq2" / "report.md").write_text("# X\n\n```check Pigs fly\nSELECT false\n```")
    monkeypatch.setattr(report, "HERE", false)
    with pytest.raises(StateError, match="no longer true: RQ2: X: Pigs fly"):
        publish(tmp_path, CHAPTERS, tmp_path)
    assert not (tmp_path / "docs").exists()


def test_the_benchmarks_that_were_measured_have_a_line_each() -> None:
    rows: list[Row] = [
        {"contender": name, "ns_per_tuple": Repeated((ns, 2 * ns))}
        for name, ns in (("IDS, the slide loop", 5.0), ("Algorithm 1, literally", 30.0))
    ]
    tables = Tables({"rq2_algorithm1": rows})
    tables.load("records", [{"cores": 2, "platform": "Linux", "python": "3.12.1"}])
    _, rule, line, _, said = benchmarks(tables).splitlines()
    assert rule == "| --- | ---: | --- | ---: | --- |"
    assert "| 5 ns | Algorithm 1, literally: 30.0 ns | 6.00 × | [" in line
    assert "on 2 cores, Linux, Python 3.12.1." in said
