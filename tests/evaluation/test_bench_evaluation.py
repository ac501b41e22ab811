from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from evaluation.benchmarks.evaluation import DOCS, page, renew
from evaluation.catalogue import chapters
from evaluation.publishing import Edition, compose
from ids.errors import SourceError
from tests.evaluation.editions import CHAPTERS, FINDINGS, PLAIN, edition, keep_record

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
    compared = [one for part in kept.parts for one in part.section.comparisons]
    assert not [one.what for one in compared if one.verdict == "worse" and not one.reason]


def test_every_record_in_the_docs_is_of_a_step_that_is_still_taken(kept: Edition) -> None:
    assert {path.stem for path in RECORDS.glob("*.json")} == {r["step"] for r in kept.records}


def test_a_full_run_is_taken_over_and_what_was_there_before_goes(tmp_path: Path) -> None:
    run, docs = tmp_path / "run", tmp_path / "docs"
    edition(run / "records")
    stale = [
        docs / "evaluation" / name
        for name in ("records/rq2-old.json", "tables/rq2_old.csv", "figures/rq2-old.svg")
    ]
    for path in stale:
        path.parent.mkdir(parents=True)
        path.write_text("old", encoding="utf-8")
    written = renew(run / "records", docs, CHAPTERS).read_text(encoding="utf-8")
    assert not any(path.exists() for path in stale)
    assert "(evaluation/figures/rq2-ingest.svg)" in written
    assert "(evaluation/tables/rq2_ingest.csv)" in written
    assert "(evaluation/records/rq2-ingest.json)" in written
    again = renew(docs / "evaluation" / "records", docs, CHAPTERS)
    assert again.read_text(encoding="utf-8") == written


def test_a_quick_run_is_refused(tmp_path: Path) -> None:
    edition(tmp_path, PLAIN, fingerprint={"size": "quick"})
    with pytest.raises(SourceError, match="holds a quick run"):
        renew(tmp_path, tmp_path / "docs", PLAIN)
    assert not (tmp_path / "docs").exists()


def test_a_run_that_is_not_finished_is_refused(tmp_path: Path) -> None:
    keep_record(tmp_path, "rq2-ingest", FINDINGS["rq2-ingest"])
    with pytest.raises(SourceError, match="lacks 2 of 3 steps: rq2-latency, rq2-real; finish it"):
        renew(tmp_path, tmp_path / "docs", PLAIN)
