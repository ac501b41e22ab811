"""Memory: what is said is what is held, and summaries alone do not grow with the window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ids
from ids.state import Refined

REGIONS = np.array(["EU", "US", "AP"])


def arrays(thing: Any, seen: set[int] | None = None) -> Iterator[np.ndarray]:
    """Every array that an object of ours holds, however deep."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, dict):
        for key, value in thing.items():
            yield from arrays(key, seen)
            yield from arrays(value, seen)
    elif isinstance(thing, list | tuple | set | frozenset):
        for value in thing:
            yield from arrays(value, seen)
    elif type(thing).__module__.split(".")[0] == "ids":
        slots = [s for c in type(thing).__mro__ for s in getattr(c, "__slots__", ())]
        for name in [*getattr(thing, "__dict__", {}), *slots]:
            yield from arrays(getattr(thing, name, None), seen)


def held(engine: ids.Engine) -> int:
    return sum(array.nbytes for array in arrays(engine))


def batch(rng: np.random.Generator, size: int) -> dict[str, object]:
    return {
        "t": np.sort(rng.integers(0, 10**6, size)),
        "x": rng.lognormal(1.0, 1.0, size),
        "region": rng.choice(REGIONS, size),
        "k": rng.integers(0, 10, size),
    }


def begun(**settings: Any) -> ids.Engine:
    engine = ids.Engine(**{"window": ids.Changelog(), "value": "x", **settings})
    engine.register("eu", "region = 'EU'")
    engine.register("slow", "x > 3 AND k < 5")
    return engine


def test_summaries_alone_keep_no_tuple() -> None:
    rng = np.random.default_rng(3)
    engine = begun(retain=False)
    engine.apply(inserts=batch(rng, 2_000))
    engine.attribute("AVG", "eu AND NOT slow")
    before, said = held(engine), engine.memory()
    longest = max(len(array) for array in arrays(engine) if array.ndim)
    for _ in range(20):
        engine.apply(inserts=batch(rng, 5_000))
        engine.attribute("AVG", "eu AND NOT slow")
    assert engine.rows == 102_000
    assert engine.memory().retained == 0
    assert engine.memory() == said
    assert held(engine) == before
    assert max(len(array) for array in arrays(engine) if array.ndim) == longest < 2_000


def test_a_walk_would_see_tuples_if_they_were_kept() -> None:
    rng = np.random.default_rng(3)
    engine = begun()
    engine.apply(inserts=batch(rng, 2_000))
    before = held(engine)
    engine.apply(inserts=batch(rng, 20_000))
    assert held(engine) > before + 20_000 * 8
    assert engine.memory().retained > 20_000 * 8


@pytest.mark.parametrize(
    "settings",
    [
        {"window": ids.CountWindow(500)},
        {"window": ids.CountWindow(500), "retain": False},
        {"window": ids.TimeWindow(10**5), "order_by": "t", "value": ["x", "k * 2"], "degree": 4},
        {"window": ids.Changelog()},
        {"window": ids.Changelog(), "retain": False},
    ],
)
def test_bytes_are_those_of_the_arrays(settings: dict[str, Any]) -> None:
    rng = np.random.default_rng(9)
    engine = begun(**settings)
    assert engine.memory().total == 0
    for _ in range(4):
        some = batch(rng, 400)
        if isinstance(engine.window, ids.Changelog):
            engine.apply(inserts=some)
        else:
            engine.ingest(some)
    core, memory = engine._core, engine.memory()
    assert core is not None
    assert isinstance(core.membership, Refined)
    assert memory.summaries == sum(s.window.nbytes + s.marginals.nbytes for s in core.measures)
    refinement = core.membership.refinement
    tables = [array for array in vars(refinement).values() if isinstance(array, np.ndarray)]
    tables += [array for array in arrays(refinement._cells) if isinstance(array, np.ndarray)]
    found = sum(table.nbytes for table in tables)
    assert refinement.truths.nbytes < found
    assert memory.atoms == sum(s.atoms.nbytes for s in core.measures) + found
    words = core.retained.dictionaries().values() if core.retained else []
    text = sum(len(word.encode()) for column in words for word in column)
    kept = sum(a.nbytes for a in arrays(core.retained)) if core.retained else 0
    assert memory.retained == kept + text
    assert memory.total == memory.summaries + memory.atoms + memory.retained
    assert (memory.index, memory.sampler) == (0, 0)


def test_a_window_that_slides_for_long_keeps_its_size() -> None:
    rng = np.random.default_rng(11)
    engine = begun(window=ids.CountWindow(1_000), retain=True)
    for _ in range(10):
        engine.ingest(batch(rng, 500))
    early = engine.memory().retained
    for number in range(200):
        some = batch(rng, 500)
        some["region"] = [f"request {number * 500 + i}" for i in range(500)]
        engine.ingest(some)
    assert engine.memory().retained < 3 * early


def test_atoms_that_left_give_their_room_to_others() -> None:
    engine = ids.Engine(ids.CountWindow(10), "x")
    for i in range(12):
        engine.register(f"bit_{i}", f"k % {2 ** (i + 1)} >= {2**i}")
    sizes = set()
    for start in range(0, 4_000, 10):
        engine.ingest({"x": [1.0] * 10, "k": list(range(start, start + 10))})
        assert engine.atoms == 10
        sizes.add(engine.memory().atoms)
    assert len(sizes) <= 3
