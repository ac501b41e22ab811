"""The case study's tables and sentences: how soon the planted predicate leads."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any, Literal

from evaluation.chapter import Comparison, Section, Table, Tables
from evaluation.formatting import number
from evaluation.rq6 import paper
from evaluation.rq6.incident.leading import RULES
from evaluation.rq6.incident.measuring import BEFORE, SLIDE
from evaluation.rq6.incident.replay import SIGNALS

__all__ = ["show"]

_PLAIN, _STRICT = RULES[0].label, RULES[-1].label
_SIBLINGS = "siblings"
_LIFT, _DELTA = SIGNALS
_LEADS = "leads before the onset"


def show(tables: Tables) -> Section:
    """What the case study's tables say, as far as they are filled."""
    return Section(
        list(_remarks(tables)),
        list(_comparisons(tables)),
        [table for table in (_leads(tables), _elsewhere(tables)) if table.rows],
    )


def _lead(tables: Tables, signal: str, rule: str, rivals: str = _SIBLINGS) -> dict[str, Any]:
    found = tables.where("rq6_leads", rivals=rivals, slide=SLIDE, signal=signal, rule=rule)
    return found[0] if found else {}


def _remarks(tables: Tables) -> Iterator[str]:
    if tables.filled(["rq6_case_facts"]) and _lead(tables, _DELTA, _PLAIN):
        facts = tables["rq6_case_facts"][0]
        yield (
            f"In the window of {facts['window']:,} rows, ΔΦ of the variance ranks "
            f"{facts['planted']} first for three emits in a row "
            f"{_tuples(_lead(tables, _DELTA, _PLAIN))} after the onset, and the lift of AVG "
            f"{_tuples(_lead(tables, _LIFT, _PLAIN))} (among its parents, which rise with it: "
            f"{_tuples(_lead(tables, _DELTA, _PLAIN, 'parents'))} and "
            f"{_tuples(_lead(tables, _LIFT, _PLAIN, 'parents'))})."
        )
        yield _before(tables)
    if tables.filled(["rq6_onsets"]):
        delta, lift = (_delays(tables, _SIBLINGS, signal, _PLAIN) for signal in (_DELTA, _LIFT))
        sooner = sum(_sooner(a, b) for a, b in zip(delta, lift, strict=True))
        yield (
            f"One onset is one draw, so the incident was planted anew at {len(delta)} other "
            f"places: there ΔΦ leads after {_spread(delta)} tuples, the median (least to most), "
            f"and the lift after {_spread(lift)}; ΔΦ is the sooner of the two at {sooner} of the "
            f"places. The paper's {paper.CASE[_LIFT]:,} tuples for the lift may come of its "
            "decoys, which it does not name."
        )


def _sooner(delay: int | None, other: int | None) -> bool:
    return delay is not None and (other is None or delay < other)


def _before(tables: Tables) -> str:
    plain, strict = (_lead(tables, _LIFT, rule) for rule in (_PLAIN, _STRICT))
    delta = _lead(tables, _DELTA, _PLAIN)
    return (
        "Being first means little before anything has happened, for one of four always is: over "
        f"{plain['before']} emits before the onset the lift has a decoy first for three emits or "
        f"more at {plain['decoy_led']} of them, and the planted predicate, by chance, at "
        f"{plain['planted_led']}; ΔΦ at {delta['decoy_led']} and {delta['planted_led']}. Where a "
        "lead must also stand three standard deviations above the candidate's own calm, the lift "
        f"has {strict['decoy_led'] + strict['planted_led']} of them before the onset, and leads "
        f"{_tuples(strict)} after it; ΔΦ {_tuples(_lead(tables, _DELTA, _STRICT))}."
    )


def _tuples(row: dict[str, Any]) -> str:
    led = row.get("led_after")
    return "at no time" if led is None else f"{led:,} tuples"


def _comparisons(tables: Tables) -> Iterator[Comparison]:
    if not tables.filled(["rq6_leads"]):
        return
    yield from _by_rule(tables, _PLAIN, (_DELTA, _LEADS), "")
    yield from _by_rule(tables, _STRICT, (_LIFT,), " (ours must be 3 σ above its calm, too)")


