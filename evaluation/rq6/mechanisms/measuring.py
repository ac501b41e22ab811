"""The steps: what a question costs, what keeping up a mechanism costs, how far it is off."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import fsum, isclose
from statistics import fmean

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import ids
from evaluation.asking import after_slides
from evaluation.bench import Bench
from evaluation.repeated import Repeated, in_turns
from evaluation.rq6.mechanisms.choosing import Case, cases
from evaluation.rq6.mechanisms.contenders import BESIDE, EXACT, MECHANISMS, SAMPLE, engine
from evaluation.rq6.mechanisms.paper import WINDOW
from evaluation.size import Size
from evaluation.step import Findings, Row, Step
from evaluation.subject import Subject
from evaluation.values import as_text, literal

__all__ = ["refuse_another_answer", "steps"]

_SLIDE = 1_000  # rows of a slide where maintenance is timed
_COMPONENTS = {
    "brute force scan": ("retained",),
    "index assisted": ("index",),
    "uniform sample": ("sampler",),
    "stratified sample": ("sampler",),
    "compositional": ("summaries", "atoms"),
    "registered": ("summaries", "atoms"),
}


def steps(size: Size) -> list[Step]:
    """Three measurements of the same six engines."""
    return [
        Step("rq6-mechanisms-questions", "asks by every mechanism", size.of(quick=2.0, full=8.0),
             _questions, ("real",)),
        Step("rq6-mechanisms-maintenance", "slides with every mechanism",
             size.of(quick=1.0, full=3.0), _maintenance, ("real",)),
        Step("rq6-mechanisms-errors", "draws samples again and again",
             size.of(quick=1.0, full=8.0), _errors, ("real",)),
    ]  # fmt: skip


class _Scene:
    """The window's rows, those that come after, and what is asked of them."""

    def __init__(self, bench: Bench, more: int) -> None:
        self.subject: Subject = bench.real
        self.window: int = bench.size.of(quick=50_000, full=WINDOW)
        events = bench.events(self.subject, self.window + more)
        self.events = as_text(events.drop_columns(["event_time"]))  # which nobody asks about
        self.first = self.events.slice(0, self.window)
        self.asked = cases(self.first, self.subject)
        self.strata: int = pc.count_distinct(self.first[self.subject.attributes[0]]).as_py()
        self.facts: Row = {
            "workload": self.subject.workload, "window": self.window,
            "sample": SAMPLE, "strata": self.strata, "stratum": self.subject.attributes[0],
        }  # fmt: skip

    def filled(self, mechanism: str, seed: int = 0) -> ids.Engine:
        """An engine with the window's rows inside."""
        made = engine(mechanism, self.subject, self.window, self.asked, self.strata, seed)
        made.ingest(self.first)
        return made


def _questions(bench: Bench) -> Findings:
    asks, repetitions = bench.size.of(quick=10, full=50), bench.size.repetitions
    scene = _Scene(bench, more=3 * (repetitions + 1) * asks)
    engines = {name: scene.filled(name) for name in MECHANISMS}
    rows: list[Row] = []
    place = scene.window
    for number, case in enumerate(scene.asked):
        inside = scene.events.slice(place - scene.window, scene.window)
        refuse_another_answer(case, engines, inside, scene.subject.value)
        spent: dict[str, list[float]] = {name: [] for name in engines}
        for _ in range(repetitions + 1):
            for name, one in engines.items():
                spent[name].append(_after_slides(one, scene, case, place, asks))
            place += asks
        for name, one in engines.items():
            found = one.attribute("AVG", case.condition)
            rows.append({
                **scene.facts, "case": case.label, "condition": case.condition,
                "matches": case.matches, "selectivity": case.selectivity, "mechanism": name,
                "by": found.mechanism, "touched": found.touched,
                "query": Repeated.of(spent[name][1:]),  # the first is the warm-up
                "bytes": sum(getattr(one.memory(), part) for part in _COMPONENTS[name]),
            })  # fmt: skip
        bench.said((number + 1) / len(scene.asked))
    return {"rq6_mechanisms_questions": rows}


