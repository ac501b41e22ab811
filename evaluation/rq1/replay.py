"""Streams replayed by deltas: the engine and ``ids.sql`` beside recomputation and the truth."""

import math
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise, product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import ids
from evaluation.bench import Bench, filled, registered, registering
from evaluation.rq1.enumeration import off, worst
from evaluation.rq4.window import equalities
from evaluation.step import Findings, Row, Subject
from tests.oracles.shapley import CLOSED, GAMES
from tests.oracles.stretches import Stretches

WINDOW = 10_000
NAMES = ("p1", "p2", "p3", "p4")
ASKED = (*NAMES, "p1 AND p3", "p2 OR NOT p4")
# TRUE or not, for each of the four: a partition of the rows, NULL or no NULL.
ATOMS = tuple(
    " AND ".join(f"{name} IS {truth}" for name, truth in zip(NAMES, signature, strict=True))
    for signature in product(("TRUE", "NOT TRUE"), repeat=len(NAMES))
)

Answers = dict[tuple[str, str], float]  # an attribution by game and predicate


@dataclass(frozen=True)
class Watched:
    """Rows of a workload, four predicates of them, and the truth about every window."""

    rows: pa.Table
    value: str
    conditions: Mapping[str, str]
    truth: Stretches

    def engine(self, window: int = WINDOW) -> ids.Engine:
        """An engine without rows that has the four registered."""
        made = ids.Engine(window=ids.CountWindow(window), value=self.value, degree=4)
        return registered(made, self.conditions)

    def filled(self, last: int) -> ids.Engine:
        """An engine that was given the window's rows up to this one at once."""
        return filled(self.engine(), self.rows.slice(last - WINDOW, WINDOW), WINDOW)

    def off(self, given: float, game: str, predicate: str, last: int) -> Row:
        """How far an answer about the window up to this row is from the truth."""
        share, lift = self.truth.parts(game, predicate, last - WINDOW, last)
        whole = self.truth.aggregate(game, last - WINDOW, last)
        _, relative, units = off(given, share, lift, whole)
        return {"exact": relative, "units": units}


def watched(bench: Bench, subject: Subject, rows: int) -> Watched:
    """The first rows of a workload; the predicates are its attributes' most frequent values.

    Two of the first attribute, one of each of the others; pyarrow, none of it ours, finds the rows.
    """
    table = bench.events(subject, rows)
    found: dict[str, np.ndarray] = {}
    for column, count in zip(subject.attributes, (2, 1, 1), strict=True):
        found |= equalities(table, column, count)
    p1, p2, p3, p4 = found.values()
    known = pc.is_valid(table[subject.attributes[-1]]).to_numpy()
    holds = dict(zip(ASKED, (p1, p2, p3, p4, p1 & p3, p2 | (known & ~p4)), strict=True))
    truth = Stretches(table[subject.value].to_numpy(), holds)
    return Watched(table, subject.value, dict(zip(NAMES, found, strict=True)), truth)


def ask(engine: ids.Engine, games: tuple[str, ...], predicates: tuple[str, ...]) -> Answers:
    """Every game of every predicate."""
    return {(g, p): engine.attribute(g, p).value for g, p in product(games, predicates)}


