"""RQ6: stateless Shapley estimators beside IDS, a planted incident, and ad hoc mechanisms."""

from functools import partial

from evaluation.rq6.contest import converge, cost, peers
from evaluation.rq6.incident import case, leads, onsets
from evaluation.rq6.mechanisms import errors, maintenance, questions
from evaluation.step import Chapter, Size, Step

_STEPS = (  # name, what it does, seconds of a quick run and a full one (None: not in it), work
    ("cost-200", "IDS and estimators at N = 200", 3.0, None, partial(cost, 200)),
    ("cost-1000", "IDS and estimators at N = 1,000", 2.0, 4.0, partial(cost, 1_000)),
    ("cost-10000", "IDS and estimators at N = 10,000", None, 14.0, partial(cost, 10_000)),
    ("cost-20000", "IDS and estimators at N = 20,000", None, 34.0, partial(cost, 20_000)),
    ("converge-1000", "permutations at N = 1,000", 0.5, 8.0, partial(converge, 1_000)),
    ("converge-10000", "permutations at N = 10,000", None, 28.0, partial(converge, 10_000)),
    ("peers-64", "shap and shapiq on 64 tuples", 2.0, 3.0, partial(peers, 64)),
    ("peers-256", "shap and shapiq on 256 tuples", None, 5.0, partial(peers, 256)),
    ("peers-512", "shap and shapiq on 512 tuples", None, 14.0, partial(peers, 512)),
    ("case", "the planted incident", 0.1, 0.6, case),
    ("leads-siblings", "who leads, and when, among siblings", 0.1, 0.6, partial(leads, "siblings")),
    ("leads-parents", "who leads, and when, among parents", 0.1, 0.6, partial(leads, "parents")),
    ("onsets", "the same incident elsewhere", 0.1, 0.6, onsets),
    ("mechanisms-questions", "asks by every mechanism", 2.0, 11.0, questions),
    ("mechanisms-maintenance", "slides with every mechanism", 1.0, 3.0, maintenance),
    ("mechanisms-errors", "draws samples again and again", 1.0, 5.0, errors),
)


def _steps(size: Size) -> list[Step]:
    found = []
    for name, does, quick, full, work in _STEPS:
        needs = ("real",) if name.startswith("mechanisms") else ("synthetic",)
        if (seconds := size.of(quick=quick, full=full)) is not None:
            found.append(Step(f"rq6-{name}", does, seconds, work, needs))
    return found


CHAPTER = Chapter("rq6", _steps)
