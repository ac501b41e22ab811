"""Promotion in a running engine: the same answers for less, and nothing else disturbed."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from time import sleep

import numpy as np
import pytest

import ids
from ids.errors import StateError
from tests.engine.test_adhoc import batch

ASKED = "k BETWEEN 2 AND 5 AND flag"
SAME = "NOT (k < 2 OR 5 < k OR NOT flag)"


def engines(**promotion: object) -> tuple[ids.Engine, ids.Engine]:
    """One that promotes and one that does not, both with rows inside."""
    made = []
    for policy in (ids.Promotion(**promotion), None):  # type: ignore[arg-type]
        engine = ids.Engine(ids.CountWindow(300), "ms", promotion=policy, sampling=ids.Sampling(40))
        engine.register("eu", "region = 'EU'")
        made.append(engine)
    feed(made[0], made[1], 1, 400)
    return made[0], made[1]


def feed(one: ids.Engine, other: ids.Engine, seed: int, rows: int) -> None:
    fresh = batch(np.random.default_rng(seed), rows)
    one.ingest(fresh)
    other.ingest(fresh)


def test_the_second_question_promotes_and_is_answered_by_it() -> None:
    engine, plain = engines(threshold=2)
    first = engine.attribute("AVG", ASKED)
    feed(engine, plain, 2, 10)
    second = engine.attribute("AVG", SAME)
    feed(engine, plain, 3, 10)
    third = engine.attribute("AVG", ASKED)
    assert [a.mechanism for a in (first, second, third)] == ["scan", "marginal", "marginal"]
    assert [a.rows_read for a in (first, second, third)] == [300, 300, 0]
    assert "promoted" in second.reason
    assert list(engine.promoted) == ["promoted_1"]
    assert third[:3] == plain.attribute("AVG", ASKED)[:3]
    joint = engine.attribute("VAR_POP", "promoted_1 AND eu")
    assert joint.mechanism == "compositional"
    assert joint[:3] == plain.attribute("VAR_POP", f"({ASKED}) AND eu")[:3]
    assert engine.residual("AVG") == pytest.approx(0.0, abs=1e-9)


def test_demotion_leaves_the_state_of_an_engine_that_never_promoted() -> None:
    engine, plain = engines(threshold=1, stale=3)
    engine.attribute("AVG", ASKED)
    assert engine.atoms > plain.atoms
    for _ in range(4):
        engine.attribute("AVG", "eu")
        engine.attribute("AVG", "k = 1")
        feed(engine, plain, 5, 3)
    engine.attribute("AVG", "k = 2")
    assert ASKED not in str(engine.promoted)
    for name in list(engine.promoted):
        engine.drop(name)
    assert engine.predicates == plain.predicates
    assert engine.atoms == plain.atoms
    for game in ("SUM", "AVG", "VAR_SAMP"):
        assert engine.attribute(game, "eu")[:3] == plain.attribute(game, "eu")[:3]


def test_at_most_so_many_are_promoted() -> None:
    engine, plain = engines(most=2, threshold=1, replaces=False)
    for k in range(6):
        engine.attribute("AVG", f"k = {k}")
        feed(engine, plain, k, 5)
    assert list(engine.promoted.values()) == ["k = 0", "k = 1"]
    assert engine.attribute("AVG", "k = 5").mechanism == "scan"


def test_a_promotion_does_not_cost_others_their_atoms() -> None:
    engine = ids.Engine(ids.CountWindow(300), "ms", promotion=ids.Promotion(), atom_limit=10)
    engine.register("eu", "region = 'EU'")
    engine.ingest(batch(np.random.default_rng(1), 300))
    for k in range(4):
        for _ in range(3):
            engine.attribute("AVG", f"k = {k}")
    assert engine.promoted
    assert 0 < engine.atoms <= 10
    assert engine.residual("AVG") == pytest.approx(0.0, abs=1e-9)


def test_a_provisional_error_is_the_same_integers_until_the_exact_rebuild() -> None:
    """What the estimate missed neither grows nor decays under exact deltas, to the bit."""
    engine, plain = engines(threshold=1, bootstrap="sample", rebuild_after=3600.0)
    plain.register("asked", ASKED)
    found = engine.attribute("AVG", ASKED)
    assert found.mechanism == "provisional"
    assert found.sample_size == 40
    assert 0 < found.standard_error < found.error
    assert 40 <= found.rows_read < 300
    missed = []
    for seed in range(12):
        assert engine._core is not None
        assert plain._core is not None
        provisional = engine._core.provisional["promoted_1"]
        row = plain._core.membership.names.index("asked")
        exact = [
            (ours.exact(sums[0]), other.exact(other.marginals[row]))
            for ours, sums, other in zip(
                engine._core.measures, provisional.sums, plain._core.measures, strict=True
            )
        ]
        missed.append([(a[0] - b[0], [x - y for x, y in zip(a[1], b[1], strict=True)])
                       for a, b in exact])  # fmt: skip
        now = engine.attribute("AVG", ASKED)
        assert now.mechanism == "provisional"
        assert abs(now.value - plain.attribute("AVG", "asked").value) <= now.error
        feed(engine, plain, seed, 70)
    assert any(count for count, _ in missed[0]), "an estimate that is exact shows nothing"
    assert all(each == missed[0] for each in missed)

    with pytest.raises(StateError, match="provisional"):
        engine.attribute("AVG", "promoted_1 AND eu")
    joint = engine.attribute("AVG", f"({ASKED}) AND region = 'EU'")
    assert joint.mechanism == "provisional", "a condition, and promoted by itself"
    assert engine.rebuild() == ["promoted_1", "promoted_2"]
    settled = engine.attribute("AVG", ASKED)
    assert settled.mechanism == "marginal"
    assert settled[:3] == plain.attribute("AVG", "asked")[:3]
    assert engine.attribute("AVG", "promoted_1 AND eu").mechanism == "compositional"


def test_the_exact_rebuild_comes_by_itself() -> None:
    engine, plain = engines(threshold=1, bootstrap="sample", rebuild_after=0.01)
    engine.attribute("AVG", ASKED)
    for _ in range(5_000):
        if "promoted_1" in engine.predicates:
            break
        sleep(0.02)
    assert engine.attribute("AVG", ASKED)[:3] == plain.attribute("AVG", ASKED)[:3]
    assert engine.attribute("AVG", ASKED).mechanism == "marginal"


def test_values_beyond_the_scale_settle_what_is_provisional() -> None:
    engine, plain = engines(threshold=1, bootstrap="sample", rebuild_after=3600.0)
    engine.attribute("AVG", ASKED)
    huge = {"region": ["EU"], "k": [3], "flag": [True], "ms": [1e15]}
    engine.ingest(huge)
    plain.ingest(huge)
    assert engine.attribute("AVG", ASKED)[:3] == plain.attribute("AVG", ASKED)[:3]


def test_a_restored_engine_knows_what_it_promoted(tmp_path: Path) -> None:
    engine, plain = engines(threshold=2, stale=4)
    for _ in range(2):
        engine.attribute("AVG", ASKED)
        feed(engine, plain, 1, 5)
    engine.attribute("AVG", "k = 7")
    engine.checkpoint(tmp_path / "engine")
    restored = ids.Engine.restore(tmp_path / "engine")
    assert restored.promoted == engine.promoted
    assert restored.attribute("AVG", SAME).mechanism == "marginal"
    assert restored.attribute("AVG", "k = 7").mechanism == "marginal", "its second question"


def asked_meanwhile(engine: ids.Engine, times: int) -> list[ids.Attribution]:
    """Questions from another thread, put while this one is about to write."""
    found: list[ids.Attribution] = []
    thread = Thread(
        target=lambda: found.extend(engine.attribute("AVG", ASKED) for _ in range(times))
    )
    with engine._writing:
        thread.start()
        thread.join()
    return found


def test_questions_count_while_a_slide_is_on_its_way_and_promote_behind_it() -> None:
    engine, plain = engines(threshold=3)
    assert [a.mechanism for a in asked_meanwhile(engine, 3)] == ["scan"] * 3
    assert not engine.promoted
    feed(engine, plain, 2, 10)
    assert len(engine.promoted) == 1
    found = engine.attribute("AVG", ASKED)
    assert found.mechanism == "marginal"
    assert found[:3] == plain.attribute("AVG", ASKED)[:3]


def test_questions_that_were_counted_meanwhile_promote_with_the_next_one() -> None:
    engine, _ = engines(threshold=3)
    asked_meanwhile(engine, 2)
    assert engine.attribute("AVG", ASKED).reason == "this question promoted it"
    engine, _ = engines(threshold=2)
    asked_meanwhile(engine, 2)
    other = engine.attribute("AVG", "k = 7")
    assert (other.mechanism, "promoted" in other.reason) == ("scan", False)
    assert len(engine.promoted) == 1


def test_a_busy_writer_rebuilds_and_demotes_behind_its_slides() -> None:
    never = float("inf")
    engine, plain = engines(threshold=1, bootstrap="sample", rebuild_after=never, stale=2)
    with engine._writing:  # the timer, when it comes, finds the writer busy
        asked_meanwhile(engine, 1)
        feed(engine, plain, 2, 10)
        assert len(engine.promoted) == 1
        assert not engine.predicates.keys() & engine.promoted.keys()
        promoter = engine._promoter
        assert promoter is not None
        timer = Thread(target=promoter._rebuild_when_due, daemon=True)
        timer.start()
        while not promoter._overdue:
            sleep(0.001)
        feed(engine, plain, 3, 10)
        assert "promoted_1" in engine.predicates
        thread = Thread(target=lambda: [engine.attribute("AVG", "k = 7") for _ in range(3)])
        thread.start()
        thread.join()
        feed(engine, plain, 4, 10)
        assert [*engine.promoted.values()] == ["k = 7"]
    timer.join()
    engine.attribute("AVG", ASKED)
    engine.rebuild()
    assert engine.attribute("AVG", ASKED)[:3] == plain.attribute("AVG", ASKED)[:3]
