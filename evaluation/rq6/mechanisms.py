"""Ad hoc mechanisms, measured: the paper's Table 8, beside answers that look at no row at all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import combinations
from math import fsum, isclose, log
from statistics import fmean

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import ids
from evaluation.bench import Bench, as_text, equality, filled, registered
from evaluation.rq6.incident import Candidate
from evaluation.step import Findings, Repeated, Row, Subject, in_a_row, in_turns

SAMPLE = 2_000  # r, which the paper leaves open; over all strata together where there are strata
MECHANISMS = {
    "brute force scan": ("nothing", "retained"),
    "index assisted": ("brute force scan", "index"),
    "uniform sample": ("nothing", "sampler"),
    "stratified sample": ("nothing", "sampler"),
    "compositional": ("nothing", "summaries", "atoms"),
    "registered": ("nothing", "summaries", "atoms"),
}
"""Each with the engine that has all it has but its own state, and what of its memory is its own."""

_SELECTIVITIES = {"rare": 0.00002, "some": 0.02515, "most": 0.62731}  # the paper's
_SLIDE = 1_000  # rows of a slide where maintenance is timed


class Scene:
    """A window's rows, those that come after, and what is asked of them."""

    def __init__(self, subject: Subject, events: pa.Table, window: int) -> None:
        self.subject, self.events, self.window = subject, events, window
        self.first = events.slice(0, window)
        self.stratum = subject.attributes[0]
        self.strata: int = pc.count_distinct(self.first[self.stratum]).as_py()
        self.asked = self._cases()
        by: Row = {"sample": SAMPLE, "strata": self.strata, "stratum": self.stratum}
        self.facts: Row = {"workload": subject.workload, "window": window, **by}

    @classmethod
    def of(cls, bench: Bench, more: int) -> Scene:
        """The bench's real rows: the paper's window, and so many after it."""
        window = bench.size.of(quick=50_000, full=200_000)
        events = bench.events(bench.real, window + more).drop_columns(["event_time"])
        return cls(bench.real, as_text(events), window)

    def _cases(self) -> list[Candidate]:
        """For each of the paper's selectivities the equality or two that come nearest to it."""
        columns = self.subject.attributes
        counts: dict[Candidate, int] = {}
        for names in [*((column,) for column in columns), *combinations(columns, 2)]:
            for row in self.first.group_by(names).aggregate([([], "count_all")]).to_pylist():
                rows = row.pop("count_all")
                if rows >= 3 and None not in row.values():  # fewer tell nothing
                    counts[Candidate("", tuple(row.items()))] = rows
        strata = [one for one in counts if [name for name, _ in one.equal] == [self.stratum]]
        rare = [one for one in strata if counts[one] <= 1e-3 * self.window]
        found = []
        for label, wanted in _SELECTIVITIES.items():
            aim = wanted * self.window
            pool = rare if rare and label == "rare" else counts  # along the strata, as the paper's
            off = {one: abs(log(counts[one] / aim)) for one in pool}
            nearest = min(off, key=lambda one: (off[one], len(one.equal), one.condition))
            found.append(Candidate(label, nearest.equal))
        return found

    def filled(self, mechanism: str, seed: int = 0) -> ids.Engine:
        """An engine with the window inside that answers by this alone, or by ``nothing``."""
        index = self.subject.attributes if mechanism == "index assisted" else ()
        strata = self.stratum if mechanism == "stratified sample" else ()
        size = max(1, SAMPLE // self.strata) if strata else SAMPLE
        sampling = ids.Sampling(size, strata, seed=seed) if "sample" in mechanism else None
        retain = mechanism in ("brute force scan", "index assisted")
        window, value = ids.CountWindow(self.window), self.subject.value
        made = ids.Engine(window, value, retain=retain, index=index, sampling=sampling)
        known = []
        if mechanism == "registered":
            known = [one.condition for one in self.asked]
        elif mechanism == "compositional":  # the conditions' parts, a lone one by its negation
            alone = {one.condition for one in self.asked if len(one.equal) == 1}
            parts = {equality(*part) for one in self.asked for part in one.equal} - alone
            known = [*(f"NOT {part}" for part in sorted(alone)), *sorted(parts)]
        registered(made, {f"known_{k}": one for k, one in enumerate(known)})
        return filled(made, self.first, self.window)

    def refuse_another_answer(
        self, case: Candidate, engines: Mapping[str, ids.Engine], inside: pa.Table
    ) -> None:
        """Exact mechanisms agree to the bit, and their SUM is what a plain sum of the rows is."""
        exactly = [name for name in engines if "sample" not in name]
        exact = {name: engines[name].attribute("AVG", case.condition)[:3] for name in exactly}
        if len(set(exact.values())) != 1:
            raise AssertionError(f"{case.condition} has several exact answers: {exact}")
        plain = fsum(inside[self.subject.value].to_numpy()[case.mask(inside)])
        answer = engines["registered"].attribute("SUM", case.condition).value
        if not isclose(answer, plain, rel_tol=1e-12):
            raise AssertionError(f"{case.condition}: SUM is {answer}, the rows' is {plain}")


def questions(bench: Bench) -> Findings:
    """The median of some questions, each right after one row more."""
    asks, repetitions = bench.size.of(quick=10, full=50), bench.size.repetitions
    scene = Scene.of(bench, more=3 * (repetitions + 1) * asks)
    engines = {name: scene.filled(name) for name in MECHANISMS}
    rows: list[Row] = []
    place = scene.window
    for done, case in enumerate(scene.asked):
        inside = scene.events.slice(place - scene.window, scene.window)
        scene.refuse_another_answer(case, engines, inside)
        spent: dict[str, list[float]] = {name: [] for name in engines}
        for _ in range(repetitions + 1):
            for name, one in engines.items():
                slides = (scene.events.slice(row, 1) for row in range(place, place + asks))
                ask = partial(one.attribute, "AVG", case.condition)
                spent[name].append(in_a_row(ask, asks, map(one.ingest, slides).__next__).median)
            place += asks
        matches = int(case.mask(scene.first).sum())
        for name, one in engines.items():
            found, memory = one.attribute("AVG", case.condition), one.memory()
            rows.append({
                **scene.facts, "case": case.name, "condition": case.condition, "matches": matches,
                "selectivity": matches / scene.window, "mechanism": name, "by": found.mechanism,
                "touched": found.rows_read,
                "query": Repeated.of(spent[name][1:]),  # after a warm-up
                "bytes": sum(getattr(memory, part) for part in MECHANISMS[name][1:]),
            })  # fmt: skip
        bench.said((done + 1) / len(scene.asked))
    return {"rq6_mechanisms_questions": rows}


def maintenance(bench: Bench) -> Findings:
    """What slides cost with each mechanism, and what of it is the mechanism's own."""
    moved = bench.size.of(quick=10_000, full=50_000)
    scene = Scene.of(bench, more=moved)
    later, names = scene.events.slice(scene.window), ("nothing", *MECHANISMS)
    contenders = {name: partial(filled, scene.filled(name), later, _SLIDE) for name in names}
    spent = in_turns(contenders, bench.size.repetitions)
    rows: list[Row] = []
    for name, (beside, *_) in MECHANISMS.items():
        pairs = zip(spent[name].samples, spent[beside].samples, strict=True)
        extra = Repeated.of((mine - its) / moved for mine, its in pairs)
        how: Row = {"mechanism": name, "slide": _SLIDE, "beside": beside}
        rows.append({**scene.facts, **how, "whole": spent[name].scaled(1 / moved), "extra": extra})
    return {"rq6_mechanisms_maintenance": rows}


def errors(bench: Bench) -> Findings:
    """How far samples are off, drawn again and again; a sample that matches no row says 0."""
    repetitions = bench.size.repetitions
    trials = bench.size.of(quick=4, full=20) * repetitions
    scene = Scene.of(bench, more=0)
    truly = scene.filled("registered")
    found: dict[tuple[Candidate, str], list[float]] = {}
    for seed in range(trials):
        for name in ("uniform sample", "stratified sample"):
            one = scene.filled(name, seed)
            for case in scene.asked:
                value = one.attribute("AVG", case.condition).value
                found.setdefault((case, name), []).append(value)
        bench.said((seed + 1) / trials)
    rows: list[Row] = []
    for (case, name), values in found.items():
        exact = truly.attribute("AVG", case.condition).value
        off = np.abs(np.array(values) - exact) / abs(exact)
        error = Repeated.of(fmean(each) for each in np.array_split(off, repetitions))
        about: Row = {"case": case.name, "mechanism": name, "trials": trials}
        rows.append({**scene.facts, **about, "error": error, "empty": values.count(0.0) / trials})
    return {"rq6_mechanisms_errors": rows}
