from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from evaluation.chapter import Comparison, Section, Table
from evaluation.publishing import Edition, compose
from evaluation.report import html, markdown
from evaluation.report.facts import LONG
from evaluation.report.inline import inlined
from evaluation.report.style import STYLE
from tests.evaluation.editions import FINDINGS, NASTY, PLAIN, edition, keep_record

VOID = {"meta", "br"}
Attributes = dict[str, str | None]


class Page(HTMLParser):
    """The elements of a page, its text, and whether what was opened was closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, Attributes]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data.replace("\u00a0", " ")

    def values(self, attribute: str) -> list[str]:
        found = (attributes.get(attribute) for _, attributes in self.elements)
        return [value for value in found if value is not None]

    def all(self, tag: str) -> list[Attributes]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    return edition(tmp_path_factory.mktemp("records"))


@pytest.fixture(scope="module")
def page(made: Edition) -> Page:
    return Page(html(made))


def test_the_page_asks_nothing_of_the_network(made: Edition) -> None:
    text = html(made)
    for asked in (
        "<script",
        "<link",
        "<img",
        "<iframe",
        "@import",
        "@font-face",
        "http:",
        "https:",
    ):
        assert asked not in text.lower()


def test_every_name_on_the_page_is_its_own_and_every_reference_meets_one(page: Page) -> None:
    names = Counter(page.values("id"))
    assert [name for name, times in names.items() if times > 1] == []
    asked = [value.removeprefix("#") for value in page.values("href") if value.startswith("#")]
    asked += page.values("aria-labelledby")
    for _, attributes in page.elements:
        asked += re.findall(r"url\(#([^)]+)\)", " ".join(filter(None, attributes.values())))
    assert asked
    assert set(asked) <= set(names)


def test_whatever_a_chapter_says_is_text(page: Page) -> None:
    assert page.text.count(NASTY) >= 5
    assert "i" not in {tag for tag, _ in page.elements}


def test_headings_go_down_one_at_a_time(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_a_figure_is_told_to_those_who_cannot_see_it(page: Page) -> None:
    drawings = page.all("svg")
    assert [one["role"] for one in drawings] == ["img", "img"]
    assert [one["aria-label"] for one in drawings] == ["IDS is flat in N.", "The same again."]
    assert len(page.all("figcaption")) == 2


def test_a_figure_nobody_could_draw_is_not_there(page: Page) -> None:
    assert "Nobody measured this" not in page.text


def test_what_scrolls_can_be_reached_by_keys(page: Page) -> None:
    boxes = [a for a in page.all("div") if a.get("class") in ("scroll", "card")]
    assert len(boxes) == 6
    assert all(box.get("tabindex") == "0" and box.get("aria-label") for box in boxes)


def test_the_worse_number_is_marked_in_words_with_its_reason_beneath(page: Page) -> None:
    assert page.text.count("▼ worse") == 1
    _, _, after = page.text.partition("▼ worse")
    assert after.startswith(f"Table 4Why: shared cores {NASTY}speedup")


def test_a_reason_that_several_share_is_told_once(tmp_path: Path) -> None:
    worse = [
        Comparison(what, "", 1.0, 2.0, "lower", "§1", reason)
        for what, reason in (("a", "x"), ("b", "x"), ("c", "y"), ("d", "x"), ("e", ""))
    ]
    chapter = replace(PLAIN[0], show=lambda _: Section(comparisons=worse))
    told = Page(html(edition(tmp_path, [chapter]))).text
    why = re.findall(r"Why: (x|y|as for b, above\.|no reason is known\.)", told)
    assert why == ["x", "y", "as for b, above.", "no reason is known."]


def test_a_long_table_is_folded_up_and_whole(tmp_path: Path) -> None:
    long = Table("All cells", ["n"], [[str(n)] for n in range(LONG + 1)], "A note.")
    chapter = replace(PLAIN[0], show=lambda _: Section(tables=[long]))
    made = edition(tmp_path, [chapter])
    page = Page(html(made))
    assert len(page.all("details")) == 1
    assert f"All cells ({LONG + 1} rows)" in page.text
    assert page.text.count(f"{LONG}A note.") == 1
    text = markdown(made)
    assert f"<details><summary><b>All cells</b> ({LONG + 1} rows)</summary>\n\n| n |" in text
    assert f"| {LONG} |\n\nA note.\n\n</details>" in text


def test_the_summary_counts_and_says_how_it_was_made(page: Page) -> None:
    assert "1 of 3 numbers are better than the paper's, 1 equal, 1 worse." in page.text
    assert "1 have no verdict: not measured here" in page.text
    for told in ("3 min 3 s, 3 steps, of which 1 left out", "2 cores, Linux x86_64", "3.12.1"):
        assert told in page.text
    assert "rq2-real: no trips were given." in page.text


def test_records_of_several_commits_are_all_named(tmp_path: Path) -> None:
    edition(tmp_path, PLAIN)
    keep_record(tmp_path, "rq2-latency", FINDINGS["rq2-latency"], commit="fedcba9876543+changes")
    told = Page(html(compose(PLAIN, tmp_path))).text
    assert "0123456789ab (2 steps); fedcba987654 with uncommitted changes (1 step)" in told


def test_a_quick_run_says_so(tmp_path: Path) -> None:
    assert "This is a quick run" in html(edition(tmp_path, PLAIN, fingerprint={"size": "quick"}))


def test_numbers_stand_flush_right_and_words_do_not(page: Page) -> None:
    head = [attributes for attributes in page.all("th") if attributes.get("scope") == "col"]
    assert [one.get("class") for one in head[-5:]] == ["n", None, "n", None, "n"]


def test_every_link_to_data_is_a_file_of_the_edition(made: Edition, page: Page) -> None:
    links = {link for link in page.values("href") if not link.startswith("#")}
    tables = {f"tables/{name}.csv" for name in made.csv}
    assert links == tables | {f"records/{record['step']}.json" for record in made.records}


def test_a_drawing_made_part_of_a_page_keeps_its_style_to_itself() -> None:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:x="http://www.w3.org/1999/xlink" '
        'width="9pt" viewBox="0 0 9 9"><!-- c --><style>*{fill:red}</style><metadata/>'
        '<path id="p" d="M 0 0&#10;L 1 1"/><use x:href="#p" clip-path="url(#p)"/></svg>'
    )
    assert inlined(svg, "f", 'a "b"') == (
        '<svg viewBox="0 0 9 9" role="img" aria-label="a &quot;b&quot;">'
        '<path id="f-p" d="M 0 0 L 1 1" /><use href="#f-p" clip-path="url(#f-p)" /></svg>'
    )


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1])
@pytest.mark.parametrize("ground", ["paper", "tint", "bad-tint"])
@pytest.mark.parametrize("ink", ["ink", "soft", "link", "good", "bad"])
def test_every_ink_is_readable_on_every_ground_in_light_and_dark(
    scheme: int, ground: str, ink: str
) -> None:
    front, back = (
        luminance(re.findall(rf"--{name}: (#[0-9a-f]{{6}});", STYLE)[scheme])
        for name in (ink, ground)
    )
    light, dark = max(front, back), min(front, back)
    assert (light + 0.05) / (dark + 0.05) >= 4.5
