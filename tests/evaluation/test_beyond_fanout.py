"""The fan-out of atoms: what the schemas promise, and that a wrong answer is noticed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ids
from evaluation import records
from evaluation.bench import Bench, Library
from evaluation.beyond import fanout
from evaluation.beyond.fanout.measuring import Divided
from evaluation.beyond.fanout.schemas import SCHEMAS, signatures
from evaluation.chapter import Tables
from evaluation.drawing import styled, svg
from evaluation.repeated import Repeated
from evaluation.size import QUICK
from evaluation.step import Row


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(QUICK, Library(tmp_path, QUICK), tmp_path)


@pytest.mark.parametrize("key", SCHEMAS)
def test_truths_are_what_the_conditions_say_on_every_row(key: str) -> None:
    stream = SCHEMAS[key].make(np.random.default_rng(1), 400, 16)
    assert stream.truths.shape == (400, 16)
    engine = ids.Engine(ids.CountWindow(400), "y")
    for name, condition in stream.conditions.items():
        engine.register(name, condition)
    engine.ingest(stream.table)
    y = stream.table["y"].to_numpy()
    for k in range(16):
        members = stream.truths[:, k]
        assert engine.attribute("SUM", f"p{k}").value == pytest.approx(y[members].sum(), rel=1e-12)
        assert engine.attribute("COUNT(*)", f"p{k}").value == members.sum()
    assert engine.atoms == len(np.unique(signatures(stream.truths)))


@pytest.mark.parametrize("predicates", [8, 64])
@pytest.mark.parametrize("key", SCHEMAS)
def test_no_schema_has_more_signatures_than_it_promises(key: str, predicates: int) -> None:
    stream = SCHEMAS[key].make(np.random.default_rng(2), 5_000, predicates)
    found = len(np.unique(signatures(stream.truths)))
    bound = SCHEMAS[key].bound(predicates)
    assert found <= min(bound, 5_000)
    assert found > predicates // 2  # and is not idle


def test_signatures_tell_rows_apart_and_nothing_else() -> None:
    truths = np.array([[1, 0, 1], [0, 0, 0], [1, 0, 1], [1, 1, 1]], np.bool_)
    found = signatures(truths)
    assert found[0] == found[2]
    assert len(set(found.tolist())) == 3


def test_a_step_counts_atoms_and_finds_where_they_are_given_up(bench: Bench) -> None:
    (limit,) = [step for step in fanout.steps(QUICK) if step.name == "beyond-fanout-limit"]
    rows = limit.work(bench)["beyond_fanout_limit"]
    assert [row["predicates"] for row in rows] == [11, 12, 13, 15]
    assert [row["refined"] for row in rows] == [True, True, False, False]
    assert [row["combination_by"] for row in rows] == ["compositional"] * 2 + ["scan"] * 2
    for row in rows:
        count, most = row["signatures"], row["limit"]
        assert isinstance(count, int) and isinstance(most, int)
        assert (count <= most) == row["refined"]


def test_an_engine_that_lost_a_row_does_not_pass(bench: Bench) -> None:
    divided = Divided(bench, SCHEMAS["exclusive"], 8, 1)
    divided.check()
    divided.stream.truths[divided.window - 1] ^= True
    with pytest.raises(AssertionError):
        divided.check()


def row(schema: str, predicates: int, atoms: int, refined: bool = True) -> Row:
    times = Repeated((2.0, 2.0))
    return {
        "schema": schema, "label": SCHEMAS[schema].label, "predicates": predicates,
        "window": 10_000, "limit": 4_096, "nominal": 2.0**predicates,
        "bound": SCHEMAS[schema].bound(predicates), "signatures": atoms, "refined": refined,
        "bytes": 64 * atoms, "retained": 10**6, "slide_ns": times.scaled(atoms),
        "kernel_ns": times if refined else None, "marginal_us": times,
        "combination_us": times, "combination_by": "compositional" if refined else "scan",
    }  # fmt: skip


def tables() -> Tables:
    by_schema = [
        row("exclusive", 8, 9), row("exclusive", 64, 65),
        row("independent", 8, 256), row("independent", 64, 10_000, refined=False),
    ]  # fmt: skip
    limit = [row("independent", 12, 3_700), row("independent", 13, 5_800, refined=False)]
    return Tables({"beyond_fanout": by_schema, "beyond_fanout_limit": limit})


def test_the_words_follow_the_rows() -> None:
    section = fanout.show(tables())
    said = " ".join(section.remarks)
    assert "at most 65 live atoms" in said
    assert "between K = 12 (3,700 live atoms) and K = 13 (5,800 signatures)" in said
    assert "independent Booleans at K = 64. Answers were compared" in said
    assert [len(table.rows) for table in section.tables] == [4, 2]


def test_nothing_measured_is_nothing_said() -> None:
    assert not fanout.show(Tables({})).remarks
    only: dict[str, Any] = {"beyond_fanout": tables()["beyond_fanout"]}
    assert len(fanout.show(Tables(only)).tables) == 1


def test_the_figure_is_drawn_from_rows_read_back(tmp_path: Path) -> None:
    found = {"beyond_fanout": tables()["beyond_fanout"]}
    facts = {"step": "beyond-fanout-8", "skipped": None, "fingerprint": {"size": "quick"}}
    records.write(tmp_path / "one.json", facts, found)
    record = records.read(tmp_path / "one.json")
    assert record is not None
    with styled():
        drawing = fanout.FIGURES[0].draw(Tables(record["findings"]))
        text = svg(drawing)
    low, high = drawing.axes[0].get_ylim()
    assert low < 9 and high > 10_000  # all that is drawn is within the panel
    assert "atom limit" in text and "independent Booleans" in text
