"""RQ3: what is worked out on paper is what an engine keeps, and the words follow the rows."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from math import isclose

import numpy as np
import pytest

import ids
from evaluation.chapter import Tables
from evaluation.rq3 import CHAPTER, paper
from evaluation.rq3.analytic import ATOMS, DIGITS, analytic, survivors
from evaluation.rq3.configurations import (
    CONFIGURATIONS,
    PREDICATES,
    batch_rows,
    make_batch,
    run,
)
from evaluation.size import FULL, QUICK
from evaluation.step import Row
from ids.state.retained import Retained

WINDOW = 20_000


@pytest.fixture(scope="module")
def engines() -> dict[str, ids.Engine]:
    return {key: run(one, WINDOW, lambda: None) for key, one in CONFIGURATIONS.items()}


def live(retained: Retained) -> int:
    """Bytes of the rows inside alone, without room to spare."""
    return sum(retained.rows[name].nbytes for name in retained.rows.names)


def test_every_configuration_keeps_the_same_window(engines: dict[str, ids.Engine]) -> None:
    answers = {
        key: [engine.attribute("AVG", name).value for name in PREDICATES]
        for key, engine in engines.items()
    }
    assert all(engine.rows == WINDOW for engine in engines.values())
    assert all(engine.atoms == ATOMS for engine in engines.values())
    assert len({tuple(values) for values in answers.values()}) == 1


def test_a_retained_row_has_the_bytes_that_were_worked_out(engines: dict[str, ids.Engine]) -> None:
    for key, engine in engines.items():
        core = engine._core
        assert core is not None
        assert core.measures[1].scale.digits == DIGITS
        retained = 0 if core.retained is None else live(core.retained)
        assert retained == analytic(CONFIGURATIONS[key], WINDOW).retained


def test_what_is_held_is_what_was_worked_out_and_room_to_spare(
    engines: dict[str, ids.Engine],
) -> None:
    for key, engine in engines.items():
        needed, held = analytic(CONFIGURATIONS[key], WINDOW), engine.memory()
        assert 1.0 <= (held.summaries + held.atoms) / needed.summaries <= 1.5
        assert needed.retained <= held.retained <= 1.3 * needed.retained
        # a block that has expired in part is held whole
        assert needed.index <= held.index <= 2.5 * needed.index
        assert bool(needed.sample) == bool(held.sampler)
        if needed.sample:
            assert 0.5 <= held.sampler / needed.sample <= 2.0


def test_survivors_of_a_window_are_counted_as_they_are_found() -> None:
    rng = np.random.default_rng(5)
    size, rows = 50, 3_000
    found = []
    for _ in range(20):
        priority = rng.random(rows)
        newer: list[float] = []
        kept = 0
        for one in priority[::-1]:
            newer = sorted([*newer, one])[-size:]
            kept += one in newer
        found.append(kept)
    assert isclose(np.mean(found), survivors(size, rows), rel_tol=0.03)
    assert survivors(size, 20) == 20


def test_a_batch_is_small_beside_its_window_and_the_same_when_made_again() -> None:
    for window in (1_000, 10_000, 100_000, 1_000_000):
        assert batch_rows(window) <= window / 100
        assert window % batch_rows(window) == 0
    assert make_batch(7, 100).equals(make_batch(7, 100))
    assert not make_batch(7, 100).equals(make_batch(8, 100))


def test_a_process_says_what_it_took() -> None:
    command = [sys.executable, "-m", "evaluation.rq3.child", "retained", "20000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    needed = analytic(CONFIGURATIONS["retained"], 20_000).total
    assert needed <= said["heap"] <= 2 * needed
    assert 0 < said["resident"] <= 3 * needed
    assert said["rows"] == 20_000


def rows(windows: tuple[int, ...] = (10**5, 10**6)) -> list[Row]:
    """Findings as a run would give them, with a heap of twice what is needed."""
    found: list[Row] = []
    for window in windows:
        for key, one in CONFIGURATIONS.items():
            needed = analytic(one, window)
            parts = {
                "summaries": needed.summaries,
                "retained": needed.retained,
                "index": needed.index,
                "sample": needed.sample,
            }
            found.append(
                {
                    "configuration": key, "label": one.label, "window": window,
                    "predicates": 4, "atoms": 6, "analytic": needed.total,
                    **{f"analytic_{name}": value for name, value in parts.items()},
                    **{f"held_{name}": value for name, value in parts.items()},
                    "held": needed.total, "heap_peak": 2 * needed.total,
                    "resident_peak": 3 * needed.total,
                }
            )  # fmt: skip
    return found


def test_the_papers_numbers_stand_beside_ours() -> None:
    section = CHAPTER.show(Tables({"rq3_memory": rows()}))
    beside = {one.what: one for one in section.comparisons}
    (peak,) = (one for what, one in beside.items() if what.startswith("heap peak over analytic"))
    assert (peak.ours, peak.verdict) == (2.0, "better")
    assert peak.paper == pytest.approx(44 / 4.6)
    retained = beside["retained window, N = 10⁶"]
    assert retained.ours == pytest.approx(45 * 10**6 / 2**20)
    assert (retained.paper, retained.verdict) == (paper.RETAINED, "worse")
    assert all(one.reason for one in section.comparisons if one.verdict == "worse")
    assert re.search(r"2(\.00)? × what is needed on the heap", " ".join(section.remarks))


def test_a_quick_run_leaves_out_what_it_did_not_measure() -> None:
    section = CHAPTER.show(Tables({"rq3_memory": rows((10**3, 10**5))}))
    beside = {one.what: one.ours for one in section.comparisons}
    assert beside["retained window, N = 10⁶"] is None
    assert beside["analytic, retained window, index and a sample, N = 10⁵"] is not None
    assert not CHAPTER.show(Tables({})).remarks


def test_the_windows_of_a_full_run_are_the_papers() -> None:
    names = [step.name for step in CHAPTER.steps(FULL)]
    assert names == [f"rq3-memory-{10**n}" for n in (3, 4, 5, 6)]
    assert [step.name for step in CHAPTER.steps(QUICK)] == names[:3]


def test_the_figure_has_a_panel_a_window() -> None:
    drawing = CHAPTER.figures[0].draw(Tables({"rq3_memory": rows()}))
    titles = [axes.get_title() or axes.get_title("left") for axes in drawing.axes]
    assert titles == ["N = 10⁵", "N = 10⁶"]