def _after_slides(one: ids.Engine, scene: _Scene, case: Case, place: int, asks: int) -> float:
    """The median of some questions, each right after one row more."""
    rows = (scene.events.slice(row, 1) for row in range(place, place + asks))
    return 1e-6 * after_slides(one, rows, partial(one.attribute, "AVG", case.condition), asks).p50


def refuse_another_answer(
    case: Case, engines: Mapping[str, ids.Engine], inside: pa.Table, value: str
) -> None:
    """Exact mechanisms agree to the bit, and their SUM is what a plain sum of the rows is."""
    exact = {name: engines[name].attribute("AVG", case.condition)[:3] for name in EXACT}
    if len(set(exact.values())) != 1:
        raise AssertionError(f"{case.condition} has several exact answers: {exact}")
    rows = zip(inside[value].to_pylist(), _holds(inside, case), strict=True)
    plain = fsum(one for one, holds in rows if holds)
    answer = engines["registered"].attribute("SUM", case.condition).value
    if not isclose(answer, plain, rel_tol=1e-12):
        raise AssertionError(f"{case.condition}: SUM is {answer}, the rows' is {plain}")


def _holds(rows: pa.Table, case: Case) -> list[bool]:
    """Row by row; a value is the wanted one if it is written as it is."""
    found = [True] * rows.num_rows
    for part in case.parts:
        name, wanted = part.split(" = ", 1)
        column = rows[name].to_pylist()
        right = {v for v in set(column) if v is not None and literal(v) == wanted}
        found = [held and value in right for held, value in zip(found, column, strict=True)]
    return found


def _maintenance(bench: Bench) -> Findings:
    moved = bench.size.of(quick=10_000, full=50_000)
    scene = _Scene(bench, more=moved)
    slides = [scene.events.slice(scene.window + place, _SLIDE) for place in range(0, moved, _SLIDE)]

    def slid(one: ids.Engine) -> None:
        for slide in slides:
            one.ingest(slide)

    engines = {name: scene.filled(name) for name in ("nothing", *MECHANISMS)}
    contenders = {name: (lambda one=one: slid(one)) for name, one in engines.items()}
    spent = in_turns(contenders, bench.size.repetitions)
    rows: list[Row] = []
    for name, beside in BESIDE.items():
        pairs = zip(spent[name].samples, spent[beside].samples, strict=True)
        rows.append({
            **scene.facts, "mechanism": name, "slide": _SLIDE, "beside": beside,
            "whole": spent[name].scaled(1 / moved),
            "extra": Repeated.of((mine - its) / moved for mine, its in pairs),
        })  # fmt: skip
    return {"rq6_mechanisms_maintenance": rows}


def _errors(bench: Bench) -> Findings:
    trials, repetitions = bench.size.of(quick=4, full=20), bench.size.repetitions
    scene = _Scene(bench, more=0)
    truly = scene.filled("registered")
    exact = {case.label: truly.attribute("AVG", case.condition).value for case in scene.asked}
    sampled = tuple(name for name in MECHANISMS if name not in EXACT)
    off: dict[tuple[str, str], list[float]] = {
        (case.label, name): [] for case in scene.asked for name in sampled
    }
    empty = dict.fromkeys(off, 0)
    for seed in range(trials * repetitions):
        for name in sampled:
            one = scene.filled(name, seed)
            for case in scene.asked:
                about = one.attribute("AVG", case.condition).value
                error = abs(about - exact[case.label]) / abs(exact[case.label])
                off[case.label, name].append(error)
                empty[case.label, name] += about == 0.0
        bench.said((seed + 1) / (trials * repetitions))
    rows: list[Row] = [
        {**scene.facts, "case": label, "mechanism": name, "trials": trials * repetitions,
         "error": Repeated.of(fmean(each) for each in np.array_split(errors, repetitions)),
         "empty": empty[label, name] / (trials * repetitions)}
        for (label, name), errors in off.items()
    ]  # fmt: skip
    return {"rq6_mechanisms_errors": rows}
