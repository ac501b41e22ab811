"""Every kind of engine, by name: a law must hold for each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import ids
from ids import Engine
from ids.state import Refined

__all__ = [
    "CHANGELOGS",
    "ENGINES",
    "PAPER",
    "PREDICATES",
    "Event",
    "agree",
    "answers",
    "events",
    "feed",
    "made",
    "state",
    "table",
    "words",
]

PAPER = ("SUM", "COUNT", "AVG", "VAR_POP", "VAR_SAMP")
PREDICATES = {"eu": "region = 'EU'", "big": "x > 10", "odd": "k % 2 = 1"}
COMBINATION = "eu AND NOT big"

Event = tuple[int, float | None, str | None, int]

ENGINES: dict[str, Callable[[], Engine]] = {
    "count": lambda: Engine(ids.CountWindow(9), "x", degree=4),
    "ordered": lambda: Engine(ids.CountWindow(9), "x", order_by="t", lateness=3, degree=4),
    "time": lambda: Engine(ids.TimeWindow(12, 4), "x", order_by="t", lateness=6, degree=4),
    "time without rows": lambda: Engine(
        ids.TimeWindow(12), "x", order_by="t", retain=False, degree=4
    ),
    "changelog": lambda: Engine(ids.Changelog(), "x", degree=4),
    "summaries": lambda: Engine(ids.Changelog(), "x", retain=False, degree=4),
    "enumerated": lambda: Engine(
        ids.CountWindow(9), "x", degree=4, atom_limit=0, intersections=[COMBINATION]
    ),
    "enumerated summaries": lambda: Engine(
        ids.Changelog(), "x", retain=False, degree=4, atom_limit=0, intersections=[COMBINATION]
    ),
}
CHANGELOGS = [name for name in ENGINES if "summaries" in name or name == "changelog"]

measures = st.one_of(
    st.none(), st.integers(-40, 40).map(float), st.floats(0.5, 2000.0), st.just(1e6 + 1 / 3)
)
event = st.tuples(
    st.integers(-4, 4), measures, st.sampled_from(["EU", "US", None]), st.integers(0, 3)
)


@st.composite
def events(draw: st.DrawFn, least: int = 0, most: int = 40) -> list[Event]:
    """Rows whose times go on, here and there a little back."""
    rows = draw(st.lists(event, min_size=least, max_size=most))
    return [(100 + i + row[0], *row[1:]) for i, row in enumerate(rows)]


def table(rows: Sequence[Event]) -> pa.Table:
    t, x, region, k = zip(*rows, strict=True) if rows else ((), (), (), ())
    return pa.table(
        {
            "t": pa.array(t, pa.int64()),
            "x": pa.array(x, pa.float64()),
            "region": pa.array(region, pa.string()),
            "k": pa.array(k, pa.int64()),
        }
    )


def made(kind: str) -> Engine:
    engine = ENGINES[kind]()
    for name, condition in PREDICATES.items():
        engine.register(name, condition)
    return engine


def feed(engine: Engine, rows: Sequence[Event], cuts: Sequence[int] = ()) -> None:
    """The rows in batches, cut at the given places."""
    bounds = [0, *sorted(c % (len(rows) + 1) for c in cuts), len(rows)]
    for start, stop in itertools.pairwise(bounds):
        batch = table(rows[start:stop])
        if isinstance(engine.window, ids.Changelog):
            engine.apply(inserts=batch)
        else:
            engine.ingest(batch)


def state(engine: Engine) -> list[Any]:
    """Every exact sum, in the measure's own units; atoms by their signatures."""
    core = engine._core
    found: list[Any] = [engine.rows, engine.late_rows, engine.predicates]
    if core is None:
        return found
    for summaries in core.measures:
        scale = summaries.scale
        fine = 1100 + scale.exponent - 35 * scale.digits

        def exact(row: Any, summaries: Any = summaries, fine: int = fine) -> Any:
            members, sums = summaries.exact(row)
            return members, [s << (fine * (d + 1)) for d, s in enumerate(sums[:2])]

        found.append(exact(summaries.window))
        found.append([exact(row) for row in summaries.marginals])
        if isinstance(core.membership, Refined):
            truths = core.membership.refinement.truths
            found.append(
                {truths[a].tobytes(): exact(summaries.atoms[a]) for a in core.membership.live}
            )
    return found


def words(engine: Engine) -> list[Any]:
    """The summaries bit for bit, atom for atom."""
    core = engine._core
    assert core is not None
    found: list[Any] = []
    for summaries in core.measures:
        found += [summaries.scale, summaries.window.tolist(), summaries.marginals.tolist()]
        if isinstance(core.membership, Refined):
            truths = core.membership.refinement.truths
            live = core.membership.live
            found.append({truths[a].tobytes(): summaries.atoms[a].tolist() for a in live})
            idle = np.delete(np.arange(len(summaries.atoms)), live)
            assert not summaries.atoms[idle].any()
    return found


def answers(engine: Engine, games: Sequence[str] = PAPER) -> list[Any]:
    """Aggregates and attributions, to be compared bit for bit."""
    found: list[Any] = [engine.aggregate(game) for game in games]
    asked = [*sorted(engine.predicates), COMBINATION]
    return found + [engine.attribute(game, each) for game in games for each in asked]


def agree(one: Engine, other: Engine, games: Sequence[str] = ("M3", "M4")) -> bool:
    """Higher moments: the same up to what pairs lose of the largest power."""
    largest = 1e-24 * (1e6**4)
    return all(
        abs(getattr(a, part) - getattr(b, part)) <= 1e-13 * (abs(a.share) + abs(a.lift)) + largest
        for game in games
        for name in [*one.predicates, COMBINATION]
        for a, b in [(one.attribute(game, name), other.attribute(game, name))]
        for part in ("value", "share", "lift")
    )
