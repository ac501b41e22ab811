"""The ad hoc mechanisms of RQ6: which conditions are asked, and which engines answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from evaluation.drawing import styled
from evaluation.rq6.figures import FIGURES
from evaluation.rq6.mechanisms import MECHANISMS, SAMPLE, Scene
from evaluation.step import SUBJECTS, Repeated, Row
from evaluation.tables import Tables

ROWS = 20_000


def scene(rare: int) -> Scene:
    """Boroughs and vendors that do not depend on each other, and ``rare`` rows of a third one."""
    rng = np.random.default_rng(5)
    borough = rng.choice(["Manhattan", "Queens"], ROWS, p=[0.6, 0.4])
    borough[:rare] = "EWR"
    vendor = rng.choice([1, 2], ROWS, p=[0.06, 0.94])
    payment = pa.array(rng.integers(1, 4, ROWS), mask=rng.random(ROWS) < 0.3)
    fare = np.round(rng.lognormal(2.5, 0.5, ROWS), 2)
    trips = {"borough": borough, "vendor": vendor, "payment": payment, "fare_amount": fare}
    return Scene(SUBJECTS["nyc"], pa.table(trips), ROWS)


@pytest.fixture(scope="module")
def trips() -> Scene:
    return scene(rare=4)


def test_conditions_come_as_near_to_the_papers_selectivities_as_the_rows_allow(
    trips: Scene,
) -> None:
    rare, some, most = trips.asked
    assert rare.condition == "borough = 'EWR'"
    assert some.condition == "borough = 'Queens' AND vendor = 1"
    assert most.condition == "borough = 'Manhattan'"
    assert [int(one.mask(trips.first).sum()) for one in (rare, some)] == [
        4,
        pytest.approx(0.024 * ROWS, rel=0.1),
    ]


def test_two_rows_are_too_few_to_ask_about() -> None:
    few = scene(rare=2)
    assert "EWR" not in few.asked[0].condition
    assert few.asked[0].mask(few.first).sum() >= 3


def test_every_engine_answers_by_its_own_mechanism(trips: Scene) -> None:
    by = {}
    for mechanism in MECHANISMS:
        made = trips.filled(mechanism)
        by[mechanism] = [made.attribute("AVG", case.condition).mechanism for case in trips.asked]
        if "sample" in mechanism:
            assert made.attribute("AVG", trips.asked[0].condition).rows_read < 1.5 * SAMPLE
    assert by.pop("index assisted")[0] == "index"
    assert by == {
        "brute force scan": ["scan"] * 3,
        "uniform sample": ["sample"] * 3,
        "stratified sample": ["stratified"] * 3,
        "compositional": ["compositional"] * 3,
        "registered": ["marginal"] * 3,
    }


def test_exact_mechanisms_are_held_to_a_plain_sum(trips: Scene) -> None:
    engines = {name: trips.filled(name) for name in MECHANISMS}
    for case in trips.asked:
        trips.refuse_another_answer(case, engines, trips.first)
    other = trips.first.slice(0, ROWS - 10)
    with pytest.raises(AssertionError, match="the rows' is"):
        trips.refuse_another_answer(trips.asked[2], engines, other)
    engines["index assisted"].ingest(trips.first.slice(9_000, 500))
    with pytest.raises(AssertionError, match="several exact answers"):
        trips.refuse_another_answer(trips.asked[2], engines, trips.first)


def test_the_figure_is_drawn_from_rows_alone() -> None:
    rows: list[Row] = [
        {"mechanism": name, "selectivity": share, "query": Repeated((1e-6 * (k + 1),) * 5)}
        for k, name in enumerate(MECHANISMS)
        for share in (1e-5, 0.02, 0.6)
    ]
    with styled():
        assert FIGURES["rq6-mechanisms"](Tables({"rq6_mechanisms_questions": rows})).axes
