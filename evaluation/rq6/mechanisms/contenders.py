"""An engine for each mechanism: it keeps what the mechanism needs, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import ids
from evaluation.engines import registered
from evaluation.rq6.mechanisms.choosing import Case
from evaluation.subject import Subject

__all__ = ["BESIDE", "EXACT", "MECHANISMS", "SAMPLE", "engine"]

SAMPLE = 2_000  # r, which the paper leaves open; over all strata together where there are strata
BESIDE = {
    "brute force scan": "nothing",
    "index assisted": "brute force scan",
    "uniform sample": "nothing",
    "stratified sample": "nothing",
    "compositional": "nothing",
    "registered": "nothing",
}
"""Each mechanism, and the engine that has all it has but the mechanism's own state."""
MECHANISMS = tuple(BESIDE)
EXACT = tuple(name for name in MECHANISMS if "sample" not in name)


def engine(
    mechanism: str, subject: Subject, window: int, asked: Sequence[Case], strata: int, seed: int = 0
) -> ids.Engine:
    """An empty engine that answers by one mechanism alone; ``nothing`` answers by none."""
    count = ids.CountWindow(window)
    match mechanism:
        case "brute force scan":
            return ids.Engine(count, subject.value)
        case "index assisted":
            return ids.Engine(count, subject.value, index=subject.attributes)
        case "uniform sample":
            sampling = ids.Sampling(SAMPLE, seed=seed)
        case "stratified sample":
            each = max(1, SAMPLE // strata)
            sampling = ids.Sampling(each, strata=subject.attributes[0], seed=seed)
        case _:
            made = ids.Engine(count, subject.value, retain=False)
            return registered(made, _conditions(mechanism, asked))
    return ids.Engine(count, subject.value, retain=False, sampling=sampling)


def _conditions(mechanism: str, asked: Sequence[Case]) -> dict[str, str]:
    """The conditions themselves; or for compositional their parts, a lone part by its negation."""
    if mechanism == "registered":
        return {f"asked_{case.label}": case.condition for case in asked}
    if mechanism == "nothing":
        return {}
    alone = {case.parts[0] for case in asked if len(case.parts) == 1}
    several = {part for case in asked if len(case.parts) > 1 for part in case.parts} - alone
    known = [*(f"NOT {part}" for part in sorted(alone)), *sorted(several)]
    return {f"known_{number}": condition for number, condition in enumerate(known)}