def slides(bench: Bench, subject: Subject) -> Findings:
    """A workload's replay: check points all along, a checkpoint in the middle, the end."""
    count = bench.size.of(quick=5_000, full=300_000)
    watch = watched(bench, subject, WINDOW + count)
    # single rows, small batches and large ones, in a random order
    sizes = bench.rng("rq1-batches").choice((1, 1, 2, 5, 10, 50, 100, 200), count)
    ends = np.unique(WINDOW + np.minimum(np.cumsum(sizes), count))
    marks = np.linspace(WINDOW, WINDOW + count, bench.size.of(quick=26, full=121))
    due = set(ends[np.searchsorted(ends, marks)].tolist())
    half = int(ends[np.searchsorted(ends, WINDOW + count // 2)])
    engine, kept = watch.filled(WINDOW), bench.scratch / "half.ids"
    rows: list[Row] = []
    for first, last in pairwise((WINDOW, *ends.tolist())):
        engine.ingest(watch.rows.slice(first, last - first))
        if last in due:
            rows += checked(watch, engine, last)
            bench.said((last - WINDOW) / count)
        if last == half:
            engine.checkpoint(kept)
    ended, again = ask(engine, GAMES, ASKED), restored(kept, watch.rows.slice(half))
    facts: Row = {"workload": subject.workload, "slides": count, "checks": len(due)}
    differing = sum(value.hex() != again[key].hex() for key, value in ended.items())
    live = sum(engine.attribute("COUNT", atom).value > 0 for atom in ATOMS)
    survived: Row = {"restored_at": half - WINDOW, "answers": len(ended), "differing": differing}
    deltas = [{**facts, **row} for row in worst(rows, "game")]
    return {"rq1_deltas": deltas, "rq1_restored": [{**facts, **survived, "atoms": live}]}


def checked(watch: Watched, engine: ids.Engine, last: int) -> Iterator[Row]:
    """Deltas beside recomputation; Efficiency by the sum of the atoms and by the engine's probe."""
    wanted = ask(watch.filled(last), GAMES, ASKED)
    for (game, predicate), kept in ask(engine, GAMES, ASKED).items():
        exact = watch.off(kept, game, predicate, last) if game in CLOSED else {}
        yield {"game": game, **_beside(kept, wanted[game, predicate]), **exact}
    for game in GAMES:
        whole = engine.aggregate(game) or 0.0
        attributed = math.fsum(engine.attribute(game, atom).value for atom in ATOMS)
        probe = _apart(whole + engine.residual(game), whole)
        yield {"game": game, "residual": _apart(attributed, whole), "probe": probe}


def _beside(kept: float, wanted: float) -> Row:
    differing = kept.hex() != wanted.hex()
    return {"questions": True, "differing": differing, "delta": _apart(kept, wanted)}


def _apart(given: float, wanted: float) -> float:
    return abs(given - wanted) / (abs(wanted) or 1.0)


def restored(checkpoint: Path, rows: pa.Table) -> Answers:
    """The answers of an engine restored in a process of its own, after the remaining rows."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_go_on, checkpoint, rows).result()


def _go_on(checkpoint: Path, rows: pa.Table) -> Answers:
    # in larger batches than before the checkpoint: that must not change a bit either
    return ask(filled(ids.Engine.restore(checkpoint), rows, 1_000), GAMES, ASKED)


def emits(bench: Bench, subject: Subject) -> Findings:
    """Every slide's emit by ``ids.sql``; bits against a filled engine, values against the truth."""
    count = bench.size.of(quick=5_000, full=300_000)
    watch = watched(bench, subject, WINDOW + count)
    given = ids.sql(_script(watch), events=watch.rows)
    bench.said(0.6)
    recomputed, judged = (
        np.linspace(WINDOW, WINDOW + count, times).round().astype(int).tolist()
        for times in bench.size.of(quick=(20, 100), full=(120, 2_000))
    )
    columns = {(g, p): given[f"{g}_{p}"].to_numpy().tolist() for g, p in product(CLOSED, NAMES)}
    rows: list[Row] = []
    for last in recomputed:
        answers = ask(watch.filled(last), CLOSED, NAMES).items()
        rows += ({"game": a[0], **_beside(columns[a][last - 1], value)} for a, value in answers)
    bench.said(0.8)
    for (game, name), column in columns.items():
        rows += ({"game": game, **watch.off(column[at - 1], game, name, at)} for at in judged)
        # what all SHAPLEY_DELTAs miss of the last attribution, relative to the largest there was
        missed = abs(math.fsum(given[f"{game}_{name}_delta"].to_numpy()) - column[-1])
        rows.append({"game": game, "telescoped": missed / (max(map(abs, column)) or 1.0)})
    facts: Row = {"workload": subject.workload, "slides": count, "emits": given.num_rows}
    return {"rq1_emits": [{**facts, **row} for row in worst(rows, "game")]}


def _script(watch: Watched) -> str:
    """Attribution and SHAPLEY_DELTA of every game and predicate, at every row."""
    items = ",\n".join(
        f"SHAPLEY_ATTRIBUTE({game}({watch.value}), {name}) AS {game}_{name},\n"
        f"SHAPLEY_DELTA({game}({watch.value}), {name}) AS {game}_{name}_delta"
        for game, name in product(CLOSED, NAMES)
    )
    frame = f"ORDER BY event_time ROWS {WINDOW} PRECEDING SLIDE 1 ROWS"
    predicates = registering(watch.conditions, "events")
    return f"{predicates}\nSELECT {items}\nFROM events WINDOW w AS ({frame}) EMIT CHANGES"
