"""The whole evaluation at its small size, as a person runs it: stopped once, and gone on with."""

from __future__ import annotations

import csv
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import sleep
from typing import Any
from xml.etree import ElementTree

import pytest

from evaluation import records
from evaluation.report import Edition, benchmarks, compose, markdown
from evaluation.step import KEYS, QUICK, chapters
from evaluation.tables import Tables
from tests.conftest import ROOT

SHARED = Path(os.environ.get("IDS_DATA") or ROOT.parent / "shared" / "data")


@dataclass(frozen=True)
class Run:
    """What two runs of the same command left behind: the first was interrupted."""

    out: Path
    stopped: tuple[int, str]
    kept: set[str]
    finished: tuple[int, str, str]

    @property
    def records(self) -> list[dict[str, Any]]:
        return records.read_all(self.out / "records")

    @cached_property
    def edition(self) -> Edition:
        return compose(chapters(), self.out / "records")

    @property
    def tables(self) -> Tables:
        return self.edition.tables


def command(out: Path) -> list[str]:
    trips = ["--taxi", str(SHARED / "taxi_green")] if (SHARED / "taxi_green").is_dir() else []
    return [sys.executable, "-m", "evaluation", "run",
            "--quick", "--out", str(out), *trips]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    out = tmp_path_factory.mktemp("reproduced") / "out"
    first = subprocess.Popen(command(out), stderr=subprocess.PIPE, text=True, cwd=ROOT)
    while first.poll() is None and len(list((out / "records").glob("*.json"))) < 2:
        sleep(0.1)
    first.send_signal(signal.SIGINT)
    _, said = first.communicate()
    kept = {path.stem for path in (out / "records").glob("*.json")}
    done = subprocess.run(command(out), capture_output=True, text=True, cwd=ROOT, check=False)
    yield Run(out, (first.returncode, said), kept, (done.returncode, done.stdout, done.stderr))


def test_a_run_that_is_interrupted_says_how_to_go_on_and_leaves_no_half_record(run: Run) -> None:
    code, said = run.stopped
    assert code == 130
    assert "the same command goes on from there" in said
    assert "Traceback" not in said
    assert len(run.kept) >= 2
    assert not list((run.out / "records").glob(".*"))
    assert not [path for path in run.out.iterdir() if path.name.startswith(".")]


def test_the_same_command_goes_on_and_ends_with_the_report(run: Run) -> None:
    code, out, said = run.finished
    assert code == 0, said
    assert out.strip() == str(run.out / "report.html")
    assert f"{len(run.kept)} of" in said
    assert "are on record and left alone" in said
    assert not any(f"{step}:" in said for step in run.kept)


def test_every_step_of_every_chapter_is_on_record(run: Run) -> None:
    planned = {step.name for one in chapters() for step in one.steps(QUICK)}
    assert {record["step"] for record in run.records} == planned
    for record in run.records:
        assert record["findings"] or record["skipped"], record["step"]
        assert record["fingerprint"]["size"] == "quick"


def test_what_is_timed_is_repeated_five_times(run: Run) -> None:
    counts = {
        len(value.samples)
        for record in run.records
        for rows in record["findings"].values()
        for row in rows
        for value in row.values()
        if hasattr(value, "samples")
    }
    assert counts
    assert min(counts) >= 5


def test_the_report_is_one_file_that_needs_nothing_else(run: Run) -> None:
    page = (run.out / "report.html").read_text(encoding="utf-8")
    loads = re.findall(r"""(?:src|href|xlink:href)\s*=\s*["']([^"']+)["']|url\(([^)]+)\)""", page)
    outside = [a or b for a, b in loads if re.match(r"['\"]?(https?:)?//", a or b)]
    assert not outside
    assert "<script" not in page
    for part in run.edition.parts.values():
        assert part.title in page


def test_every_figure_is_drawn_and_is_whole(run: Run) -> None:
    drawn = {path.stem for path in (run.out / "figures").glob("*.svg")}
    assert drawn == set(run.edition.figures)
    assert len(drawn) >= len(KEYS) - 1
    for name in drawn:
        ElementTree.parse(run.out / "figures" / f"{name}.svg")


def test_every_table_is_there_as_csv_with_its_intervals(run: Run) -> None:
    assert {path.stem for path in (run.out / "tables").glob("*.csv")} == set(run.tables)
    for name in run.tables:
        with (run.out / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert len(rows) == len(run.tables[name])
        for column in {key.removesuffix("_low") for key in rows[0] if key.endswith("_low")}:
            for row in rows:
                if row[column]:
                    low, mean, high = (float(row[column + end]) for end in ("_low", "", "_high"))
                    assert low <= mean <= high


def test_every_chapter_compares_itself_with_the_paper(run: Run) -> None:
    assert len(run.edition.parts) == len(KEYS)
    for heading, part in run.edition.parts.items():
        assert part.comparisons or not heading.startswith("RQ"), heading
        assert all(one.place for one in part.comparisons), heading


def test_the_markdown_is_what_the_records_say(run: Run) -> None:
    assert (run.out / "evaluation.md").read_text(encoding="utf-8") == markdown(run.edition)


def test_the_text_asks_for_no_table_or_column_that_no_step_gives(run: Run) -> None:
    if any(record["skipped"] for record in run.records):
        pytest.skip("without taxi trips some tables are not filled")
    benchmarks(run.tables)
    assert not run.tables.lacking
