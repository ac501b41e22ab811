from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from evaluation import records
from evaluation.bench import Bench
from evaluation.run import measure
from evaluation.step import FULL, QUICK, Chapter, Findings, Repeated, Size, Step
from ids.errors import SourceError

Work = Callable[[Bench], Findings]
QUIET = Console(quiet=True)


def chapter(**works: Work) -> Chapter:
    """A chapter whose steps do the works given, by name."""

    def steps(_: Size) -> list[Step]:
        return [Step(f"rq1-{name}", name, 1.0, work) for name, work in works.items()]

    return Chapter("rq1", steps)


def bench(directory: Path, size: Size = QUICK) -> Bench:
    return Bench(size, directory / "workloads")


class Counted:
    """A work that counts how often it was done."""

    def __init__(self, fails: int = 0) -> None:
        self.done = 0
        self.fails = fails

    def __call__(self, _: Bench) -> Findings:
        self.done += 1
        if self.done <= self.fails:
            raise RuntimeError("stopped halfway")
        return {"rq1_table": [{"y": self.done, "s": Repeated.of([1, 2, 3])}]}


def test_a_run_that_was_stopped_goes_on_with_the_step_it_was_in(tmp_path: Path) -> None:
    first, second, third = Counted(), Counted(fails=1), Counted()
    whole = chapter(a=first, b=second, c=third)
    with pytest.raises(RuntimeError, match="halfway"):
        measure([whole], tmp_path, bench(tmp_path), QUIET)
    assert (first.done, second.done, third.done) == (1, 1, 0)
    measure([whole], tmp_path, bench(tmp_path), QUIET)
    assert (first.done, second.done, third.done) == (1, 2, 1)
    measure([whole], tmp_path, bench(tmp_path), QUIET)
    assert (first.done, second.done, third.done) == (1, 2, 1)


def test_a_record_says_what_was_found_and_what_it_was_found_with(tmp_path: Path) -> None:
    measure([chapter(a=Counted())], tmp_path, bench(tmp_path), QUIET)
    kept = json.loads((tmp_path / "records" / "rq1-a.json").read_text())
    assert kept["step"] == "rq1-a"
    assert kept["machine"]["cores"] >= 1
    assert "numpy" in kept["versions"]
    assert kept["findings"]["rq1_table"][0]["s"]["samples"] == [1.0, 2.0, 3.0]
    found = records.read(tmp_path / "records" / "rq1-a.json")
    assert found is not None
    assert found["findings"] == {"rq1_table": [{"y": 1, "s": Repeated((1.0, 2.0, 3.0))}]}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda kept: {**kept, "fingerprint": {**kept["fingerprint"], "cores": 999}},
        lambda kept: {**kept, "fingerprint": {**kept["fingerprint"], "ids": "0.0.0"}},
        lambda kept: {name: kept[name] for name in kept if name != "findings"},
    ],
    ids=["another machine", "another version", "half a record"],
)
def test_a_record_that_does_not_count_is_made_anew(
    tmp_path: Path, spoil: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    work = Counted()
    measure([chapter(a=work)], tmp_path, bench(tmp_path), QUIET)
    path = tmp_path / "records" / "rq1-a.json"
    path.write_text(json.dumps(spoil(json.loads(path.read_text()))))
    measure([chapter(a=work)], tmp_path, bench(tmp_path), QUIET)
    assert work.done == 2


def test_a_directory_holds_runs_of_one_size(tmp_path: Path) -> None:
    work = Counted()
    measure([chapter(a=work)], tmp_path, bench(tmp_path), QUIET)
    with pytest.raises(SourceError, match="holds a quick run; give a full one its own"):
        measure([chapter(a=work)], tmp_path, bench(tmp_path, FULL), QUIET)
    assert work.done == 1


def test_what_needs_taxi_trips_is_left_out_and_says_why(tmp_path: Path) -> None:
    work = Counted()
    needy = Chapter("rq1", lambda _: [Step("rq1-a", "", 1.0, work, ("nyc",))])
    measure([needy], tmp_path, bench(tmp_path), QUIET)
    kept = records.read(tmp_path / "records" / "rq1-a.json")
    assert work.done == 0
    assert kept is not None
    assert kept["skipped"] == "no taxi trips were given; name the TLC's files with --taxi"


def test_a_step_has_a_place_to_write_that_is_gone_afterwards(tmp_path: Path) -> None:
    seen: list[Path] = []

    def work(bench: Bench) -> Findings:
        (bench.scratch / "file").write_text("x")
        seen.append(bench.scratch)
        return {}

    measure([chapter(a=work)], tmp_path, bench(tmp_path), QUIET)
    assert not seen[0].exists()
    assert [path.name for path in tmp_path.iterdir()] == ["records"]


def test_a_finding_that_is_no_number_is_refused_and_leaves_no_record(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="y is nan"):
        nan = chapter(a=lambda _: {"rq1_t": [{"y": float("nan")}]})
        measure([nan], tmp_path, bench(tmp_path), QUIET)
    assert not (tmp_path / "records").exists()
