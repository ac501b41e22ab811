from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.publishing import compose, publish
from ids.errors import SourceError
from tests.evaluation.editions import CHAPTERS, FINDINGS, PLAIN, edition, keep_record


def test_a_chapter_without_records_is_not_printed_and_rows_come_in_the_order_of_the_steps(
    tmp_path: Path,
) -> None:
    made = edition(tmp_path, PLAIN)
    assert [part.chapter.key for part in made.parts] == ["rq2"]
    assert [record["step"] for record in made.records] == ["rq2-ingest", "rq2-latency", "rq2-real"]
    assert made.parts[0].tables == ["rq2_ingest", "rq2_latency"]
    assert made.parts[0].skipped == {"rq2-real": "no trips were given"}


def test_the_record_of_a_step_that_is_no_more_says_nothing(tmp_path: Path) -> None:
    made = edition(tmp_path, PLAIN)
    keep_record(tmp_path, "rq2-a-former-step", FINDINGS["rq2-ingest"])
    assert compose(PLAIN, tmp_path).csv == made.csv


def test_a_directory_without_records_or_of_two_sizes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no records; run python -m evaluation first"):
        compose(PLAIN, tmp_path)
    keep_record(tmp_path, "rq2-a-former-step", {})
    with pytest.raises(SourceError, match="no record of a step that is still taken"):
        compose(PLAIN, tmp_path)
    edition(tmp_path, PLAIN)
    keep_record(tmp_path, "rq2-real", {}, fingerprint={"size": "quick"})
    with pytest.raises(SourceError, match="holds records of full and quick runs; keep one"):
        compose(PLAIN, tmp_path)


def test_all_that_the_report_speaks_of_is_written_and_what_is_stale_goes(tmp_path: Path) -> None:
    made = edition(tmp_path / "records")
    old = tmp_path / "figures" / "rq3-old.svg"
    old.parent.mkdir()
    old.write_text("old", encoding="utf-8")
    report = publish(made, tmp_path)
    assert report == tmp_path / "report.html"
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")} == {
        "records/rq2-ingest.json",
        "records/rq2-latency.json",
        "records/rq2-real.json",
        "figures/rq2-ingest.svg",
        "figures/rq2-again.svg",
        "tables/rq2_ingest.csv",
        "tables/rq2_latency.csv",
        "evaluation.md",
        "report.html",
    }
    first = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    publish(compose(CHAPTERS, tmp_path / "records"), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == first


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    made = edition(tmp_path / "records", PLAIN)
    (tmp_path / "tables").write_text("in the way", encoding="utf-8")
    with pytest.raises(SourceError, match=r"cannot write .*tables"):
        publish(made, tmp_path)
    assert not (tmp_path / "report.html").exists()
