from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from ids.cli.app import app, invoke
from ids.games import GAMES
from tests.architecture.source import ROOT

BLOCK = re.compile(
    r"^```python[^\n]*\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```)?",
    re.MULTILINE | re.DOTALL,
)
# A sample file of a document: its name follows the kind.
FILE = re.compile(r"^```csv (?P<name>\S+)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
DEMO = re.compile(r"^`make demo`.*?^```text\n(?P<shown>.*?)^```", re.MULTILINE | re.DOTALL)
# What a shell shows: `$ ` begins a command, the lines after it are what it prints.
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (?P<typed>.+)\n(?P<shown>(?:(?!\$ ).*\n)*)", re.MULTILINE)
CONSOLES = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if CONSOLE.search(path.read_text(encoding="utf-8"))
]
# Commands that need a cluster or a broker are not run, but ids must know their options.
TYPED = re.compile(r"^ *ids run (query\.sql .*)$", re.MULTILINE)
DOCUMENTS = [
    "README.md",
    "docs/tour.md",
    "docs/spark.md",
    "docs/games.md",
    "docs/language.md",
    "docs/numerics.md",
    "docs/questions.md",
    "docs/sampling.md",
]


# the samples run in the session that all tests share
pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture(autouse=True)
def games_as_they_were() -> Iterator[None]:
    before = dict(GAMES)
    yield
    GAMES.clear()
    GAMES.update(before)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_python_of_a_document_runs_and_prints_what_is_shown_below_it(
    document: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = ROOT / document
    text = path.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for file in FILE.finditer(text):
        Path(file["name"]).write_text(file["text"], encoding="utf-8")
    namespace: dict[str, object] = {"__name__": "__main__"}
    blocks = list(BLOCK.finditer(text))
    assert blocks, f"{document} has no Python to run"
    for block in blocks:
        # Padded with empty lines, so that a traceback points into the document.
        line = text.count("\n", 0, block.start("code"))
        exec(compile("\n" * line + block["code"], str(path), "exec"), namespace)
        printed = capsys.readouterr().out
        assert printed == (block["shown"] or ""), f"{document}, the block at line {line}"


@pytest.mark.slow
def test_the_demo_in_the_readme_is_what_the_demo_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    assert invoke(["demo"]) == 0
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    found = DEMO.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert found, "README.md shows no demo"
    at = 0
    for line in found["shown"].splitlines():
        if line != "…":
            assert line in printed[at:], f"the demo does not print {line!r} (there)"
            at = printed.index(line, at) + 1


class Shell:
    """A terminal of eighty characters in an empty directory, for ``ids`` without a new process."""

    def __init__(self, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self.patch, self.capture = patch, capture

    def run(self, typed: str, shown: str) -> str:
        """What a command prints; ``cat`` of a file that is not there yet makes it as shown."""
        file = Path(typed.removeprefix("cat "))
        if typed.startswith("cat ") and not file.exists():
            file.write_text(shown, encoding="utf-8")
        command, _, reader = typed.partition(" | ")
        if not command.startswith("ids "):
            return subprocess.run(typed, shell=True, capture_output=True, text=True).stdout
        self.patch.setattr(sys.stdout, "isatty", lambda: not reader)
        code = invoke(shlex.split(command)[1:])
        out, err = self.capture.readouterr()
        assert (code == 0) == ("error: " not in err), f"{typed}: exit code {code}, {err}"
        if reader:
            out = subprocess.run(
                reader, shell=True, input=out, capture_output=True, text=True
            ).stdout
        return out + err


@pytest.mark.parametrize("document", CONSOLES, ids=lambda path: path.name)
def test_the_console_samples_of_a_document_run_and_print_what_is_shown(
    document: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.chdir(tmp_path)
    shell = Shell(monkeypatch, capsys)
    for block in CONSOLE.findall(document.read_text(encoding="utf-8")):
        for sample in COMMAND.finditer(block):
            printed = shell.run(sample["typed"], sample["shown"])
            expected, found = (plain(side) for side in (sample["shown"], printed))
            # … stands for what differs from run to run
            pattern = ".*".join(map(re.escape, expected.split("…")))
            assert re.fullmatch(pattern, found), f"$ {sample['typed']}\n{found}"


def plain(text: str) -> str:
    """The text without the blanks that nobody sees."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


@pytest.mark.parametrize("document", ["README.md", "docs/cli.md", "docs/spark.md"])
def test_the_commands_that_a_document_shows_are_ones_that_ids_knows(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8").replace("\\\n", "")
    commands = TYPED.findall(text)
    assert commands
    ids: Any = get_command(app)
    for typed in commands:
        ids.commands["run"].make_context("run", shlex.split(typed))
