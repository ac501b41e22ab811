"""RQ3: what is worked out on paper is what an engine keeps, and a process says what it took."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from math import isclose
from multiprocessing import get_context
from typing import Any, cast

import numpy as np
import pytest

import ids
from evaluation.rq3 import CHAPTER
from evaluation.rq3.memory import (
    ATOMS,
    CONFIGURATIONS,
    DIGITS,
    PREDICATES,
    make_batch,
    measured,
    run,
    survivors,
)
from evaluation.step import FULL, QUICK
from ids.state import Retained

WINDOW = 20_000


@pytest.fixture(scope="module")
def engines() -> dict[str, ids.Engine]:
    return {key: run(one, WINDOW) for key, one in CONFIGURATIONS.items()}


def live(retained: Retained) -> int:
    """Bytes of the rows inside alone, without room to spare."""
    return sum(array.nbytes for array in retained.arrays().values())


def test_every_configuration_keeps_the_same_window(engines: dict[str, ids.Engine]) -> None:
    answers = {
        tuple(engine.attribute("AVG", name).value for name in PREDICATES)
        for engine in engines.values()
    }
    assert len(answers) == 1
    assert all(engine.rows == WINDOW for engine in engines.values())
    assert all(engine.atoms == ATOMS for engine in engines.values())


def test_a_retained_row_has_the_bytes_that_were_worked_out(engines: dict[str, ids.Engine]) -> None:
    for key, engine in engines.items():
        core = engine._core
        assert core is not None
        assert core.measures[1].scale.digits == DIGITS
        retained = live(core.retained)
        assert retained == CONFIGURATIONS[key].analytic(WINDOW)["retained"]


def test_what_is_held_is_what_was_worked_out_and_room_to_spare(
    engines: dict[str, ids.Engine],
) -> None:
    for key, engine in engines.items():
        needed, held = CONFIGURATIONS[key].analytic(WINDOW), engine.memory()
        assert 1.0 <= (held.summaries + held.atoms) / needed["summaries"] <= 1.5
        assert needed["retained"] <= held.retained <= 1.3 * needed["retained"]
        # a block that has expired in part is held whole
        assert needed["index"] <= held.index <= 2.5 * needed["index"]
        assert bool(needed["sample"]) == bool(held.sampler)
        if needed["sample"]:
            assert 0.5 <= held.sampler / needed["sample"] <= 2.0


def test_survivors_of_a_window_are_counted_as_they_are_found() -> None:
    rng = np.random.default_rng(5)
    size, rows = 50, 3_000
    found = []
    for _ in range(20):
        newer: list[float] = []
        kept = 0
        for one in rng.random(rows):
            newer = sorted([*newer, one])[-size:]
            kept += one in newer
        found.append(kept)
    assert isclose(np.mean(found), survivors(size, rows), rel_tol=0.03)
    assert survivors(size, 20) == 20


def test_a_batch_is_the_same_when_made_again() -> None:
    assert make_batch(7, 100).equals(make_batch(7, 100))
    assert not make_batch(7, 100).equals(make_batch(8, 100))


def test_a_process_says_what_it_took() -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        said = cast(Any, pool.submit(measured, "retained", WINDOW).result())
    needed = said["analytic"]
    assert needed == sum(CONFIGURATIONS["retained"].analytic(WINDOW).values())
    assert needed <= said["heap_end"] <= said["heap_peak"] <= 2 * needed
    if "resident_peak" in said:
        assert needed <= said["resident_peak"] <= 3 * needed
        parts = [said[f"resident_{part}"] for part in ("state", "free", "moment", "rest")]
        assert sum(parts) == said["resident_peak"]
        assert isclose(said["resident_state"], said["held"], rel_tol=0.1)


def test_the_windows_of_a_full_run_are_the_papers() -> None:
    names = [step.name for step in CHAPTER.steps(FULL)]
    assert names == [f"rq3-memory-{10**n}" for n in (3, 4, 5, 6)]
    assert [step.name for step in CHAPTER.steps(QUICK)] == names[:3]
