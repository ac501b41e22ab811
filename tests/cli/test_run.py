from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ids
from ids.errors import ScriptError
from tests.architecture.test_documented import command_line, options
from tests.cli.conftest import EMITS, SELECT, FakeEngine, Outcome

Call = Callable[..., Outcome]
CSV = (
    "region,emit_at,n,phi\n"
    '"EU",1970-01-01 00:00:00.000000Z,1,0.5\n'
    ",1970-01-01 00:00:01.500000Z,10000,-1234.25\n"
)


def _after(first: BaseException, second: BaseException) -> BaseException:
    second.__context__ = first
    return second


@pytest.mark.parametrize("output", [[], ["--output", "-"]])
def test_a_pipe_gets_csv_and_nothing_else(
    engine: FakeEngine, call: Call, script: str, output: list[str]
) -> None:
    assert call("run", script, "--table", "t=in/", *output) == Outcome(0, CSV, "")
    assert engine.asked["tables"] == {"t": "in/"}


def test_a_dash_reads_the_script_from_stdin(
    engine: FakeEngine, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(SELECT))
    assert call("run", "-") == Outcome(0, CSV, "")
    assert engine.asked["script"] == SELECT


def test_a_seed_reaches_the_engine(engine: FakeEngine, call: Call, script: str) -> None:
    call("run", script)
    assert engine.asked["seed"] == 0
    call("run", script, "--seed", "-7")
    assert engine.asked["seed"] == -7


def test_a_terminal_shows_every_result_as_a_table(
    engine: FakeEngine, call: Call, script: str, terminal: None
) -> None:
    Path(script).write_text(SELECT * 2)
    engine.tables = [EMITS, pa.table({"n": range(50), "s": [float(i) for i in range(50)]})]
    code, out, err = call("run", script)
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert ["region", "emit_at", "n", "phi"] in lines
    assert ["NULL", "1970-01-01", "00:00:01.500", "10,000", "-1,234.2"] in lines
    assert ["30", "30.000"] in lines and ["29", "29.000"] not in lines
    assert "the last 20 of 50 emits" in out


def test_an_output_gets_the_last_select(
    engine: FakeEngine, call: Call, script: str, tmp_path: Path
) -> None:
    Path(script).write_text(SELECT + "EXPLAIN " + SELECT)
    target = tmp_path / "out.parquet"
    assert call("run", script, "--output", target) == Outcome(0, "", "")
    assert pq.read_table(target).equals(EMITS)


def test_an_output_of_no_known_format_is_refused_before_the_engine_starts(
    engine: FakeEngine, call: Call, script: str
) -> None:
    code, out, err = call("run", script, "--output", "out.xlsx")
    assert (code, out) == (1, "")
    assert err.startswith("error: cannot tell the format of out.xlsx; end it with .parquet")
    assert engine.asked == {}


def test_a_script_that_asks_for_nothing_is_refused(
    engine: FakeEngine, call: Call, script: str
) -> None:
    Path(script).write_text("-- nothing\n")
    code, out, err = call("run", script)
    assert (code, out) == (1, "")
    assert err == "error: the script asks for nothing; end it with a SELECT … EMIT CHANGES\n"


@pytest.mark.parametrize("verb", ["run", "explain"])
def test_a_table_nobody_gave_is_asked_for(call: Call, script: str, verb: str) -> None:
    code, out, err = call(verb, script)
    assert (code, out) == (1, "")
    told, line, caret = err.splitlines()
    assert told == "error: unknown table 't' at line 1, column 25; give it with --table t=PATH"
    assert line[caret.index("^") :].startswith("t WINDOW w")


def test_bad_rows_are_counted_on_stderr(
    engine: FakeEngine, call: Call, script: str, tmp_path: Path
) -> None:
    engine.bad_rows = 3
    outcome = call("run", script, "--bad-rows", tmp_path / "bad")
    assert outcome == Outcome(0, CSV, f"note: 3 bad rows set aside in {tmp_path / 'bad'}\n")
    assert engine.asked["bad_rows"] == str(tmp_path / "bad")


