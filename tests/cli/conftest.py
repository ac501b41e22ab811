"""The command line as a person meets it: arguments in, exit code, stdout and stderr out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import ids.query
from ids.cli.app import invoke
from ids.language import parse
from ids.model import Explain, Select, Show
from tests.cli.recount import Result

EMITS = pa.table(
    {
        "region": ["EU", None],
        "emit_at": pa.array([0, 1_500_000], pa.timestamp("us", "UTC")),
        "n": [1, 10_000],
        "phi": [0.5, -1234.25],
    }
)
SELECT = "SELECT SUM(x) AS s FROM t WINDOW w AS (ORDER BY at ROWS 2 PRECEDING) EMIT CHANGES;"


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@dataclass
class FakeEngine:
    """Answers every SELECT and EXPLAIN with a table that was given to it."""

    tables: list[pa.Table] = field(default_factory=lambda: [EMITS])
    failure: BaseException | None = None
    bad_rows: int = 0
    asked: dict[str, Any] = field(default_factory=dict)

    def run_script(
        self,
        script: str,
        tables: Mapping[str, object],
        *,
        bad_rows: str | Path | None = None,
        progress: Callable[[int, int], None] | None = None,
        seed: int = 0,
        schema: Mapping[str, str] | None = None,
        null: Sequence[str] = (),
    ) -> Iterator[Result]:
        self.asked = {"script": script, "tables": dict(tables), "bad_rows": bad_rows}
        self.asked |= {"seed": seed, "schema": schema, "null": null}
        if self.failure is not None:
            raise self.failure
        answers = iter(self.tables)
        for statement in parse(script):
            if progress is not None:
                progress(1, 2)
            if isinstance(statement, Select):
                yield Result(statement, next(answers), self.bad_rows)
            if isinstance(statement, Show):
                yield Result(statement, pa.table({"predicate": [], "table": [], "condition": []}))
            if isinstance(statement, Explain):
                yield Result(
                    statement, pa.table({"plan": [f"a plan for {statement.select.table}"]})
                )


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    fake = FakeEngine()
    monkeypatch.setattr(ids.query, "run_script", fake.run_script, raising=False)
    return fake


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "query.sql"
    path.write_text(SELECT)
    return str(path)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a person looked at stdout, on a screen of eighty characters."""
    monkeypatch.setattr("ids.cli.script_run.is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def called(*arguments: object) -> Outcome:
        code = invoke([str(argument) for argument in _in_process(arguments)])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return called


def _in_process(arguments: tuple[object, ...]) -> tuple[object, ...]:
    """The command line itself does not depend on what runs the script: no Spark is started."""
    if arguments[:1] != ("run",) or "--engine" in arguments:
        return arguments
    return (*arguments, "--engine", "local")
