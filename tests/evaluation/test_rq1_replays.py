from __future__ import annotations

from itertools import pairwise
from math import nextafter
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pytest

import ids
from evaluation.bench import Bench
from evaluation.rq1 import emits, slides
from evaluation.rq1.enumeration import GAMES
from evaluation.rq1.restoring import go_on
from evaluation.rq1.slides import ASKED, Seen, batches
from evaluation.rq1.stream import ATOMS, NAMES, WINDOW, Watched, ask, watched
from evaluation.size import QUICK
from evaluation.subject import Subject

SUBJECT = Subject("stream", "y", ("region", "tier", "zone"), None)


class Stream:
    """A bench that has rows of its own: skewed text, a column with NULLs, lognormal values."""

    size = QUICK

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch

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


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return cast(Bench, Stream(tmp_path))


@pytest.fixture
def watch(bench: Bench) -> Watched:
    return watched(bench, SUBJECT, 600)


def test_predicates_hold_where_the_engine_says_they_do(watch: Watched) -> None:
    engine = watch.engine()
    engine.ingest(watch.rows)
    assert {name: engine.attribute("COUNT", name).value for name in ASKED} == {
        name: held.sum() for name, held in watch.holds.items()
    }
    assert watch.rows["zone"].null_count


def test_the_most_frequent_values_are_watched_null_never(watch: Watched) -> None:
    columns = [column for column, _ in watch.equals.values()]
    assert columns == ["region", "region", "tier", "zone"]
    assert watch.equals["p3"] == ("tier", "it's")
    counts = [watch.holds[name].sum() for name in NAMES]
    assert counts[0] >= counts[1] > 0
    assert None not in [value for _, value in watch.equals.values()]


def test_atoms_are_a_partition_nulls_included(watch: Watched) -> None:
    engine = watch.engine()
    engine.ingest(watch.rows)
    counts = [engine.attribute("COUNT", atom).value for atom in ATOMS]
    assert sum(counts) == watch.rows.num_rows
    assert len(set(ATOMS)) == 16


def test_one_bit_is_a_difference() -> None:
    seen = Seen()
    seen.equality(1.0, 1.0)
    seen.equality(nextafter(1.0, 2.0), 1.0)
    seen.equality(-0.0, 0.0)
    assert (seen.questions, seen.differing, seen.delta) == (3, 2, 2.0**-52)


def test_an_atom_that_is_left_out_is_a_residual(
    watch: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = watch.engine()
    engine.ingest(watch.rows)
    seen = Seen()
    seen.efficiency(engine, "VAR_POP")
    assert seen.residual < 1e-14
    live = next(atom for atom in ATOMS if engine.attribute("COUNT", atom).value)
    monkeypatch.setattr(slides, "ATOMS", [atom for atom in ATOMS if atom != live])
    seen.efficiency(engine, "VAR_POP")
    assert seen.residual > 1e-6


def test_batches_are_the_slides_without_a_gap(bench: Bench) -> None:
    cut = list(batches(bench, 5_000))
    assert cut[0][0] == WINDOW
    assert cut[-1][1] == WINDOW + 5_000
    assert all(before[1] == after[0] for before, after in pairwise(cut))
    assert {1, 200} <= {last - first for first, last in cut}


def test_a_restored_engine_goes_on_to_the_same_bits(watch: Watched, tmp_path: Path) -> None:
    whole, half = watch.engine(100), watch.engine(100)
    whole.ingest(watch.rows)
    half.ingest(watch.rows.slice(0, 300))
    half.checkpoint(tmp_path / "half.ids")
    rest = watch.rows.slice(300)
    with pa.ipc.new_file(tmp_path / "rest.arrow", rest.schema) as file:
        file.write_table(rest)
    answers = go_on(str(tmp_path / "half.ids"), str(tmp_path / "rest.arrow"))
    assert {(game, name): value for game, name, value in answers} == ask(whole, GAMES, ASKED)


def test_a_process_that_cannot_go_on_says_why(watch: Watched, tmp_path: Path) -> None:
    (tmp_path / "half.ids").write_bytes(b"nothing")
    with pytest.raises(ids.IdsError, match="CheckpointError"):
        slides.gone_on(tmp_path / "half.ids", watch.rows, tmp_path)


def test_every_emit_is_held_to_recomputation_and_truth(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = emits.compared(bench, SUBJECT)["rq1_emits"]
    assert [row["differing"] for row in found] == [0] * 5
    assert all(cast(float, row["units"]) < 8 for row in found)
    assert all(cast(float, row["telescoped"]) < 1e-15 for row in found)
    genuine = ids.sql

    def off(script: str, **tables: pa.Table) -> pa.Table:
        answer = genuine(script, **tables)
        moved = answer["SUM_p1"].to_numpy() * (1 + 1e-15)
        return answer.set_column(answer.column_names.index("SUM_p1"), "SUM_p1", pa.array(moved))

    monkeypatch.setattr(ids, "sql", off)
    wrong = {row["game"]: row for row in emits.compared(bench, SUBJECT)["rq1_emits"]}
    assert wrong["SUM"]["differing"] == 20
    assert cast(float, wrong["SUM"]["units"]) > 7
    assert cast(float, wrong["SUM"]["telescoped"]) > 5e-16
    assert wrong["AVG"]["differing"] == 0
