from __future__ import annotations

from fractions import Fraction
from math import nextafter
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

import ids
from evaluation.bench import Bench
from evaluation.rq1 import enumeration, replay
from evaluation.rq1.drift import STREAMS, moments, trace
from evaluation.rq1.drift import WINDOW as ROWS
from evaluation.rq1.enumeration import KINDS, compared, off, windows, worst
from evaluation.rq1.replay import ASKED, ATOMS, NAMES, WINDOW, Watched, ask, checked, watched
from evaluation.step import QUICK, Subject
from ids.errors import CheckpointError
from tests.oracles.shapley import CLOSED, GAMES

SUBJECT = Subject("stream", "y", ("region", "tier", "zone"), None)


class Stream:
    """A bench that has rows of its own: skewed text, a column with NULLs, lognormal values."""

    size = QUICK
    scratch = Path()

    def events(self, _: Subject, rows: int) -> pa.Table:
        rng = self.rng("")
        zone = pa.array(rng.integers(0, 3, rows), mask=rng.random(rows) < 0.2)
        return pa.table(
            {
                "event_time": np.arange(rows),
                "region": pa.array(rng.choice(["EU", "US", "AP"], rows)).dictionary_encode(),
                "tier": pa.array(rng.choice(["it's", "free"], rows, p=[0.7, 0.3])),
                "zone": zone,
                "y": rng.lognormal(3.0, 0.5, rows),
            }
        )

    def rng(self, _: str) -> np.random.Generator:
        return np.random.default_rng(0)

    def said(self, _: float) -> None: ...


BENCH = cast(Bench, Stream())


@pytest.fixture
def watch() -> Watched:
    return watched(BENCH, SUBJECT, 600)


def test_every_kind_of_values_meets_every_size_of_window() -> None:
    drawn = list(windows(np.random.default_rng(0), 1))
    assert {(w[0], len(w[1])) for w in drawn} == {(k, n) for k in KINDS for n in range(13)}
    assert sum(len(w[1]) + 1 for w in windows(np.random.default_rng(0), 5)) >= 3_186


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_the_engine_is_within_a_few_roundings_of_the_enumeration(n: int) -> None:
    drawn = [w for w in windows(np.random.default_rng(1), 1) if len(w[1]) == n]
    found = worst((row for window in drawn for row in compared(*window)), "game")
    assert [row["cases"] for row in found] == [len(KINDS) * (n + 1)] * len(GAMES)
    assert all(row["units"] < 8 for row in found if row["game"] in CLOSED)


def test_an_answer_that_is_off_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    window = next(w for w in windows(np.random.default_rng(1), 1) if len(w[1]) == 4)
    given = enumeration.answers(*window[1:])
    given["AVG", 2] *= 1 + 1e-12
    monkeypatch.setattr(enumeration, "answers", lambda *_: given)
    errors = {row["game"]: row["rel_err"] for row in worst(compared(*window), "game")}
    assert errors["AVG"] > 9e-13 > errors["VAR_POP"]


def test_an_error_is_relative_to_the_exact_value_or_where_that_is_zero_to_the_aggregate() -> None:
    nothing, whole = Fraction(0), Fraction(-2)
    assert off(2.5, Fraction(3), Fraction(-1), whole) == (0.5, 0.25, 2.0**50)
    assert off(0.5, nothing, nothing, whole)[1] == 0.25
    assert off(0.5, nothing, nothing, nothing)[1] == 0.5
    assert off(0.0, nothing, nothing, nothing) == (0.0, 0.0, 0.0)


def test_the_worst_of_a_group_is_its_largest_numbers_and_how_often_it_says_yes() -> None:
    rows: list[dict[str, Any]] = [{"g": "a", "x": 1.0, "yes": True}, {"g": "b", "yes": False}]
    rows += [{"g": "a", "x": 3.0, "yes": True}, {"g": "a", "y": 2.0}]
    assert worst(rows, "g") == [{"g": "a", "x": 3.0, "yes": 2, "y": 2.0}, {"g": "b", "yes": 0}]


def test_predicates_hold_where_the_engine_says_they_do(watch: Watched) -> None:
    engine, rows = watch.engine(), watch.rows.num_rows
    engine.ingest(watch.rows)
    for name in ASKED:
        held = watch.truth.attribution("COUNT", name, 0, rows)
        assert engine.attribute("COUNT", name).value == held > 0
    assert watch.rows["zone"].null_count


def test_the_most_frequent_values_are_watched_null_never(watch: Watched) -> None:
    assert "tier = 'it" in watch.conditions["p3"]
    assert not any("NULL" in condition for condition in watch.conditions.values())
    first, second = (watch.truth.attribution("COUNT", name, 0, 600) for name in NAMES[:2])
    assert first >= second > 0


