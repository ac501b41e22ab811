from __future__ import annotations

from typing import Any

import pytest

from evaluation.chapter import Figure, Section, Tables
from evaluation.drawing import styled, svg
from evaluation.rq1 import CHAPTER, paper
from evaluation.rq1.enumeration import GAMES
from evaluation.rq1.findings import ERRORS
from evaluation.size import FULL, QUICK


def _rows(differing: int = 0) -> dict[str, list[dict[str, Any]]]:
    replay = {"slides": 300_000, "questions": 10, "differing": differing, "units": 2.0}
    return {
        "rq1_enumeration": [
            {"game": game, "kind": kind, "cases": 2_000, "abs_err": absolute, "rel_err": off,
             "units": 3.0}
            for game in GAMES
            for kind, absolute, off in (("lognormal", 1e-15, 2e-16), ("offset", 1e-6, 8e-13))
        ],
        "rq1_deltas": [
            {**replay, "workload": workload, "game": game, "checks": 100, "delta": 0.0,
             "exact": 1e-16, "residual": 3e-16, "probe": 3e-16}
            for workload in ("synthetic", "stress")
            for game in GAMES
        ],
        "rq1_emits": [
            {**replay, "workload": "stress", "emits": 310_000, "game": "SUM", "exact": 1e-16,
             "telescoped": 0.0}
        ],
        "rq1_restored": [
            {"workload": "stress", "slides": 300_000, "checks": 100, "restored_at": 150_001,
             "answers": 42, "differing": differing, "atoms": 12}
        ],
        "rq1_drift": [
            {"stream": stream, "state": state, "slides": slides, "avg": 0.0, "var_pop": error}
            for stream in ("stress", "spikes")
            for state, error in (("doubles, += and -=", 5.0), ("doubles, centred", 1.0),
                                 ("doubles, centred and compensated", 1e-14), ("IDS", 0.0))
            for slides in (10, 1_000)
        ],
    }  # fmt: skip


def _shown(tables: dict[str, list[dict[str, Any]]]) -> Section:
    return CHAPTER.show(Tables(tables))


def _comparison(section: Section, what: str) -> Any:
    return next(c for c in section.comparisons if c.what == what)


def test_the_papers_numbers_stand_beside_the_worst_of_ours() -> None:
    shown = _shown(_rows())
    cases = _comparison(shown, "cases enumerated, each game")
    assert (cases.paper, cases.ours, cases.verdict) == (3_186, 4_000, "better")
    off = _comparison(shown, "VAR_SAMP: max rel err against enumeration")
    assert (off.paper, off.ours, off.verdict) == (2.7e-13, 8e-13, "worse")
    assert "1 part in 2,402" in off.reason
    delta = _comparison(shown, "VAR_POP: max rel delta err")
    assert (delta.paper, delta.ours, delta.verdict) == (1.4e-13, 0.0, "better")
    assert _comparison(shown, "COUNT: max rel delta err").verdict == "equal"
    residual = _comparison(
        shown, "the text's bound for all five games: max rel Efficiency residual"
    )
    assert (residual.paper, residual.ours) == (4e-15, 3e-16)
    assert _comparison(shown, "slides of each replay").verdict == "equal"


def test_an_absolute_error_of_values_of_a_billion_is_told_apart() -> None:
    shown = _shown(_rows())
    (absolute,) = (c for c in shown.comparisons if c.what.startswith("SUM: max abs err"))
    assert absolute.ours == 1e-15
    stressed = [row for row in shown.tables[0].rows if row[1] == "ours, stress alone"]
    assert stressed[0] == ["SUM", "ours, stress alone", "2,000", "1.0×10⁻⁶", "8.0×10⁻¹³", "0",
                           "3.0×10⁻¹⁶"]  # fmt: skip


def test_zero_drift_is_claimed_only_where_it_was_found() -> None:
    assert any("not small but zero" in remark for remark in _shown(_rows()).remarks)
    bad = _shown(_rows(differing=1)).remarks
    assert not any("not small but zero" in remark for remark in bad)
    assert any("15 of 150 answers kept by deltas differ" in remark for remark in bad)
    assert any("1 of 42 answers differ from the run" in remark for remark in bad)


@pytest.mark.parametrize("missing", [None, *_rows()])
def test_a_chapter_stands_without_some_of_its_tables(missing: str | None) -> None:
    tables = {} if missing is None else {k: v for k, v in _rows().items() if k != missing}
    shown = _shown(tables)
    if missing is None:
        assert not shown.remarks
        assert not shown.tables
        assert all(c.ours is None for c in shown.comparisons)


@pytest.mark.parametrize("figure", CHAPTER.figures, ids=lambda figure: figure.name)
def test_a_figure_is_drawn_from_the_tables_it_needs_alone(figure: Figure) -> None:
    needed = {name: rows for name, rows in _rows().items() if name in figure.needs}
    with styled():
        assert "<svg" in svg(figure.draw(Tables(needed)))


def test_the_papers_rows_keep_the_papers_bounds() -> None:
    for column, bound in paper.BOUNDS.items():
        assert max(getattr(errors, column) for errors in paper.PRINTED.values()) <= bound
    assert set(paper.Errors._fields) == set(ERRORS)


@pytest.mark.parametrize("size", [QUICK, FULL])
def test_steps_bear_the_chapters_name_and_name_their_workload(size: Any) -> None:
    steps = CHAPTER.steps(size)
    assert len({step.name for step in steps}) == len(steps)
    assert all(step.name.startswith("rq1-") and len(step.does) <= 50 for step in steps)
    assert {need for step in steps for need in step.needs} == {
        "synthetic", "stress", "nyc", "auction",
    }  # fmt: skip
