from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from time import sleep

import pytest
from rich.console import Console
from typer.main import get_command

from evaluation import step
from evaluation.bench import Bench
from evaluation.cli import app
from evaluation.run import measure
from evaluation.step import QUICK, Chapter, Findings, Step
from ids.cli.app import invoke
from tests.architecture.test_documented import options
from tests.conftest import ROOT

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
    assert "cannot write" in err


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


def test_a_terminal_shows_a_bar_and_a_line_for_each_step(tmp_path: Path) -> None:
    def work(bench: Bench) -> Findings:
        bench.said(0.5)
        sleep(0.2)  # the bars are drawn ten times a second
        return {}

    steps = [Step(f"rq1-{name}", f"counting {name}", 60.0, work) for name in ("a", "b")]
    steps.append(Step("rq1-c", "trips", 60.0, work, ("nyc",)))
    bench = Bench(QUICK, tmp_path / "workloads")
    measure([Chapter("rq1", lambda _: steps[:1])], tmp_path, bench, Console(quiet=True))
    out = io.StringIO()
    terminal = Console(file=out, force_terminal=True, width=100)
    measure([Chapter("rq1", lambda _: steps)], tmp_path, bench, terminal)
    said = re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", out.getvalue())
    assert "1 of 3 steps are on record and left alone" in said
    assert re.search(r"counting b .* 25%", said)
    assert re.search(r"\[2/3\] rq1-b: counting b, 0\.\d s", said)
    assert "[3/3] rq1-c: trips, left out: no taxi trips were given" in said
