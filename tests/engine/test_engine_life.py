"""The engine in use: readers beside a writer, the atom limit, checkpoints, memory, bad input."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ids
from ids.errors import CheckpointError, DataError, ScriptError, StateError, UnknownNameError

AGGREGATES = ("SUM", "COUNT", "AVG", "VAR_POP", "VAR_SAMP")


def batch(rows: int, seed: int = 0, flags: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "region": rng.choice(["EU", "US", "AP"], rows),
        "tier": rng.choice(["p", "b"], rows),
        "at": seed * rows + rng.integers(0, 60, rows),
        "ms": np.round(rng.lognormal(4, 0.7, rows), 3),
        **{f"f{k}": rng.random(rows) < 0.5 for k in range(flags)},
    }


def engine(window: Any = None, **options: Any) -> ids.Engine:
    made = ids.Engine(window or ids.CountWindow(500), value="ms", **options)
    made.register("eu", "region = 'EU'")
    made.register("premium", "tier = 'p'")
    return made


def answers(of: ids.Engine, *predicates: str) -> list[ids.Attribution]:
    asked = predicates or ("eu", "premium", "eu AND NOT premium", "eu OR premium")
    return [of.attribute(a, p) for a in AGGREGATES for p in asked]


def test_a_reader_sees_a_whole_slide_or_none_of_it() -> None:
    batches = [batch(40, seed) for seed in range(150)]
    alone, whole = engine(), set()
    for one in batches:
        alone.ingest(one)
        whole.add((alone.attribute("SUM", "eu"), alone.attribute("SUM", "eu AND NOT premium")))
    shared = engine()
    shared.ingest(batches[0])
    seen: set[tuple[ids.Attribution, ids.Attribution]] = set()
    values = {one[0] for one in whole}, {one[1] for one in whole}
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add((shared.attribute("SUM", "eu"), shared.attribute("SUM", "eu AND NOT premium")))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for one in batches[1:]:
        shared.ingest(one)
    done.set()
    for reader in readers:
        reader.join()
    # two questions may fall into two slides, but each answer is that of a whole one
    assert {one[0] for one in seen} <= values[0]
    assert {one[1] for one in seen} <= values[1]
    assert answers(shared) == answers(alone)


def test_beyond_the_atom_limit_what_was_named_stays_exact() -> None:
    free = engine()
    tight = engine(atom_limit=10, intersections=["eu AND premium"])
    for made in (free, tight):
        for k in range(6):
            made.register(f"p{k}", f"f{k}")
        for seed in range(5):
            made.ingest(batch(300, seed, flags=6))
    assert free.atoms > 10
    assert tight.atoms == 0
    for predicate, mechanism in [
        ("eu", "marginal"),
        ("eu AND premium", "compositional"),
        ("eu AND NOT p3", "scan"),
        ("p0 OR p1 OR p2", "scan"),
    ]:
        for aggregate in AGGREGATES:
            exact, kept = (
                free.attribute(aggregate, predicate),
                tight.attribute(aggregate, predicate),
            )
            assert kept[:3] == exact[:3]
            assert kept.mechanism == mechanism
    with pytest.raises(StateError, match="given up"):
        tight.residual("AVG")


def test_beyond_the_atom_limit_nothing_answers_what_is_not_kept() -> None:
    made = engine(atom_limit=3, retain=False)
    made.ingest(batch(200))
    assert made.attribute("AVG", "eu").n == 200
    with pytest.raises(StateError, match="nothing that is kept answers"):
        made.attribute("AVG", "eu AND premium")


def test_a_checkpoint_goes_on_as_if_never_stopped(tmp_path: Path) -> None:
    path = tmp_path / "engine.ids"
    made = engine(order_by="at", lateness=50)
    made.ingest(batch(700, 1))
    made.checkpoint(path)
    restored = ids.Engine.restore(path)
    for seed in range(2, 6):
        made.ingest(batch(90, seed))
        restored.ingest(batch(90, seed))
        assert answers(made) == answers(restored)
        assert (made.rows, made.atoms) == (restored.rows, restored.atoms)
    assert [p.name for p in tmp_path.iterdir()] == ["engine.ids"]


def test_a_checkpoint_that_lost_or_changed_a_byte_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "engine.ids"
    made = engine()
    made.ingest(batch(100))
    made.checkpoint(path)
    content = path.read_bytes()
    broken = tmp_path / "broken.ids"
    for part in range(20):
        broken.write_bytes(content[: len(content) * part // 20])
        with pytest.raises(CheckpointError):
            ids.Engine.restore(broken)
    for at in range(0, len(content), max(1, len(content) // 40)):
        broken.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(CheckpointError):
            ids.Engine.restore(broken)
    with pytest.raises(CheckpointError, match="cannot read"):
        ids.Engine.restore(tmp_path / "nowhere.ids")


def test_summaries_alone_retain_no_tuple() -> None:
    made = engine(ids.Changelog())
    made.apply(inserts=batch(1_000))
    before = made.memory()
    for seed in range(20):
        made.apply(inserts=batch(1_000, seed))
    assert made.memory() == before
    assert before.retained == 0
    assert before.index == before.sampler == 0
    assert before.total == before.summaries + before.atoms


def test_memory_is_what_the_arrays_hold() -> None:
    made = engine()
    made.ingest(batch(500))
    memory = made.memory()
    # three summaries (window, two predicates) of nine words, and three counts of one
    assert memory.summaries == 3 * 9 * 8 + 3 * 8
    assert memory.retained >= 500 * (4 + 16 + 8)


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"ms": [1.0, float("nan")]}, DataError, "NaN of 'ms' in row 2"),
        ({"ms": [float("inf"), 1.0]}, DataError, "infinite value of 'ms' in row 1"),
        ({"ms": ["a", "b"]}, DataError, "holds text in this batch"),
        ({"region": [1, 2]}, DataError, "holds number in this batch"),
    ],
)
def test_a_refused_batch_leaves_the_engine_unharmed(
    wrong: dict[str, Any], error: type[Exception], says: str
) -> None:
    made = engine()
    made.ingest(batch(100))
    before = answers(made), made.rows, made.atoms
    good = {"region": ["EU", "US"], "tier": ["p", "b"], "at": [1, 2], "ms": [1.0, 2.0]}
    with pytest.raises(error, match=says):
        made.ingest({**good, **wrong})
    with pytest.raises(UnknownNameError, match="unknown column 'ms'"):
        made.ingest({"region": ["EU"], "tier": ["p"], "at": [3]})
    assert (answers(made), made.rows, made.atoms) == before
    made.ingest(good)
    assert made.rows == 102


def test_names_nobody_knows_get_a_hint() -> None:
    made = engine()
    made.ingest(batch(10))
    with pytest.raises(UnknownNameError, match="did you mean 'premium'"):
        made.attribute("AVG", "premum")
    with pytest.raises(ScriptError, match="unknown aggregate 'MEDIAN'"):
        made.attribute("MEDIAN", "eu")
    with pytest.raises(UnknownNameError, match="unknown predicate 'asia'"):
        made.drop("asia")
    with pytest.raises(ids.IdsError, match="already registered"):
        made.register("EU", "tier = 'p'")
    with pytest.raises(StateError, match="degree=3"):
        made.attribute("M3", "eu")


def test_two_hundred_predicates_are_no_limit() -> None:
    made = ids.Engine(ids.CountWindow(300), value="ms")
    for k in range(200):
        made.register(f"p{k}", f"ms > {k}")
    made.ingest(batch(400))
    inside = np.array(batch(400)["ms"])[-300:]
    for k in (0, 63, 64, 65, 127, 128, 199):
        assert made.attribute("COUNT", f"p{k}").value == (inside > k).sum()
        assert (
            made.attribute("COUNT", f"p{k} AND NOT p199").value
            == ((inside > k) & (inside <= 199)).sum()
        )


def test_an_empty_batch_is_no_slide() -> None:
    made = engine()
    made.ingest({"region": [], "tier": [], "at": [], "ms": []})
    assert made.attribute("AVG", "eu").value == 0.0
    assert made.aggregate("AVG") is None
    assert made.aggregate("COUNT") == 0.0
