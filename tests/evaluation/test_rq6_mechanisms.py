"""The ad hoc mechanisms of RQ6: which conditions, which engines, and what is said of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import ids
from evaluation.chapter import Tables
from evaluation.drawing import styled
from evaluation.repeated import Repeated
from evaluation.rq6.mechanisms import FIGURES, show, steps
from evaluation.rq6.mechanisms.choosing import Case, cases
from evaluation.rq6.mechanisms.contenders import MECHANISMS, SAMPLE, engine
from evaluation.rq6.mechanisms.measuring import refuse_another_answer
from evaluation.rq6.mechanisms.paper import SELECTIVITIES, TABLE
from evaluation.size import FULL, QUICK
from evaluation.step import Row
from evaluation.subject import SUBJECTS

NYC = SUBJECTS["nyc"]
ROWS = 20_000


def trips(rare: int) -> pa.Table:
    """Boroughs and vendors that do not depend on each other, and ``rare`` rows of a third one."""
    rng = np.random.default_rng(5)
    borough = rng.choice(["Manhattan", "Queens"], ROWS, p=[0.6, 0.4])
    borough[:rare] = "EWR"
    vendor = rng.choice([1, 2], ROWS, p=[0.06, 0.94])
    payment = pa.array(rng.integers(1, 4, ROWS), mask=rng.random(ROWS) < 0.3)
    fare = np.round(rng.lognormal(2.5, 0.5, ROWS), 2)
    return pa.table({"borough": borough, "vendor": vendor, "payment": payment, "fare_amount": fare})


@pytest.fixture(scope="module")
def window() -> pa.Table:
    return trips(rare=4)


def test_conditions_come_as_near_to_the_papers_selectivities_as_the_rows_allow(
    window: pa.Table,
) -> None:
    rare, some, most = cases(window, NYC)
    assert (rare.condition, rare.matches) == ("borough = 'EWR'", 4)
    assert some.condition == "borough = 'Queens' AND vendor = 1"
    assert some.selectivity == pytest.approx(0.024, rel=0.1)
    assert most.condition == "borough = 'Manhattan'"
    for case in (rare, some, most):
        assert case.matches == ROWS * case.selectivity
        assert "None" not in case.condition


def test_two_rows_are_too_few_to_ask_about() -> None:
    rare, *_ = cases(trips(rare=2), NYC)
    assert "EWR" not in rare.condition
    assert rare.matches >= 3


def test_every_engine_answers_by_its_own_mechanism(window: pa.Table) -> None:
    asked = cases(window, NYC)
    by = {}
    for mechanism in MECHANISMS:
        made = engine(mechanism, NYC, ROWS, asked, strata=3)
        made.ingest(window)
        by[mechanism] = [made.attribute("AVG", case.condition).mechanism for case in asked]
        if "sample" in mechanism:
            assert made.attribute("AVG", asked[0].condition).touched < 1.5 * SAMPLE
    assert by["brute force scan"] == ["scan"] * 3
    assert by["index assisted"][0] == "index"
    assert by["uniform sample"] == ["sample"] * 3
    assert by["stratified sample"] == ["stratified"] * 3
    assert by["compositional"] == ["compositional"] * 3
    assert by["registered"] == ["marginal"] * 3


def filled(window: pa.Table, asked: list[Case]) -> dict[str, ids.Engine]:
    made = {name: engine(name, NYC, ROWS, asked, strata=3) for name in MECHANISMS}
    for one in made.values():
        one.ingest(window)
    return made


def test_exact_mechanisms_are_held_to_a_plain_sum(window: pa.Table) -> None:
    asked = cases(window, NYC)
    engines = filled(window, asked)
    for case in asked:
        refuse_another_answer(case, engines, window, "fare_amount")
    other = window.slice(0, ROWS - 10)
    with pytest.raises(AssertionError, match="the rows' is"):
        refuse_another_answer(asked[2], engines, other, "fare_amount")
    engines["index assisted"].ingest(window.slice(9_000, 500))
    with pytest.raises(AssertionError, match="several exact answers"):
        refuse_another_answer(asked[2], engines, window, "fare_amount")


def findings(workload: str = "nyc", rows: int = 200_000) -> dict[str, list[Row]]:
    facts: Row = {"workload": workload, "window": rows, "sample": 2_000, "strata": 6,
                  "stratum": "borough"}  # fmt: skip
    questions: list[Row] = [
        {**facts, "case": case, "condition": "c", "matches": 4, "selectivity": share,
         "mechanism": name, "by": "scan", "touched": 9,
         "query": Repeated((1e-6 * (number + 1),) * 5), "bytes": (number + 1) << 20}
        for case, share in SELECTIVITIES.items() for number, name in enumerate(MECHANISMS)
    ]  # fmt: skip
    kept: list[Row] = [
        {**facts, "mechanism": name, "slide": 1_000, "beside": "nothing",
         "whole": Repeated((2e-6,) * 5), "extra": Repeated((1e-7 * (number + 1),) * 5)}
        for number, name in enumerate(MECHANISMS)
    ]  # fmt: skip
    errors: list[Row] = [
        {**facts, "case": case, "mechanism": name, "trials": 100, "empty": 0.5,
         "error": Repeated((size,) * 5)}
        for case in SELECTIVITIES
        for name, size in (("uniform sample", 0.8), ("stratified sample", 0.2))
    ]  # fmt: skip
    return {"rq6_mechanisms_questions": questions, "rq6_mechanisms_maintenance": kept,
            "rq6_mechanisms_errors": errors}  # fmt: skip


def test_every_number_of_the_papers_table_has_ours_beside_it() -> None:
    section = show(Tables(findings()))
    found = {one.what: one for one in section.comparisons}
    assert all(one.ours is not None for one in section.comparisons)
    query = found["index assisted, selectivity 0.02515 (ours 0.025, by scan): query"]
    assert (query.paper, query.ours) == (1_667.1, pytest.approx(2.0))
    strata = "stratified sample (the paper's r is not stated)"
    error = found[f"{strata}, selectivity 0.62731 (ours 0.63): relative error"]
    assert (error.paper, error.ours, error.verdict) == (0.141, 0.2, "worse")
    assert error.reason
    memory = found["uniform sample (the paper's r is not stated): memory"]
    assert (memory.paper, memory.ours) == (0.72, 3.0)
    assert found["index assisted: maintenance, a tuple"].ours == pytest.approx(0.2)
    assert found["at the rarest, error of the uniform over the stratified sample"].ours == 4.0
    (table,) = section.tables
    assert len(table.rows) == 3 * len(MECHANISMS)
    assert table.rows[1][1:5] == ["index assisted", "scan", "2.0", "22.4"]
    assert {row[-2] for row in table.rows if "sample" not in row[1]} == {"0 (exact)"}


def test_other_rows_are_not_put_beside_the_papers() -> None:
    for other in (findings("auction"), findings(rows=50_000)):
        section = show(Tables(other))
        assert all(one.ours is None for one in section.comparisons)
        assert section.tables
        assert section.remarks


def test_strata_without_error_have_no_factor_to_their_name() -> None:
    rows = findings()
    for row in rows["rq6_mechanisms_errors"]:
        if row["mechanism"] == "stratified sample":
            row["error"] = Repeated((0.0,) * 5)  # type: ignore[index]
    section = show(Tables(rows))
    assert section.comparisons[-1].ours is None
    assert "taken whole" in " ".join(section.remarks)


def test_nothing_measured_is_nothing_said() -> None:
    section = show(Tables({}))
    assert not section.remarks
    assert not section.tables
    assert len(section.comparisons) > len(TABLE)


def test_the_figure_is_drawn_from_rows_alone() -> None:
    with styled():
        (figure,) = FIGURES
        assert figure.draw(Tables(findings())).axes


@pytest.mark.parametrize("size", [QUICK, FULL])
def test_steps_bear_their_key_and_fit_the_bar(size: object) -> None:
    for step in steps(size):  # type: ignore[arg-type]
        assert step.name.startswith("rq6-mechanisms")
        assert len(step.does) <= 50
        assert step.seconds < 120
