from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ids.cli.app import invoke
from ids.games import GAMES
from tests.house.source import ROOT

BLOCK = re.compile(
    r"^```python[^\n]*\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```)?",
    re.MULTILINE | re.DOTALL,
)
DEMO = re.compile(r"^`make demo`.*?^```text\n(?P<shown>.*?)^```", re.MULTILINE | re.DOTALL)
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
    namespace: dict[str, object] = {"__name__": "__main__"}
    blocks = list(BLOCK.finditer(text))
    assert blocks, f"{document} has no Python to run"
    for block in blocks:
        # Padded with empty lines, so that a traceback points into the document.
        line = text.count("\n", 0, block.start("code"))
        exec(compile("\n" * line + block["code"], str(path), "exec"), namespace)
        printed = capsys.readouterr().out
        assert printed == (block["shown"] or ""), f"{document}, the block at line {line}"


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
