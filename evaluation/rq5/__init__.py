"""RQ5: what adaptive promotion saves, what it costs, and what a provisional start misses."""

from functools import partial

from evaluation.rq5.promotion import costs, provisional, trace
from evaluation.step import Chapter, Size, Step


def _steps(size: Size) -> list[Step]:
    """One for each skew, so that a run that was stopped has at most one trace to ask again."""
    window, questions = size.of(quick=(20_000, 400), full=(50_000, 1_600))  # full: the paper's
    windows = size.of(quick=(5_000, 50_000), full=(5_000, 50_000, 500_000))
    inside, slides = size.of(quick=(10_000, 100), full=(50_000, 400))
    seconds, few = size.of(quick=(8.0, 1.0), full=(32.0, 3.0))
    step = partial(Step, needs=("real",))
    return [
        *(step(f"rq5-trace-{alpha}", f"asks {questions:,} questions, Zipf {alpha}", seconds,
               partial(trace, alpha=alpha, window=window, questions=questions))
          for alpha in (1, 2)),
        step("rq5-costs", "promotes and demotes", few, partial(costs, windows=windows)),
        step("rq5-provisional", "follows a provisional error", few,
             partial(provisional, window=inside, slides=slides)),
    ]  # fmt: skip


CHAPTER = Chapter("rq5", _steps)
