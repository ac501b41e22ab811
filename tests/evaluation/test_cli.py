from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evaluation import catalogue
from evaluation.bars import Pace
from evaluation.cli import app
from ids.cli.app import invoke

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
    monkeypatch.setattr(catalogue, "_PEERS", ("numpy", "no_such_package"))
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


class Clock:
    """Time that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_time_left_is_corrected_by_the_steps_that_are_done() -> None:
    clock = Clock()
    pace = Pace(100.0, clock)
    assert (pace.of_all, pace.left) == (0.0, 100.0)
    pace.begin(20.0)
    clock.now = 10.0
    assert pace.of_step == 0.5
    assert pace.left == pytest.approx(90.0)
    clock.now = 40.0  # twice as long as was thought
    assert pace.of_step < 1.0
    pace.end()
    assert pace.of_all == 0.2
    assert pace.left == pytest.approx(160.0)


def test_what_a_step_says_of_itself_goes_before_the_clock() -> None:
    clock = Clock()
    pace = Pace(10.0, clock)
    pace.begin(10.0)
    pace.say(0.7)
    assert pace.of_step == 0.7
    pace.say(0.3)
    assert pace.of_step == 0.7, "a bar does not go back"


def test_a_step_that_was_left_out_says_nothing_of_the_machine() -> None:
    clock = Clock()
    pace = Pace(30.0, clock)
    pace.begin(10.0)
    pace.end(counts=False)
    assert pace.left == pytest.approx(20.0)


def test_a_run_with_nothing_to_do_is_done() -> None:
    assert Pace(0.0).of_all == 1.0
    assert Pace(0.0).left == 0.0