def test_atoms_are_a_partition_nulls_included(watch: Watched) -> None:
    engine = watch.engine()
    engine.ingest(watch.rows)
    counts = [engine.attribute("COUNT", atom).value for atom in ATOMS]
    assert sum(counts) == watch.rows.num_rows
    assert len(set(ATOMS)) == 16


def test_one_bit_is_a_difference() -> None:
    pairs = ((1.0, 1.0), (nextafter(1.0, 2.0), 1.0), (-0.0, 0.0))
    rows = [{"game": "SUM", **replay._beside(*pair)} for pair in pairs]
    wanted = {"game": "SUM", "questions": 3, "differing": 2, "delta": 2.0**-52}
    assert worst(rows, "game") == [wanted]


def test_an_atom_that_is_left_out_is_a_residual(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = watched(BENCH, SUBJECT, WINDOW)
    engine = watch.filled(WINDOW)

    def residual() -> float:
        rows = {row["game"]: row for row in worst(checked(watch, engine, WINDOW), "game")}
        return cast(float, rows["VAR_POP"]["residual"])

    assert residual() < 1e-14
    live = next(atom for atom in ATOMS if engine.attribute("COUNT", atom).value)
    monkeypatch.setattr(replay, "ATOMS", [atom for atom in ATOMS if atom != live])
    assert residual() > 1e-6


def test_slides_are_checked_from_the_first_to_the_last(tmp_path: Path) -> None:
    bench = Stream()
    bench.scratch = tmp_path
    found = cast(Any, replay.slides(cast(Bench, bench), SUBJECT))
    assert [row["differing"] for row in found["rq1_deltas"]] == [0] * len(GAMES)
    assert all(row["questions"] == 6 * row["checks"] >= 6 * 25 for row in found["rq1_deltas"])
    (again,) = found["rq1_restored"]
    assert 2_500 <= again["restored_at"] < 2_700
    assert (again["answers"], again["differing"]) == (42, 0)


def test_a_restored_engine_goes_on_to_the_same_bits(watch: Watched, tmp_path: Path) -> None:
    whole, half = watch.engine(100), watch.engine(100)
    whole.ingest(watch.rows)
    half.ingest(watch.rows.slice(0, 300))
    half.checkpoint(tmp_path / "half.ids")
    again = replay.restored(tmp_path / "half.ids", watch.rows.slice(300))
    assert again == ask(whole, GAMES, ASKED)


def test_a_process_that_cannot_go_on_says_why(watch: Watched, tmp_path: Path) -> None:
    (tmp_path / "half.ids").write_bytes(b"nothing")
    with pytest.raises(CheckpointError):
        replay.restored(tmp_path / "half.ids", watch.rows)


def test_every_emit_is_held_to_recomputation_and_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    found = cast(Any, replay.emits(BENCH, SUBJECT)["rq1_emits"])
    assert [row["differing"] for row in found] == [0] * 5
    assert all(row["units"] < 8 and row["telescoped"] < 1e-15 for row in found)
    genuine = ids.sql

    def wrong(script: str, **tables: pa.Table) -> pa.Table:
        answer = genuine(script, **tables)
        moved = answer["SUM_p1"].to_numpy() * (1 + 1e-15)
        return answer.set_column(answer.column_names.index("SUM_p1"), "SUM_p1", pa.array(moved))

    monkeypatch.setattr(ids, "sql", wrong)
    rows = {row["game"]: row for row in cast(Any, replay.emits(BENCH, SUBJECT)["rq1_emits"])}
    assert rows["SUM"]["differing"] == 20
    assert rows["SUM"]["units"] > 7
    assert rows["SUM"]["telescoped"] > 5e-16
    assert rows["AVG"]["differing"] == 0


@pytest.mark.parametrize("slides", [30_000, 1_000_000])
def test_drift_is_asked_about_when_no_spike_is_inside(slides: int) -> None:
    *before, last = moments(slides)
    assert last == slides
    assert before[0] < 20
    for at in before:
        assert not any(row % 5_000 == 0 for row in range(at, at + ROWS))


@pytest.mark.parametrize("stream", STREAMS)
def test_ids_is_off_by_the_last_rounding_alone_where_sums_of_doubles_drift(stream: str) -> None:
    found = {(row["state"], row["slides"]): cast(Any, row) for row in trace(stream, [100, 11_000])}
    for slides in (100, 11_000):
        assert found["IDS", slides]["avg"] <= 2.0**-53
        assert found["IDS", slides]["var_pop"] <= 2.0**-52
    assert found["doubles, += and -=", 11_000]["var_pop"] > 1e-6
    if stream == "spikes":
        assert found["doubles, centred", 11_000]["var_pop"] > 1e-6
        assert 2.0**-52 < found["doubles, centred and compensated", 11_000]["var_pop"] < 1e-6
