from __future__ import annotations

from xml.etree import ElementTree

import pytest

from evaluation.benchmarks.evaluation import DOCS, page
from evaluation.catalogue import chapters
from evaluation.report import Edition, compose

RECORDS = DOCS / "evaluation" / "records"


@pytest.fixture(scope="module")
def kept() -> Edition:
    if not RECORDS.is_dir():
        pytest.skip("no full run is kept yet: docs/evaluation/records is not there")
    return compose(chapters(), RECORDS)


def test_the_page_in_the_docs_is_what_its_records_say(kept: Edition) -> None:
    written = (DOCS / "evaluation.md").read_text(encoding="utf-8")
    assert written == page(kept), "run python -m evaluation.benchmarks.evaluation"


def test_the_tables_in_the_docs_are_those_of_its_records(kept: Edition) -> None:
    tables = DOCS / "evaluation" / "tables"
    written = {path.stem: path.read_text(encoding="utf-8") for path in tables.glob("*.csv")}
    assert written == kept.csv, "run python -m evaluation.benchmarks.evaluation"


def test_the_figures_in_the_docs_are_there_and_are_drawings(kept: Edition) -> None:
    figures = DOCS / "evaluation" / "figures"
    assert {path.stem for path in figures.glob("*.svg")} == set(kept.figures)
    for path in figures.glob("*.svg"):
        assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_what_is_worse_than_the_papers_says_why(kept: Edition) -> None:
    compared = [one for part in kept.parts for one in part.comparisons]
    assert not [one.what for one in compared if one.verdict == "worse" and not one.reason]


def test_every_record_in_the_docs_is_of_a_step_that_is_still_taken(kept: Edition) -> None:
    assert {path.stem for path in RECORDS.glob("*.json")} == {r["step"] for r in kept.records}
