"""The case study: how soon after its onset the planted predicate leads the candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from evaluation.bench import Bench
from evaluation.rq6.candidates import PLANTED, RIVALS, Candidate
from evaluation.rq6.incident.leading import RULES, Calm, leads, led_from
from evaluation.rq6.incident.replay import SIGNALS, Signals, replanted, replay
from evaluation.rq6.truth import Truth, truth
from evaluation.size import Size
from evaluation.step import Findings, Row, Step, Value
from evaluation.subject import SUBJECTS

__all__ = ["BEFORE", "SLIDE", "steps"]

BEFORE = 390  # emits before the onset: the paper's
SLIDE = 20
"""Rows a slide. The paper does not say; its two distances, 79 and 9,399, are 9,320 apart, so its
slide divides that, and 20 is the one by which three emits and a late start make 79."""

_SLIDES = (1, 10, SLIDE, 50)
_CALM = 10  # windows of rows, before those emits, that tell what is usual


@dataclass(frozen=True)
class _Scene:
    """The stream, where its incident lies, and how large the window is that slides over it."""

    rows: pa.Table
    window: int
    truth: Truth

    @classmethod
    def of(cls, bench: Bench) -> _Scene:
        rows = bench.events(SUBJECTS["synthetic"])
        return cls(rows, bench.size.of(quick=2_000, full=20_000), truth(bench))

    def signals(self, candidates: Sequence[Candidate], slide: int, after: int) -> Signals:
        """A window fills, ten windows are calm, then come the emits before, and ``after`` rows."""
        lead_in = self.window * (1 + _CALM) + BEFORE * slide
        rows = self.rows.slice(self.truth.onset - lead_in, lead_in + after)
        return replay(rows, candidates, self.window, slide, lead_in)


def steps(size: Size) -> list[Step]:
    """The incident that was planted, by several slides and rivals; and others like it."""
    needs = ("synthetic",)
    return [
        Step("rq6-case", "the planted incident", size.of(quick=0.1, full=0.2), _case, needs),
        *(
            Step(
                f"rq6-leads-{rivals}",
                f"who leads, and when, among {rivals}",
                size.of(quick=0.1, full=0.6),
                partial(_leads, rivals),
                needs,
            )
            for rivals in RIVALS
        ),
        Step(
            "rq6-onsets",
            "the same incident elsewhere",
            size.of(quick=0.1, full=0.6),
            _onsets,
            needs,
        ),
    ]


def _case(bench: Bench) -> Findings:
    """What the figure shows: every emit near the onset, and some of those further away."""
    scene = _Scene.of(bench)
    rivals = RIVALS["siblings"]
    after = scene.truth.end - scene.truth.onset + 3 * scene.window // 2
    signals = scene.signals(rivals, SLIDE, after)
    near = np.abs(signals.tuples) <= 100 * SLIDE
    far = np.arange(len(signals.tuples)) % bench.size.of(quick=5, full=40) == 0
    seen = (near | far) & (signals.tuples > -BEFORE * SLIDE)
    rows: list[Row] = []
    for at in np.flatnonzero(seen):
        row: dict[str, Value] = {
            "tuples": int(signals.tuples[at]),
            "near": bool(near[at]),
            "far": bool(far[at]),
            "average": float(signals.average[at]),
        }
        for name in SIGNALS:
            row |= {
                f"{name}: {candidate.label}": float(signals.by_name[name][k, at])
                for k, candidate in enumerate(rivals)
            }
        rows.append(row)
    facts: Row = {
        "window": scene.window,
        "slide": SLIDE,
        "incident": scene.truth.end - scene.truth.onset,
        "planted": PLANTED.label,
    }
    return {"rq6_case": rows, "rq6_case_facts": [facts]}


def _leads(rivals: str, bench: Bench) -> Findings:
    """Every slide and rule: when the planted predicate leads, and who led before."""
    scene = _Scene.of(bench)
    rows: list[Row] = []
    for done, slide in enumerate(_SLIDES):
        after = scene.truth.end - scene.truth.onset
        signals = scene.signals(RIVALS[rivals], slide, after)
        for signal in SIGNALS:
            rows += _judged(signals, signal, {"rivals": rivals, "slide": slide, "signal": signal})
        bench.said((done + 1) / len(_SLIDES))
    return {"rq6_leads": rows}


def _judged(signals: Signals, signal: str, facts: Row) -> list[Row]:
    values, tuples = signals.by_name[signal], signals.tuples
    before = np.flatnonzero(tuples <= 0)
    watched = before[-BEFORE:]
    calm = Calm.of(values[:, before[1:-BEFORE]])
    rows: list[Row] = []
    for rule in RULES:
        held = leads(values, rule, calm)
        rows.append(
            {
                **facts,
                "rule": rule.label,
                "led_after": led_from(held, tuples),
                "before": len(watched),
                "decoy_led": int((held[watched] > 0).sum()),
                "planted_led": int((held[watched] == 0).sum()),
            }
        )
    return rows


def _onsets(bench: Bench) -> Findings:
    """The incident planted anew on calm rows elsewhere: was the one onset lucky?

    Each is followed for half a window; the calm is that before the real onset.
    """
    scene = _Scene.of(bench)
    number = bench.size.of(quick=5, full=20)
    lead_in = scene.window + SLIDE
    after = scene.window // 2
    rows: list[Row] = []
    for rivals, candidates in RIVALS.items():
        known = scene.signals(candidates, SLIDE, 0)
        calms = {name: Calm.of(known.by_name[name][:, 1:-BEFORE]) for name in SIGNALS}
        last = scene.truth.onset - lead_in - after - SLIDE
        for k, first in enumerate(np.linspace(0, last, number).astype(int).tolist()):
            onset = lead_in + k % SLIDE  # slides do not know where an incident begins
            calm = scene.rows.slice(first, onset + after)
            table = replanted(calm, onset, scene.truth.factor)
            signals = replay(table, candidates, scene.window, SLIDE, onset)
            facts: Row = {"rivals": rivals, "onset": first + onset}
            for name in SIGNALS:
                for rule in RULES:
                    held = leads(signals.by_name[name], rule, calms[name])
                    led = led_from(held, signals.tuples)
                    rows.append({**facts, "signal": name, "rule": rule.label, "led_after": led})
            bench.said((k + 1) / number / 2 + (rivals == "parents") / 2)
    return {"rq6_onsets": rows}
