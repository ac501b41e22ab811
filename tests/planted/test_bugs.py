from __future__ import annotations

from tests.planted.bugs import ROOT, load


def test_every_planted_bug_still_applies() -> None:
    bugs = load()
    assert len(bugs) >= 30
    assert len({bug.name for bug in bugs}) == len(bugs)
    for bug in bugs:
        planted = bug.planted((ROOT / bug.path).read_text(encoding="utf-8"))
        compile(planted, str(bug.path), "exec")
        assert (ROOT / bug.first).exists(), f"{bug.name!r}: there is no {bug.first}"
