"""RQ4, sampling: how far off an estimate is, whether its bound holds, and what a sample costs."""

from functools import partial

from evaluation.rq4.samplers import held, ingest, own
from evaluation.rq4.trials import WAYS, errors, strata
from evaluation.step import Chapter, Size, Step

SIZES = (64, 256, 1_024, 2_048, 4_096)  # r, while a window slides


def _steps(size: Size) -> list[Step]:
    n = size.of(quick=20_000, full=100_000)  # where rows come and go
    windows = size.of(quick=(10_000, 20_000), full=(10_000, 100_000, 1_000_000))
    step = partial(Step, needs=("real",))
    return [
        *(step(f"rq4-error-{name}", f"samples: {way.label}",
               size.of(quick=1.5, full=20.0) * (1 + way.control_variate),
               partial(errors, name=name))
          for name, way in WAYS.items()),
        step("rq4-strata", "strata beside a uniform sample", size.of(quick=0.5, full=6.0),
             partial(strata, times=size.of(quick=400, full=4_000))),
        step("rq4-engine", "the engine's own samples, by many seeds",
             size.of(quick=2.0, full=20.0), partial(own, n=n, times=size.of(quick=60, full=200))),
        step("rq4-bytes", "what samples of several sizes hold", size.of(quick=1.0, full=10.0),
             partial(held, windows=windows, sizes=SIZES)),
        *(step(f"rq4-ingest-{r}", f"ingest while r = {r:,} rows are sampled",
               size.of(quick=0.5 + r / 2_000, full=2.0 + r / 300), partial(ingest, n=n, r=r))
          for r in SIZES),
    ]  # fmt: skip


CHAPTER = Chapter("rq4", _steps)