@pytest.mark.parametrize(
    ("failure", "code", "line"),
    [
        (
            ScriptError("unknown column 'x'", hint="known: y"),
            1,
            "error: unknown column 'x'; known: y",
        ),
        (KeyError("a"), 70, "internal error: KeyError: 'a'; run again with --debug"),
        (
            ValueError("two\nlines"),
            70,
            "internal error: ValueError: two lines; run again with --debug",
        ),
        (KeyboardInterrupt(), 130, "interrupted"),
        (_after(KeyboardInterrupt(), ImportError("numpy failed")), 130, "interrupted"),
        (_after(KeyboardInterrupt(), ScriptError("Spark failed")), 130, "interrupted"),
    ],
)
def test_a_failure_is_one_line_and_an_exit_code(
    engine: FakeEngine, call: Call, script: str, failure: BaseException, code: int, line: str
) -> None:
    engine.failure = failure
    assert call("run", script) == Outcome(code, "", f"{line}\n")


def test_debug_shows_the_traceback_before_the_line(
    engine: FakeEngine, call: Call, script: str
) -> None:
    engine.failure = ScriptError("no")
    code, _, err = call("run", script, "--debug")
    assert code == 1
    assert err.startswith("Traceback") and err.endswith("\nerror: no\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "Missing argument"),
        (["fly"], "No such command 'fly'"),
        (["run", "q.sql", "--engine", "warp"], "'warp' is not known; use spark or local"),
        (["run", "q.sql", "--engine", "local", "--stream"], "is for Spark; leave out --engine"),
        (["run", "q.sql", "--engine", "spark", "--available-now"], "is for streams; add --stream"),
        (["run", "q.sql", "--engine", "spark", "--schema", "t=a INT"], "no --table is called 't'"),
        (["run", "q.sql", "--table", "t"], "'t' is not NAME=PATH"),
        (["run", "q.sql", "--table", "t=a", "--table", "t=b"], "'t' is given twice"),
        (["run", "q.sql", "--oops"], "No such option: --oops"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_code_two(
    engine: FakeEngine, call: Call, arguments: list[str], message: str
) -> None:
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and message in err
    assert err.count("\n") == 1


def test_a_missing_script_names_its_nearest_neighbour(call: Call, script: str) -> None:
    code, _, err = call("run", script.replace("query", "qeury"))
    assert (code, err.count("\n")) == (1, 1)
    assert err.endswith("qeury.sql; did you mean 'query.sql'?\n")


def test_the_version_is_that_of_the_package(call: Call) -> None:
    assert call("--version") == Outcome(0, f"ids {ids.__version__}\n", "")


@pytest.mark.parametrize("called", sorted({path for path, _ in options(command_line())}))
def test_every_command_has_a_short_help(call: Call, called: str) -> None:
    words = called.split()[1:]
    code, out, err = call(*words, "-h")
    assert (code, err) == (0, "") and f"Usage: {called}" in out
    assert call(*words, "--oops").err.endswith(f"; see {called} --help\n")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["run", "--help"]])
def test_help_is_help(call: Call, arguments: list[str]) -> None:
    code, out, err = call(*arguments)
    assert (code, err) == (0, "")
    assert "Usage: ids" in out


def test_a_reader_that_goes_away_is_no_fault(tmp_path: Path, script: str) -> None:
    program = (
        "import sys; import ids.engine; from tests.cli.conftest import FakeEngine;"
        "import pyarrow as pa; from ids.cli.app import invoke;"
        "fake = FakeEngine([pa.table({'x': range(500_000)})]);"
        "ids.query.run_script = fake.run_script; sys.exit(invoke(sys.argv[1:]))"
    )
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", program, "run", script, "--engine", "local"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"x\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 0
