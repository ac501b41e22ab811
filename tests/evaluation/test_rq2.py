from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from tests.oracles.recount import recount

pytest.importorskip("polars", reason="reproduce needs its extra")
pytest.importorskip("duckdb", reason="reproduce needs its extra")

from evaluation.asking import after_slides, in_a_row
from evaluation.chapter import Tables
from evaluation.repeated import Repeated
from evaluation.rq2 import CHAPTER, algorithm1, paper
from evaluation.rq2.comparing import comparisons
from evaluation.rq2.latency import AFTER, AGAIN, ANEW, bare
from evaluation.rq2.maintaining import ATOMS, EVERYTHING, Maintained
from evaluation.rq2.stream import PREDICATES, Stream, equals
from evaluation.rq2.throughput import cell
from evaluation.size import FULL, QUICK
from ids.state.scaling import decode, grid

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


@pytest.fixture(scope="module")
def stream(events: pa.Table) -> Stream:
    return Stream(events, "latency")


@pytest.mark.parametrize("step", [1, 10, 100])
@pytest.mark.parametrize("predicates", [1, 4, 16])
def test_after_any_slide_every_summary_is_that_of_a_recount(
    events: pa.Table, stream: Stream, step: int, predicates: int
) -> None:
    tests, window = PREDICATES[predicates], 100
    prepared = stream.prepared([equals(test) for test in tests])
    slides = (ROWS - window) // step
    maintained = Maintained(prepared, window, step, EVERYTHING)
    for table in (maintained.incremental(slides)(), maintained.scan(1, before=slides - 1)()):
        inside = events.slice(slides * step, window).to_pylist()
        unit = Fraction(2) ** grid(prepared.scale)
        ways = [
            *(lambda row, h=h: [row[c] == v for c, v in tests] == list(h) for h in prepared.holds),
            *(lambda row, c=c, v=v: row[c] == v for c, v in tests),
            lambda _: True,
        ]
        assert len(ways) == len(table)
        for words, holds in zip(table, ways, strict=True):
            count, (first, second) = decode(words, prepared.scale)
            exact = recount(inside, holds, lambda row: row["latency"])
            assert (count, first * unit, second * unit**2) == exact


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("kept", [ATOMS, EVERYTHING])
def test_the_first_of_several_scans_is_the_window_after_the_first_slide(
    stream: Stream, kept: str, degree: int
) -> None:
    prepared = stream.prepared([equals(test) for test in PREDICATES[4]], degree)
    maintained = Maintained(prepared, 50, 10, kept)
    for slides in (1, 2, 7):
        assert np.array_equal(maintained.scan(slides)(), maintained.incremental(slides)())
    first = maintained.scan(0)()
    assert first[: prepared.live, 0].sum() == 50
    assert not np.array_equal(first, maintained.scan(1)())


def test_there_are_as_many_live_atoms_as_in_the_paper(stream: Stream) -> None:
    for line in paper.LATENCIES:
        tests = PREDICATES[line.predicates]
        assert len(set(tests)) == line.predicates
        assert stream.prepared([equals(test) for test in tests]).live == line.live


