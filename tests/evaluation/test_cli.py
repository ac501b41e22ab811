from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from typer.main import get_command

from evaluation import step
from evaluation.cli import app
from evaluation.run import Progress
from evaluation.step import Step
from ids.cli.app import invoke
from tests.conftest import ROOT
from tests.house.test_documented import options

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    def called(*arguments: object) -> tuple[int, str, str]:
        code = invoke(list(map(str, arguments)), app, "python -m evaluation")
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return called


def test_an_unknown_question_is_refused_with_the_one_that_was_meant(
    call: Call, tmp_path: Path
) -> None:
    code, out, err = call("run", "rq7", "--quick", "--out", tmp_path / "out")
    assert (code, out) == (1, "")
    assert err.startswith("error: unknown research question 'rq7'")
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_missing_package_is_named_with_the_extra_that_has_it(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "_PEERS", ("numpy", "no_such_package"))
    code, _, err = call("run", "--quick", "--out", tmp_path / "out")
    assert code == 1
    assert "needs no_such_package; install them: pip install 'ids-engine[evaluation]'" in err


def test_an_output_that_cannot_be_made_is_refused_before_anything_is_measured(
    call: Call, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    code, _, err = call("run", "--quick", "--out", tmp_path / "file" / "below")
    assert code == 1
    assert "cannot make" in err


def test_trips_that_are_not_there_are_refused(call: Call, tmp_path: Path) -> None:
    code, _, err = call("run", "--out", tmp_path / "out", "--taxi", tmp_path / "none.parquet")
    assert code == 1
    assert "none.parquet" in err


def test_every_option_is_documented() -> None:
    text = (ROOT / "evaluation" / "README.md").read_text(encoding="utf-8")
    known = {option for _, option in options(get_command(app), "python -m evaluation")}
    missing = [name for name in known if not re.search(rf"(?<![\w-]){name}(?![\w-])", text)]
    assert known
    assert not missing


class Clock:
    """Time that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def planned(clock: Clock, *seconds: float) -> tuple[Progress, list[Step]]:
    told = Progress(clock=clock)
    steps = [Step(f"rq1-{at}", "", some, lambda _: {}) for at, some in enumerate(seconds)]
    told.planned(steps, 0)
    return told, steps


def test_the_time_left_is_corrected_by_the_steps_that_are_done() -> None:
    clock = Clock()
    told, (first, _) = planned(clock, 20.0, 80.0)
    assert (told.of_all, told.left) == (0.0, 100.0)
    told.begun(first)
    clock.now = 10.0
    assert told.of_step == 0.5
    assert told.left == pytest.approx(90.0)
    clock.now = 40.0  # twice as long as was thought
    assert told.of_step < 1.0
    told.ended(first, 40.0, None)
    assert told.of_all == 0.2
    assert told.left == pytest.approx(160.0)


def test_what_a_step_says_of_itself_goes_before_the_clock() -> None:
    told, (only,) = planned(Clock(), 10.0)
    told.begun(only)
    told.advanced(0.7)
    assert told.of_step == 0.7
    told.advanced(0.3)
    assert told.of_step == 0.7, "a bar does not go back"


def test_a_step_that_was_left_out_says_nothing_of_the_machine() -> None:
    told, (first, _) = planned(Clock(), 10.0, 20.0)
    told.begun(first)
    told.ended(first, 0.0, "no trips")
    assert told.left == pytest.approx(20.0)


def test_a_run_with_nothing_to_do_is_done() -> None:
    told, _ = planned(Clock())
    assert (told.of_all, told.left) == (1.0, 0.0)


def test_a_terminal_shows_both_bars_and_a_line_for_each_step() -> None:
    out = io.StringIO()
    clock = Clock()
    with Progress(Console(file=out, force_terminal=True, width=100), clock) as told:
        steps = [Step("rq1-a", "counting", 60.0, lambda _: {})] * 2
        told.planned(steps[1:], 1)
        told.begun(steps[1])
        clock.now = 30.0
        told.refresh()
        told.ended(steps[1], 30.0, None)
    said = re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", out.getvalue())
    assert "1 of 2 steps are on record and left alone" in said
    assert re.search(r"all steps .* 50 %  0:30 left", said)
    assert re.search(r"counting .* 50 %", said)
    assert "[2/2] rq1-a: counting, 30.0 s" in said
