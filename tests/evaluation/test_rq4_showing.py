"""What the chapter on sampling shows of rows made by hand: numbers land where they belong."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.chapter import Comparison, Section, Tables
from evaluation.drawing import styled
from evaluation.repeated import Repeated
from evaluation.rq4 import CHAPTER, paper
from evaluation.rq4.findings import (
    CONTENDERS,
    CONTROLLED,
    DEFAULT,
    PLAIN,
    REPLACED,
    control_gain,
    inexact,
    replacement_gap,
    slope,
    spread,
)
from evaluation.rq4.measuring import FRACTIONS, SIZES, WAYS
from evaluation.rq4.trials import GAMES_ASKED
from evaluation.size import FULL, QUICK

N = 100_000
PREDICATES = {"city = 1": 0.5, "city = 2": 0.02, "y > 3": 0.9}


def cell(way: str, game: str, predicate: str, r: int, **given: Any) -> dict[str, Any]:
    """An error that falls as r^(-1/2), 10 % of the aggregate at r = 1,000 for the commonest."""
    error = 20.0 * PREDICATES[predicate] * (1_000 / r) ** 0.5
    return {
        "subject": "nyc", "n": N, "kind": "range" if predicate[0] == "y" else "equality",
        "way": way, "game": game, "predicate": predicate, "selectivity": PREDICATES[predicate],
        "r": r, "held": r, "trials": 100, "worth": 100.0, "exact": 40.0, "mae": error,
        "rmse": 1.2 * error, "observed": 2 * error, "bound": 10 * error,
        "coverage": 0.97 if predicate[0] == "y" else 0.99,
        "eq6": 400 * error, "eq6_coverage": 1.0, "eq6_held": 380 * error, "z": 1.0, **given,
    }  # fmt: skip


def errors(**by_way: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        cell(way.label, game, predicate, round(fraction * N), **by_way.get(name, {}))
        for name, way in WAYS.items()
        for game in GAMES_ASKED
        if not (way.control_variate and game == "COUNT")
        for predicate in PREDICATES
        for fraction in FRACTIONS
    ]


def everything() -> dict[str, list[dict[str, Any]]]:
    strata = [
        {"subject": "nyc", "n": N, "by": "city", "predicate": "city = 3 AND till = 1",
         "selectivity": 0.02, "budget": budget, "worth": 10.0, "game": game, "size": budget // 5,
         "rows": budget, "strata": 5, "trials": 50, "exact": 1.0, "uniform_mae": 3.0,
         "stratified_mae": 1.5, "uniform_empty": 0.1, "stratified_empty": 0.01}
        for budget in (100, 500) for game in GAMES_ASKED
    ]  # fmt: skip
    engine = [
        {"subject": "nyc", "n": N, "game": game, "predicate": "city = 1", "r": 1_000, "trials": 9,
         "worth": 10.0, "mae": 1.0, "rmse": 1.1, "expected": 1.0, "z": 0.5, "coverage": 1.0}
        for game in ("AVG", "VAR_POP")
    ]  # fmt: skip
    cost = {name: 100.0 + 10 * k for k, name in enumerate(CONTENDERS)}
    ingest = [
        {"subject": "nyc", "n": N, "r": r, "contender": name, "rows": N,
         "ns": Repeated.of([cost[name] * (r if name == "eager domination" else 1)] * 5)}
        for r in (4_096, 64, 2_048) for name in CONTENDERS
    ]  # fmt: skip
    return {
        "rq4_error": errors(),
        "rq4_strata": strata,
        "rq4_engine": engine,
        "rq4_ingest": ingest,
    }


@pytest.fixture(scope="module")
def tables() -> Tables:
    return Tables(everything())


@pytest.fixture(scope="module")
def section(tables: Tables) -> Section:
    return CHAPTER.show(tables)


def ours(section: Section, what: str) -> Comparison:
    (found,) = (one for one in section.comparisons if what in one.what)
    return found


def test_every_number_that_the_paper_prints_stands_beside_one_of_ours(section: Section) -> None:
    printed = [one.paper for one in section.comparisons]
    for number in (
        *(n for both in paper.AVG_ERROR.values() for n in both), *paper.VAR_ERROR[0.05],
        *paper.CONTROL.values(), paper.REPLACEMENT, *paper.STRATA, *paper.EMPTY,
        *paper.BOUND.values(), *paper.EAGER, *paper.LAZY, paper.TIMES,
    ):  # fmt: skip
        assert number in printed
    assert all(one.ours is not None for one in section.comparisons)
    assert all(one.reason for one in section.comparisons if one.verdict == "worse")


def test_errors_are_in_percent_of_the_aggregate_over_the_papers_attributes(
    section: Section,
) -> None:
    assert ours(section, "AVG: largest error over predicates, r/N = 1 %").ours == pytest.approx(10)
    assert ours(section, "AVG: least error over predicates, r/N = 1 %").ours == pytest.approx(0.4)
    at_five = ours(section, "VAR_POP: largest error over predicates, r/N = 5 %").ours
    assert at_five == pytest.approx(10 / 5**0.5)


def test_bounds_are_over_the_error_that_they_had_to_cover(section: Section) -> None:
    assert ours(section, "AVG: Eq. 6 for as many rows ÷ our bound").ours == pytest.approx(38)
    assert ours(section, "AVG: slack of our bound").ours == pytest.approx(5)
    assert ours(section, "AVG: slack of Eq. 6").ours == pytest.approx(200)
    assert ours(section, "AVG: least coverage").ours == 0.99


def test_costs_are_in_microseconds_and_their_ratio_is_taken_at_the_papers_r(
    section: Section,
) -> None:
    assert ours(section, "sweeps (the loop alone): least cost").ours == pytest.approx(0.1)
    eager = ours(section, "eager domination (the loop alone): largest")
    assert (eager.ours, eager.verdict) == (pytest.approx(0.16 * 4_096), "")
    assert ours(section, "eager ÷ amortised").ours == pytest.approx(1.6 * 2_048)


def test_strata_are_compared_at_the_papers_number_of_rows(section: Section) -> None:
    assert ours(section, "rows without any of its rows, uniform").ours == pytest.approx(10)
    assert ours(section, "largest error uniform ÷ stratified").ours == pytest.approx(2)


def test_slopes_and_gains_are_what_the_rows_were_made_with() -> None:
    halved = Tables({"rq4_error": errors(**{"control-default": {"rmse": 1.0}})})
    gain = control_gain(halved, CONTROLLED, DEFAULT, kind=None)
    assert gain is not None and gain.most == pytest.approx((1.2 * 18 * 2**0.5) ** 2)
    plain = Tables(everything())
    assert slope(plain, DEFAULT, "AVG") == pytest.approx(-0.5)
    assert replacement_gap(plain) == pytest.approx(0)
    at = spread(plain, PLAIN, "SUM", 0.01, kind="range")
    assert at is not None and at.median == pytest.approx(0.18)


def test_the_gap_of_replacement_is_taken_up_to_a_tenth_of_the_window() -> None:
    rows = errors()
    for row in rows:
        if row["way"] == REPLACED:
            row["mae"] *= 1.5 if row["r"] > N // 10 else 1.04
    assert replacement_gap(Tables({"rq4_error": rows})) == pytest.approx(0.04)


def test_an_exact_answer_has_no_slack(section: Section) -> None:
    rows = errors()
    for row in rows:
        if row["predicate"] == "city = 2":
            row["observed"] = 1e-15
    tables = Tables({"rq4_error": rows})
    kept = {row["predicate"] for row in inexact(tables, "AVG", way=DEFAULT)}
    assert kept == {"city = 1"}
    shown = CHAPTER.show(tables)
    assert ours(shown, "AVG: slack of our bound").ours == pytest.approx(5)


def test_tables_are_as_wide_as_their_headers(section: Section) -> None:
    assert len(section.tables) == 6
    for table in section.tables:
        assert table.rows and all(len(row) == len(table.header) for row in table.rows)


def test_remarks_are_full_sentences_with_numbers_from_the_rows(section: Section) -> None:
    assert 3 <= len(section.remarks) <= 7
    assert all(remark.endswith(".") and "None" not in remark for remark in section.remarks)
    assert any("10 % of the aggregate" in remark for remark in section.remarks)


def test_rows_of_another_workload_are_said_to_be_so(section: Section) -> None:
    assert not any("auction" in remark for remark in section.remarks)
    rows = [{**row, "subject": "auction"} for row in errors()]
    assert "auction" in CHAPTER.show(Tables({"rq4_error": rows})).remarks[0]


def test_less_is_said_of_less(tables: Tables) -> None:
    full = everything()
    for left_out in full:
        shown = CHAPTER.show(Tables({name: full[name] for name in full if name != left_out}))
        assert shown.comparisons
    nothing = CHAPTER.show(Tables({}))
    assert not nothing.remarks and not nothing.tables
    assert all(one.ours is None for one in nothing.comparisons)
    one_way = [row for row in full["rq4_error"] if row["way"] == PLAIN]
    assert CHAPTER.show(Tables({"rq4_error": one_way})).tables


def test_the_figure_is_drawn_from_tables_alone(tables: Tables) -> None:
    (figure,) = CHAPTER.figures
    with styled():
        drawing = figure.draw(tables)
    assert [axes.get_title(loc="left")[:3] for axes in drawing.axes] == ["(a)", "(b)", "(c)"]
    assert [len(axes.lines) for axes in drawing.axes] == [5, 5, 6]


def test_steps_have_names_of_the_chapter_and_fit_the_budget() -> None:
    for size, most in ((QUICK, 25), (FULL, 360)):
        steps = CHAPTER.steps(size)
        assert len({step.name for step in steps}) == len(steps)
        assert all(step.name.startswith("rq4-") and len(step.does) <= 50 for step in steps)
        assert all(step.needs == ("real",) for step in steps)
        assert sum(step.seconds for step in steps) <= most
        assert {f"rq4-ingest-{r}" for r in SIZES} <= {step.name for step in steps}
