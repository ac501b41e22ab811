"""RQ1, correctness: the engine beside enumeration, recomputation and exact arithmetic."""

from functools import partial

from evaluation.rq1.drift import STREAMS, drifted
from evaluation.rq1.enumeration import enumerated
from evaluation.rq1.replay import emits, slides
from evaluation.step import SUBJECTS, Chapter, Size, Step


def _steps(size: Size) -> list[Step]:
    every = "every coalition of windows up to N = 12"
    steps = [Step("rq1-enumeration", every, size.of(quick=15.0, full=70.0), enumerated)]
    for part, does, about, work in (
        ("slides", "deltas against recomputation", size.of(quick=3.0, full=14.0), slides),
        ("emits", "an emit at every slide", size.of(quick=0.8, full=10.0), emits),
    ):
        for name, subject in SUBJECTS.items():
            replay = partial(work, subject=subject)
            steps.append(Step(f"rq1-{part}-{name}", f"{does}, {name}", about, replay, (name,)))
    does, about = "running sums over a long stream", size.of(quick=0.3, full=5.0)
    for stream in STREAMS:
        along = partial(drifted, stream=stream)
        steps.append(Step(f"rq1-drift-{stream}", f"{does}, {stream}", about, along))
    return steps


CHAPTER = Chapter("rq1", _steps)
