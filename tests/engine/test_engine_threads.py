"""One writer, many readers: an answer belongs to a whole slide."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

import ids

QUESTIONS = (("AVG", "eu"), ("VAR_POP", "eu AND NOT slow"), ("SUM", "NOT eu OR slow"),
             ("AVG", "x > 3 AND eu"), ("COUNT", "slow"))  # fmt: skip
SLIDES = 120


def slides() -> Iterator[dict[str, object]]:
    """Regions that come and go, so that atoms do, and values that outgrow every scale."""
    rng = np.random.default_rng(5)
    for slide in range(SLIDES):
        size = int(rng.integers(1, 60))
        region = rng.choice(["EU", "US", "AP"][slide % 3 :], size)
        grown = 10.0 ** (slide // 30 * 6)
        yield {
            "x": rng.lognormal(1.0, 1.0, size) * grown,
            "region": region,
            "k": rng.integers(0, 50, size),
        }


def begun() -> ids.Engine:
    engine = ids.Engine(ids.CountWindow(100), "x")
    engine.register("eu", "region = 'EU'")
    engine.register("slow", "x > 5")
    engine.register("rare", "k = 7")
    return engine


@pytest.fixture(autouse=True)
def _switching_often() -> Iterator[None]:
    """Threads change places every few bytecodes, as they otherwise would once in a long while."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def asked(engine: ids.Engine, question: tuple[str, str]) -> tuple[float, float, float, int]:
    found = engine.attribute(*question)
    return found.value, found.share, found.lift, found.n


def test_readers_see_whole_slides() -> None:
    batches = list(slides())
    quiet = begun()
    right: dict[object, set[object]] = {question: set() for question in QUESTIONS}
    aggregates: set[object] = {None}
    for batch in [None, *batches]:
        if batch is not None:
            quiet.ingest(batch)
        for question in QUESTIONS:
            right[question].add(asked(quiet, question))
        aggregates.add(quiet.aggregate("VAR_SAMP"))
    engine, errors, seen = begun(), [], [0, 0, 0]
    done = threading.Event()

    def read(reader: int) -> None:
        rng = np.random.default_rng(reader)
        try:
            while not done.is_set():
                question = QUESTIONS[int(rng.integers(len(QUESTIONS)))]
                answer = asked(engine, question)
                assert answer in right[question], (question, answer)
                assert engine.aggregate("VAR_SAMP") in aggregates
                assert engine.rows <= 100
                assert abs(engine.residual("AVG")) < 1e-3 * max(1.0, engine.aggregate("AVG") or 1.0)
                seen[reader] += 1
        except BaseException as error:
            errors.append(error)

    readers = [threading.Thread(target=read, args=(reader,)) for reader in range(3)]
    for reader in readers:
        reader.start()
    for batch in batches:
        engine.ingest(batch)
        time.sleep(0.001)
    done.set()
    for reader in readers:
        reader.join()
    assert not errors, errors[0]
    assert min(seen) > 10
    assert [asked(engine, q) for q in QUESTIONS] == [asked(quiet, q) for q in QUESTIONS]


def test_a_checkpoint_may_be_taken_while_others_read(tmp_path: object) -> None:
    engine = begun()
    errors: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                engine.attribute("AVG", "eu AND slow")
        except BaseException as error:
            errors.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    path = f"{tmp_path}/engine.ids"
    for batch in list(slides())[:20]:
        engine.ingest(batch)
        engine.checkpoint(path)
        assert asked(ids.Engine.restore(path), QUESTIONS[1]) == asked(engine, QUESTIONS[1])
    done.set()
    reader.join()
    assert not errors


@pytest.mark.parametrize("writers", [3])
def test_writers_take_turns(writers: int) -> None:
    engine = ids.Engine(ids.Changelog(), "x", retain=True)
    engine.register("one", "w = 1")

    def write(number: int) -> None:
        for i in range(40):
            engine.apply(inserts={"x": [float(i)], "w": [number]})

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert engine.rows == 40 * writers
    assert engine.attribute("SUM", "one").value == sum(range(40))