def test_a_cell_whose_two_ways_disagree_is_refused(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = stream.prepared([equals(test) for test in PREDICATES[1]])
    maintained = Maintained(prepared, 50, 10, ATOMS)
    found = cell(maintained, 20, 4, 2)
    scanned, ids = found["scan_slides_s"], found["ids_slides_s"]
    assert isinstance(scanned, Repeated)
    assert isinstance(ids, Repeated)
    assert found["speedup"].samples == pytest.approx(ids.over(scanned).samples)  # type: ignore[union-attr]
    assert found["ids_tuples_s"].samples == pytest.approx(ids.scaled(10).samples)  # type: ignore[union-attr]
    monkeypatch.setattr("evaluation.rq2.maintaining._by_atom", lambda *_: None)
    with pytest.raises(AssertionError, match="disagree"):
        cell(maintained, 20, 4, 2)


def test_algorithm_1_and_the_slide_loop_end_in_the_same_atoms(stream: Stream) -> None:
    tests = PREDICATES[4]
    work = algorithm1.contenders(stream, 100, tests)
    prepared = stream.prepared([equals(test) for test in tests])
    loop, whole, state = (
        work[name]() for name in (algorithm1.LOOP, algorithm1.WHOLE, algorithm1.LITERAL)
    )
    assert np.array_equal(loop, whole)  # type: ignore[arg-type]
    algorithm1.refuse_other_atoms(prepared, loop, state)
    state.atoms[:, 1] += 1e-3  # type: ignore[attr-defined]
    with pytest.raises(AssertionError):
        algorithm1.refuse_other_atoms(prepared, loop, state)


def test_the_bare_function_is_the_closed_form_of_avg() -> None:
    n, a, m, a_p = 10_000.0, 5e5, 1250.0, 7e4
    factor = sum(1 / j for j in range(1, 10_000)) / 9_999
    share, lift = m / n * a / n, factor * (a_p - m * a / n)
    assert bare(n, a, 0.0, m, a_p, 0.0) == pytest.approx((share + lift, share, lift), rel=1e-9)


def test_only_the_question_is_on_the_clock() -> None:
    class Engine:
        ingested = 0

        def ingest(self, _: object) -> None:
            self.ingested += 1
            sum(range(20_000))

    engine, asked = Engine(), []
    spent = after_slides(engine, iter(range(99)), lambda: asked.append(1), 50)  # type: ignore[arg-type]
    assert engine.ingested == 50
    assert len(asked) == 51  # one before the clock
    assert 0 < spent.p50 <= spent.p99
    assert spent.p50 < 50
    assert in_a_row(lambda: None, 100).p50 < 50


def _cell(
    window: int, step: int, kept: str, speedup: float, game: str = "VAR"
) -> dict[str, object]:
    rate = Repeated((step * 1e6, step * 3e6))
    return {
        "window": window, "step": step, "kept": kept, "predicates": 4, "live": 6, "game": game,
        "ids_tuples_s": rate, "scan_tuples_s": rate.scaled(1 / speedup), "ids_slides_s": rate,
        "scan_slides_s": rate, "speedup": Repeated((speedup, speedup)),
    }  # fmt: skip


def _grid() -> list[dict[str, object]]:
    windows = (1_000, 100_000, 1_000_000)
    return [
        _cell(n, step, kept, n / step / (2 if kept == ATOMS else 8))
        for n in windows
        for step in (1, 10, 100)
        for kept in (ATOMS, EVERYTHING)
    ]


def _latencies() -> list[dict[str, object]]:
    return [
        {
            "predicates": line.predicates, "live": line.live, "path": line.path, "reading": reading,
            "p50": Repeated((line.p50 * times,)), "p99": Repeated((line.p99 * times,)),
        }
        for line in paper.LATENCIES
        for reading, times in ((ANEW, 2.0), (AFTER, 4.0), (AGAIN, 0.5))
    ]  # fmt: skip


def test_every_number_of_the_paper_stands_beside_ours() -> None:
    tables = Tables({"rq2_throughput": _grid(), "rq2_latency": _latencies()})  # type: ignore[dict-item]
    found = {each.what: each for each in comparisons(tables)}
    atoms = {
        what.partition(", atoms alone")[0]: one for what, one in found.items() if "alone" in what
    }
    assert atoms["IDS, median of all cells at |Δ| = 1"].ours == pytest.approx(2e6)
    assert atoms["IDS, median of all cells at |Δ| = 100"].ours == pytest.approx(2e8)
    least = atoms["least speed-up of all cells (the paper's at N = 10³, |Δ| = 100)"]
    assert least.ours == pytest.approx(5.0)
    assert atoms["largest speed-up at N = 10⁶, |Δ| = 1"].ours == pytest.approx(5e5)
    middle = atoms["speed-up at N = 10⁵, K = 4, |Δ| = 10"]
    assert (middle.paper, middle.ours, middle.verdict) == (4.8e3, pytest.approx(5e3), "equal")
    slower = found["compositional question, K = 64, p50, after a slide"]
    assert (slower.paper, slower.ours, slower.verdict) == (4.0, pytest.approx(16.0), "worse")
    assert all(each.reason for each in found.values() if each.verdict == "worse")
    assert {each.where for each in found.values()} == {"§9.2", "Table 5"}


def test_a_remembered_answer_is_not_called_better_than_a_computed_one() -> None:
    found = comparisons(Tables({"rq2_latency": _latencies()}))  # type: ignore[dict-item]
    remembered = [each for each in found if "remembered" in each.what]
    assert [each.ours for each in remembered] == pytest.approx([0.71, 2.0])
    assert {each.verdict for each in remembered} == {""}


def test_the_latency_table_has_the_papers_lines_in_its_order() -> None:
    shown = CHAPTER.show(Tables({"rq2_latency": _latencies()}))  # type: ignore[dict-item]
    (table,) = shown.tables
    assert [row[0] for row in table.rows] == ["1", "1", "4", "4", "16", "16", "64", "64"]
    assert table.rows[2] == (
        "4", "6 (6)", "marginal",
        "2.74", "5.48", "0.685", "1.37", "3.74", "7.48", "0.935", "1.87",
    )  # fmt: skip


def test_nothing_measured_is_nothing_claimed() -> None:
    shown = CHAPTER.show(Tables({}))
    assert not shown.remarks
    assert not shown.tables
    assert all(each.ours is None for each in shown.comparisons)


@pytest.mark.parametrize("size", [QUICK, FULL], ids=lambda size: size.name)
def test_no_step_is_long_and_all_fit_the_budget(size: object) -> None:
    steps = CHAPTER.steps(size)  # type: ignore[arg-type]
    assert all(step.seconds <= 120 and step.name.startswith("rq2-") for step in steps)
    assert all(len(step.does) <= 50 for step in steps)
    assert sum(step.seconds for step in steps) <= (45 if size is QUICK else 540)
