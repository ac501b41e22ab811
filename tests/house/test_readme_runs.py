from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house.source import ROOT

BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", ["README.md", "docs/tour.md"])
def test_the_python_of_a_document_runs_from_top_to_bottom(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ROOT / document
    if not path.is_file():
        pytest.skip(f"{document} is not written yet")
    text = path.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        # Padded with empty lines, so that a traceback points into the document.
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(path), "exec"), namespace)