def _by_rule(tables: Tables, rule: str, judged: tuple[str, ...], said: str) -> Iterator[Comparison]:
    """Delays and leads before the onset, by one rule: they belong together.

    By the plain rule the lift leads before the onset, too, so that its delay is chance: it is
    judged by the strict one alone, and everything else by the plain one, which is the paper's.
    """
    better: dict[bool, Literal["lower", "neither"]] = {True: "lower", False: "neither"}
    for signal, printed in paper.CASE.items():
        yield Comparison(
            f"tuples until {signal} ranks the planted predicate first for three emits{said}",
            "",
            printed,
            _lead(tables, signal, rule).get("led_after"),
            better[signal in judged],
            f"{paper.TEXT}, Figure 5",
            "one onset of another stream is one draw, in steps of a slide; the table of other "
            "onsets has the spread",
        )
    lift = _lead(tables, _LIFT, rule)
    yield Comparison(
        f"emits of {BEFORE} before the onset at which the lift has led for three{said}",
        "",
        paper.WRONG_LEADS,
        lift["decoy_led"] + lift["planted_led"] if lift else None,
        better[_LEADS in judged],
        paper.TEXT,
        "one of four is always first, so that one often leads for three emits by chance; the paper "
        "does not say what it counts as a lead before the onset",
    )


def _leads(tables: Tables) -> Table:
    by_case: dict[tuple[str, int, str], dict[str, dict[str, Any]]] = {}
    for row in tables["rq6_leads"]:
        case = (row["rivals"], row["slide"], row["signal"])
        by_case.setdefault(case, {})[row["rule"]] = row
    order = sorted(by_case, key=lambda case: (case[0] != _SIBLINGS, case[1]))
    rows = []
    for case in order:
        cells = [case[0], str(case[1]), case[2]]
        for rule in RULES:
            row = by_case[case][rule.label]
            cells += [number(row["led_after"]), f"{row['decoy_led']} + {row['planted_led']}"]
        rows.append(cells)
    return Table(
        "Who leads, and when: slides, rivals and rules",
        [
            "rivals", "rows a slide", "signal",
            *(text for rule in RULES for text in (f"{rule.label}: after", "before")),
        ],
        rows,
        "After: tuples from the onset until the planted predicate has led for three emits. Before: "
        f"at how many of the {BEFORE} emits up to the onset a decoy + the planted predicate had "
        "led for three. Siblings: US-East ∧ premium, EU-West ∧ basic, /checkout. Parents: EU-West, "
        "premium, /checkout. The largest signed signal is first; calm is the ten windows of rows "
        "before those emits. The paper does not state its slide. Its two distances, 79 and 9,399 "
        "tuples, are 9,320 apart, which its slide must divide; 20 is our choice.",
    )  # fmt: skip


def _delays(tables: Tables, rivals: str, signal: str, rule: str) -> list[int | None]:
    """Tuples until the lead at each onset; None where there was none."""
    mine = tables.where("rq6_onsets", rivals=rivals, signal=signal, rule=rule)
    return [row["led_after"] for row in mine]


def _spread(delays: list[int | None]) -> str:
    """The median, the least and the most; how many never led, if any."""
    led = [delay for delay in delays if delay is not None]
    if not led:
        return "never"
    missed = f", {len(delays) - len(led)} never" if len(led) < len(delays) else ""
    return f"{number(median(led))} ({min(led):,} to {max(led):,}{missed})"


def _elsewhere(tables: Tables) -> Table:
    cases = dict.fromkeys((row["rivals"], row["signal"]) for row in tables["rq6_onsets"])
    rows = [
        [*case, *(_spread(_delays(tables, *case, rule.label)) for rule in RULES)] for case in cases
    ]
    return Table(
        "The same incident, planted anew at other places",
        ["rivals", "signal", *(rule.label for rule in RULES)],
        rows,
        "Tuples until the planted predicate has led for three emits: the median over the places "
        "(least to most). Calm rows, with latencies of the planted predicate multiplied as in the "
        f"real incident; {SLIDE} rows a slide, at another offset to the onset each time; half a "
        "window long.",
    )
