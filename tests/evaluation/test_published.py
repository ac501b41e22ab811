from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from evaluation.report import HERE, Edition, benchmarks, compose, markdown
from evaluation.step import chapters

ROOT = HERE.parent
DOCS = ROOT / "docs"
RECORDS = DOCS / "evaluation" / "records"


@pytest.fixture(scope="module")
def kept() -> Edition:
    if not RECORDS.is_dir():
        pytest.skip("no full run is kept yet: docs/evaluation/records is not there")
    return compose(chapters(), RECORDS)


def test_the_page_in_the_docs_is_what_its_records_say(kept: Edition) -> None:
    written = (DOCS / "evaluation.md").read_text(encoding="utf-8")
    assert written == markdown(kept, "evaluation/"), "run python -m evaluation publish"


def test_the_tables_in_the_docs_are_those_of_its_records(kept: Edition) -> None:
    tables = DOCS / "evaluation" / "tables"
    written = {path.stem: path.read_text(encoding="utf-8") for path in tables.glob("*.csv")}
    assert written == kept.csv, "run python -m evaluation publish"


def test_the_figures_in_the_docs_are_there_and_are_drawings(kept: Edition) -> None:
    figures = DOCS / "evaluation" / "figures"
    assert {path.stem for path in figures.glob("*.svg")} == set(kept.figures)
    for path in figures.glob("*.svg"):
        assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_what_is_worse_than_the_papers_says_why(kept: Edition) -> None:
    compared = [one for part in kept.parts.values() for one in part.comparisons]
    assert not [one.what for one in compared if one.verdict == "worse" and not one.reason]


def test_every_record_in_the_docs_is_of_a_step_that_is_still_taken(kept: Edition) -> None:
    assert {path.stem for path in RECORDS.glob("*.json")} == {r["step"] for r in kept.records}


@pytest.mark.parametrize(
    ("page", "headlines"), [("README.md", True), ("docs/benchmarks.md", False)]
)
def test_a_table_of_benchmarks_is_what_the_records_say_and_leads_to_what_measures(
    kept: Edition, page: str, headlines: bool
) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    table = text.partition("<!-- benchmarks:begin -->\n")[2].partition("<!-- benchmarks:end")[0]
    assert table == benchmarks(kept.tables, headlines), "run python -m evaluation publish"
    linked = re.findall(r"\]\(([^)]*evaluation/[^)]*)\)", table)
    assert linked
    for file in linked:
        assert ((ROOT / page).parent / file).is_file(), file


def test_no_claim_of_the_text_is_belied_by_the_records(kept: Edition) -> None:
    assert not kept.failed
