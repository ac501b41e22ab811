"""RQ2: what is timed gives the right answers, and what is said of it is in the records."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from tests.oracles.recount import recount

pytest.importorskip("polars", reason="the evaluation needs its extra")
pytest.importorskip("duckdb", reason="the evaluation needs its extra")

from evaluation.report import HERE, fill
from evaluation.rq2 import CHAPTER, latency, throughput
from evaluation.rq2.throughput import (
    ATOMS,
    CENTRE,
    EVERYTHING,
    LITERAL,
    LOOP,
    PREDICATES,
    WHOLE,
    Maintained,
    Prepared,
    cell,
    contenders,
)
from evaluation.step import FULL, QUICK, Repeated, in_a_row
from evaluation.tables import Tables

ROWS = 700
VALUES = {
    "region": ["EU-West", "US-East", "AP-South", "SA-East"],
    "tier": ["premium", "basic"],
    "endpoint": ["/search", "/feed", "/checkout", "/login"],
}


@pytest.fixture(scope="module")
def events() -> pa.Table:
    rng = random.Random(4)
    columns = {
        name: pa.array(rng.choices(values, k=ROWS)).dictionary_encode()
        for name, values in VALUES.items()
    }
    return pa.table(columns | {"latency": [rng.lognormvariate(4, 0.5) for _ in range(ROWS)]})


@pytest.mark.parametrize("step", [1, 10, 100])
@pytest.mark.parametrize("predicates", [1, 4, 16])
def test_after_any_slide_every_summary_is_that_of_a_recount(
    events: pa.Table, step: int, predicates: int
) -> None:
    tests, window = PREDICATES[predicates], 100
    prepared = Prepared(events, tests)
    number = (ROWS - window) // step
    maintained = Maintained(prepared, window, step, EVERYTHING)
    for table in (maintained.incremental(number)(), maintained.scan(1, before=number - 1)()):
        inside = events.slice(number * step, window).to_pylist()
        unit = Fraction(2) ** prepared.scale.grid
        ways = [
            *(lambda row, h=h: [row[c] == v for c, v in tests] == list(h) for h in prepared.holds),
            *(lambda row, c=c, v=v: row[c] == v for c, v in tests),
            lambda _: True,
        ]
        assert len(ways) == len(table)
        for words, holds in zip(table, ways, strict=True):
            count, (first, second) = prepared.scale.decode(words)
            exact = recount(inside, holds, lambda row: row["latency"])
            assert (count, first * unit, second * unit**2) == exact


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("kept", [ATOMS, EVERYTHING])
def test_the_first_of_several_scans_is_the_window_after_the_first_slide(
    events: pa.Table, kept: str, degree: int
) -> None:
    prepared = Prepared(events, PREDICATES[4], degree)
    maintained = Maintained(prepared, 50, 10, kept)
    for number in (1, 2, 7):
        assert np.array_equal(maintained.scan(number)(), maintained.incremental(number)())
    first = maintained.scan(0)()
    assert first[: prepared.refinement.atoms, 0].sum() == 50
    assert not np.array_equal(first, maintained.scan(1)())


def test_there_are_as_many_live_atoms_as_in_the_paper(events: pa.Table) -> None:
    for count, live in {1: 2, 4: 6, 16: 12, 64: 12}.items():
        assert len(set(PREDICATES[count])) == count
        assert Prepared(events, PREDICATES[count]).refinement.atoms == live


def test_the_predicates_that_questions_are_about_hold_on_some_rows() -> None:
    for count in (4, 16, 64):
        for place in (0, 1, count // 2 - 1, count // 2, count - 2, count - 1):
            column, value = PREDICATES[count][place]
            assert value in VALUES[column]


def test_a_cell_whose_two_ways_disagree_is_refused(
    events: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    maintained = Maintained(Prepared(events, PREDICATES[1]), 50, 10, ATOMS)
    found = cell(maintained, 20, 4, 2)
    scanned, ids = found["scan_slides_s"], found["ids_slides_s"]
    assert isinstance(scanned, Repeated)
    assert isinstance(ids, Repeated)
    assert found["speedup"].samples == pytest.approx(ids.over(scanned).samples)  # type: ignore[union-attr]
    assert found["ids_tuples_s"].samples == pytest.approx(ids.scaled(10).samples)  # type: ignore[union-attr]
    monkeypatch.setattr(throughput, "_by_row", lambda *_: None)
    with pytest.raises(AssertionError, match="disagree"):
        cell(maintained, 20, 4, 2)


def test_algorithm_1_and_the_slide_loop_end_in_the_same_atoms(events: pa.Table) -> None:
    work = contenders(events, 100)
    loop, whole, (_, _, atoms, _) = (work[name]() for name in (LOOP, WHOLE, LITERAL))
    assert np.array_equal(loop, whole)
    prepared = Prepared(events, PREDICATES[4])
    unit = Fraction(2) ** prepared.scale.grid
    for words, holds in zip(loop, prepared.holds, strict=True):
        count, (first, second) = prepared.scale.decode(words)
        total, squares = float(first * unit), float(second * unit**2)
        centred = [count, total - CENTRE * count, squares - 2 * CENTRE * total + CENTRE**2 * count]
        signature = sum(1 << k for k, held in enumerate(holds) if held)
        np.testing.assert_allclose(atoms[signature], centred, rtol=1e-9, atol=1e-6)


def test_the_bare_function_is_the_closed_form_of_avg() -> None:
    n, a, m, a_p = 10_000.0, 5e5, 1250.0, 7e4
    factor = sum(1 / j for j in range(1, 10_000)) / 9_999
    share, lift = m / n * a / n, factor * (a_p - m * a / n)
    found = latency.bare(n, a, 0.0, m, a_p, 0.0)
    assert found == pytest.approx((share + lift, share, lift), rel=1e-9)


def test_only_the_question_is_on_the_clock() -> None:
    slid: list[int] = []
    asked: list[int] = []
    spent = in_a_row(lambda: asked.append(1), 50, lambda: slid.append(sum(range(20_000))))
    assert (len(slid), len(asked)) == (50, 51)  # one before the clock
    assert len(spent.samples) == 50
    assert 0 < spent.median < 50e-6


def _tables() -> Tables:
    """Records of every step, made by hand: a question costs 2 µs, and 1 µs more in the middle."""
    cells = [
        {"window": n, "step": step, "kept": kept, "predicates": k, "live": 6, "game": "VAR"}
        | dict.fromkeys(("ids_tuples_s", "ids_slides_s"), Repeated((1e6, 3e6)))
        | dict.fromkeys(("scan_tuples_s", "scan_slides_s"), Repeated((1e8 / n, 1e8 / n)))
        | {"speedup": Repeated((n / 2 / step,))}
        for n in (1_000, 100_000, 1_000_000)
        for step in (1, 10, 100)
        for kept in (ATOMS, EVERYTHING)
        for k in PREDICATES
    ]
    costs = {LOOP: 5.0, LITERAL: 30.0, WHOLE: 9.0, f"{LOOP}, all that Algorithm 1 keeps": 29.0}
    costs |= {
        "Engine.ingest, a dict of one row": 2e5,
        "Engine.ingest, an Arrow batch of one row": 1e5,
    }
    costs |= {"Engine.ingest, an Arrow batch of 1,000 rows": 4e2}
    loops = [
        {"contender": name, "window": 100_000, "predicates": 4, "ns_per_tuple": Repeated((ns,))}
        | {"times_faster": Repeated((30.0 / ns,))}
        for name, ns in costs.items()
    ]
    paths = {"marginal": 2.0, "marginal, in the middle of K": 3.0, "compositional": 4.0}
    asked = [
        {"predicates": k, "live": 12, "path": path, "reading": reading}
        | {"p50": Repeated((p50,)), "p99": Repeated((2 * p50,))}
        for k in PREDICATES
        for path, p50 in paths.items()
        for reading in latency.READINGS
    ]
    found = {"rq2_throughput": cells, "rq2_algorithm1": loops, "rq2_latency": asked}
    return Tables(found)  # type: ignore[arg-type]


def test_every_number_of_the_paper_stands_beside_ours_with_a_verdict_where_both_are_alike() -> None:
    tables = _tables()
    part = fill(HERE / "rq2", tables)
    assert part.failed == []
    assert tables.lacking == {"Catalog Error: Table with name rq2_alternatives does not exist!"}
    found = {each.what: each for each in part.comparisons}
    assert {each.place for each in found.values()} == {"§9.2", "Table 5"}
    slowest = found["marginal question, K = 64, p50, computed anew"]
    assert (slowest.paper, slowest.ours, slowest.verdict) == (1.42, 3.0, "worse")
    assert found["compositional question, K = 64, p50, computed anew"].verdict == "equal"
    assert found["a live `ids.Engine`, one row at a time"].ours == pytest.approx(1e4)
    middle = found["speed-up at N = 10⁵, K = 4, |Δ| = 10, atoms alone kept"]
    assert (middle.paper, middle.ours) == (4.8e3, pytest.approx(5e3))
    alike = {what for what, each in found.items() if each.verdict}
    assert not [what for what in alike if "speed-up" in what or "Engine" in what]
    assert not [what for what in alike if "remembered" in what or "alone" in what]
    assert len(alike) == 20


def test_the_report_tells_the_cost_of_the_live_engine_beside_the_loops() -> None:
    body = fill(HERE / "rq2", _tables()).body
    assert "takes 100 µs to 200 µs for a slide of one row, 20,000 times the loop's 5 ns" in body
    assert "| Engine.ingest, a dict of one row | 100,000 | 4 | 200,000 |" in body


@pytest.mark.parametrize("size", [QUICK, FULL], ids=lambda size: size.name)
def test_no_step_is_long_and_all_fit_the_budget(size: object) -> None:
    steps = CHAPTER.steps(size)  # type: ignore[arg-type]
    assert all(step.seconds <= 120 and step.name.startswith("rq2-") for step in steps)
    assert all(len(step.does) <= 50 for step in steps)
    assert sum(step.seconds for step in steps) <= (50 if size is QUICK else 540)
