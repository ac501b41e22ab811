"""A stream from the command line: what reaches it, and what its reader gets; none is started."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ids.spark import StreamProgress
from tests.cli.conftest import EMITS, Outcome
from tests.cli.test_run import CSV

Call = Callable[..., Outcome]


class Ended:
    """A stream that has come to its end."""

    def await_termination(self, timeout: float | None = None) -> bool:
        return True

    def stop(self) -> None: ...

    @property
    def last_progress(self) -> StreamProgress:
        return StreamProgress()


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a stream was started with; it has two batches of the same emits."""
    asked: dict[str, Any] = {}

    def start(script: str, **options: Any) -> Ended:
        asked.update(options)
        if callable(options["output"]):
            options["output"](EMITS)
            options["output"](EMITS)
        return Ended()

    monkeypatch.setattr("ids.spark.start", start)
    monkeypatch.setattr("ids.spark.local_session", lambda *_, **__: None)
    return asked


@pytest.fixture
def arriving(tmp_path: Path, script: str) -> list[str]:
    """The command line of a stream over a directory."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("at,x\n2024-01-01 00:00:00,1.5\n")
    table = f"t={tmp_path / 'in'}"
    return ["run", script, "--engine", "spark", "--stream", "--table", table, "--checkpoint", "ck"]


def test_what_a_stream_is_told_reaches_it(
    given: dict[str, Any], arriving: list[str], call: Call, tmp_path: Path
) -> None:
    code, _, err = call(
        *arriving, "--lateness", "10s", "--max-ahead", "1h", "--trigger", "5s", "--available-now",
        "--seed", "7", "--bad-rows", tmp_path / "bad", "--null", "NA", "--schema", "x DOUBLE",
        "--output", f"{tmp_path / 'out'}/",
    )  # fmt: skip
    assert code == 0, err
    told = {"lateness": "10s", "max_ahead": "1h", "trigger": "5s", "available_now": True, "seed": 7}
    told |= {"retain": False, "bad_rows": str(tmp_path / "bad"), "output": f"{tmp_path / 'out'}/"}
    told |= {"checkpoint": "ck", "null": ("NA",), "schema": {"t": "x DOUBLE"}}
    assert {name: given[name] for name in told} == told


def test_what_a_stream_is_not_told_is_as_documented(
    given: dict[str, Any], arriving: list[str], call: Call
) -> None:
    assert call(*arriving).code == 0
    told = {"lateness": "0 seconds", "max_ahead": "1 day", "trigger": None, "available_now": False}
    assert {name: given[name] for name in told} == told
    assert call(*arriving, "--max-ahead", "none").code == 0
    assert given["max_ahead"] is None


def test_a_pipe_gets_the_lines_of_every_batch_under_one_header(
    given: dict[str, Any], arriving: list[str], call: Call
) -> None:
    header, *lines = CSV.splitlines(keepends=True)
    code, out, err = call(*arriving)
    assert (code, out) == (0, "".join([header, *lines, *lines])), err
    code, out, _ = call(*arriving, "--format", "jsonl")
    assert (code, out.count("\n"), out.count('{"region":"EU"')) == (0, 4, 2)
