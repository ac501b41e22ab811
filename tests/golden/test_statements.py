"""Golden pairs: each ``name.sql`` parses to what ``name.statements`` shows (without positions).

After a deliberate change, ``python -m tests.golden.test_statements`` writes them anew.
"""

from __future__ import annotations

import re
from pathlib import Path
from pprint import pformat

import pytest

from ids.language import parse

SCRIPTS = sorted(Path(__file__).parent.glob("*.sql"))


def shown(script: Path) -> str:
    statements = parse(script.read_text(encoding="utf-8"))
    text = "\n".join(pformat(statement, width=100) for statement in statements)
    return re.sub(r",?\s*\bat=(Position\([^)]*\)|None)", "", text) + "\n"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_parses_to_its_statements(script: Path) -> None:
    assert shown(script) == script.with_suffix(".statements").read_text(encoding="utf-8")


def test_the_papers_listings_are_among_them() -> None:
    assert {"paper_register", "paper_compositional"} <= {script.stem for script in SCRIPTS}


if __name__ == "__main__":
    for each in SCRIPTS:
        each.with_suffix(".statements").write_text(shown(each), encoding="utf-8")
