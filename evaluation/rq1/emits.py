"""Delta equivalence of a continuous query: an emit at every slide of one row, all of them kept."""

from __future__ import annotations

import math
from functools import partial
from itertools import product

import numpy as np
import pyarrow as pa

import ids
from evaluation.bench import Bench
from evaluation.engines import registering
from evaluation.recount import CLOSED, Recount
from evaluation.rq1.accuracy import Worst
from evaluation.rq1.slides import slides_of
from evaluation.rq1.stream import NAMES, WINDOW, Watched, ask, watched
from evaluation.size import Size
from evaluation.step import Findings, Row, Step
from evaluation.subject import SUBJECTS, Subject

__all__ = ["compared", "script", "steps"]


def steps(size: Size) -> list[Step]:
    """One for each workload."""
    does, about = "an emit at every slide", size.of(quick=0.8, full=10.0)
    return [
        Step(f"rq1-emits-{name}", f"{does}, {name}", about, partial(compared, subject=one), (name,))
        for name, one in SUBJECTS.items()
    ]


def compared(bench: Bench, subject: Subject) -> Findings:
    """Every slide's emit by ``ids.sql``; bits against a filled engine, values against the truth."""
    slides = slides_of(bench)
    watch = watched(bench, subject, WINDOW + slides)
    emits = ids.sql(script(watch), events=watch.rows)
    bench.said(0.6)
    moments = _spread(slides, bench.size.of(quick=20, full=120))
    differing = _recomputed(watch, emits, moments)
    bench.said(0.8)
    worst = _held(watch, emits, _spread(slides, bench.size.of(quick=100, full=2_000)))
    facts: Row = {"workload": subject.workload, "slides": slides, "emits": emits.num_rows}
    rows = [
        {
            **facts,
            "game": game,
            "questions": len(moments) * len(NAMES),
            "differing": differing[game],
            "exact": worst[game].relative,
            "units": worst[game].units,
            "telescoped": _telescoped(emits, game),
        }
        for game in CLOSED
    ]
    return {"rq1_emits": rows}


def script(watch: Watched) -> str:
    """Attribution and SHAPLEY_DELTA of every game and predicate, at every row."""
    items = ",\n".join(
        f"SHAPLEY_ATTRIBUTE({game}({watch.value}), {name}) AS {game}_{name},\n"
        f"SHAPLEY_DELTA({game}({watch.value}), {name}) AS {game}_{name}_delta"
        for game in CLOSED
        for name in NAMES
    )
    frame = f"ORDER BY event_time ROWS {WINDOW} PRECEDING SLIDE 1 ROWS"
    registered = registering(watch.conditions, "events")
    return f"{registered}\nSELECT {items}\nFROM events WINDOW w AS ({frame}) EMIT CHANGES"


def _recomputed(watch: Watched, emits: pa.Table, moments: list[int]) -> dict[str, int]:
    """How many answers differ in a bit from those of an engine filled with the window's rows."""
    differing = dict.fromkeys(CLOSED, 0)
    for last in moments:
        filled = watch.engine()
        filled.ingest(watch.rows.slice(last - WINDOW, WINDOW))
        for (game, name), value in ask(filled, CLOSED, NAMES).items():
            differing[game] += emits[f"{game}_{name}"][last - 1].as_py().hex() != value.hex()
    return differing


def _held(watch: Watched, emits: pa.Table, moments: list[int]) -> dict[str, Worst]:
    """The largest errors against whole numbers, by game."""
    truth = Recount(watch.rows[watch.value].to_numpy().astype(float), watch.holds)
    worst = {game: Worst() for game in CLOSED}
    for game, name in product(CLOSED, NAMES):
        column = emits[f"{game}_{name}"].to_numpy()
        for last in moments:
            given = float(column[last - 1])
            worst[game].judge(given, truth, (game, name, last - WINDOW, last))
    return worst


def _telescoped(emits: pa.Table, game: str) -> float:
    """What all SHAPLEY_DELTAs miss of the last attribution, relative to the largest there was."""
    apart = 0.0
    for name in NAMES:
        column = emits[f"{game}_{name}"].to_numpy()
        changes = math.fsum(emits[f"{game}_{name}_delta"].to_numpy())
        apart = max(apart, abs(changes - column[-1]) / (np.abs(column).max() or 1.0))
    return float(apart)


def _spread(slides: int, count: int) -> list[int]:
    """So many ends of full windows, evenly from the first to the last."""
    found = np.linspace(WINDOW, WINDOW + slides, min(count, slides + 1))
    return sorted({round(each) for each in found.tolist()})
