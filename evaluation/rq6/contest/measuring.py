"""What an attribution of one window costs and how far off it is: IDS and stateless estimators."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from time import perf_counter

import numpy as np

from evaluation.baselines.coalitions import Aggregate, Floats, GroupGame
from evaluation.baselines.kernelshap import kernelshap
from evaluation.baselines.peers import shap_kernel, shapiq_kernel, shapiq_permutation
from evaluation.baselines.permutation import compiled, estimate, vectorised
from evaluation.bench import Bench
from evaluation.repeated import Repeated, in_turns
from evaluation.rq6.contest.methods import Method, methods
from evaluation.rq6.contest.stage import AGGREGATES, Stage
from evaluation.size import Size
from evaluation.step import Findings, Row, Step

__all__ = ["IDS", "relative_error", "steps"]

IDS = "IDS (closed form)"


def steps(size: Size) -> list[Step]:
    """The cost table at each window, how permutations converge, and the libraries on tuples."""
    windows = size.of(
        quick=((200, 3.0), (1_000, 2.0)), full=((1_000, 4.0), (10_000, 12.0), (20_000, 32.0))
    )
    converging = size.of(quick=((1_000, 0.5),), full=((1_000, 8.0), (10_000, 28.0)))
    players = size.of(quick=((64, 1.5),), full=((64, 2.0), (256, 3.0), (512, 8.0)))
    kinds = (
        ("cost", "IDS and estimators at N = {:,}", _cost, windows),
        ("converge", "permutations at N = {:,}", _converge, converging),
        ("peers", "shap and shapiq on {:,} tuples", _peers, players),
    )
    return [
        Step(f"rq6-{kind}-{n}", does.format(n), seconds, partial(work, n), ("synthetic",))
        for kind, does, work, sizes in kinds
        for n, seconds in sizes
    ]


def relative_error(found: Floats, exact: Floats) -> float:
    """Σ |estimate − estimand| / Σ |estimand|, over predicates, and the mean over seeds.

    A mean of each predicate's own ratio would say more of the one whose attribution happens to lie
    near 0 than of the method.
    """
    return float(np.mean(np.abs(found - exact)) / np.mean(np.abs(exact)))


def _cost(n: int, bench: Bench) -> Findings:
    stage = Stage(bench, n)
    costs: list[Row] = []
    worths: list[Row] = []
    for done, aggregate in enumerate(AGGREGATES):
        estimands = stage.estimands(aggregate)
        worths += [
            {"n": n, "aggregate": aggregate, "predicate": name}
            | {kind: values[name] for kind, values in estimands.items()}
            for name in stage.masks
        ]
        costs += _contest(stage, aggregate, estimands, bench, done / len(AGGREGATES))
    return {"rq6_cost": costs, "rq6_estimands": worths}


def _contest(
    stage: Stage,
    aggregate: Aggregate,
    estimands: dict[str, dict[str, float]],
    bench: Bench,
    begun: float,
) -> list[Row]:
    """One predicate is answered on the clock; errors are those of all predicates, off it."""
    contenders = methods(stage, aggregate)
    names = list(stage.masks)
    works = {f"{m.estimand}: {m.label}": _reseeded(partial(_one, m)) for m in contenders}
    ours, spent = _beside_ids(stage, aggregate, works, bench.size.repetitions)
    bench.said(begun + 0.3)
    facts: Row = {"n": stage.n, "aggregate": aggregate}
    rows: list[Row] = [{**facts, **_ours(ours)}]
    for method in contenders:
        exact = np.array([estimands[method.estimand][name] for name in names])
        found = np.array([method.answer(s, names) for s in range(bench.size.repetitions)])
        seconds = spent[f"{method.estimand}: {method.label}"]
        rows.append(
            {
                **facts,
                "method": method.label,
                "estimand": method.estimand,
                "budget": method.budget,
                "seconds": seconds,
                "vs_ids": seconds.over(ours),
                "error": relative_error(found, exact),
            }
        )
    return rows


def _ours(seconds: Repeated) -> Row:
    """The row of IDS: its estimand is what it computes, so it has no error of its own to tell."""
    return {
        "method": IDS,
        "estimand": "tuples",
        "budget": None,
        "seconds": seconds,
        "vs_ids": seconds.over(seconds),
        "error": None,
    }


def _beside_ids(
    stage: Stage,
    aggregate: Aggregate,
    works: dict[str, Callable[[], object]],
    repetitions: int,
) -> tuple[Repeated, dict[str, Repeated]]:
    """Latencies in turns; a turn of IDS is many questions, of which the median counts."""
    asked: list[float] = []
    spent = in_turns({IDS: lambda: asked.append(stage.ask(aggregate))} | works, repetitions)
    return Repeated.of(asked[1:]), spent  # the first was the warm-up


def _one(method: Method, seed: int) -> object:
    return method.answer(seed, ("planted",))


def _reseeded(work: Callable[[int], object]) -> Callable[[], object]:
    """Another seed at every call: a repetition draws anew."""
    seeds = count()
    return lambda: work(next(seeds))


def _converge(n: int, bench: Bench) -> Findings:
    stage = Stage(bench, n)
    names = list(stage.masks)
    rungs = bench.size.of(quick=(50, 200, 800, 3_200), full=(50, 200, 800, 3_200, 12_800, 51_200))
    rungs = tuple(rung for rung in rungs if n * rung <= 130_000_000)
    rows: list[Row] = []
    for aggregate in AGGREGATES:
        exact = np.array([stage.estimands(aggregate)["tuples"][name] for name in names])
        estimate(aggregate, stage.y[:10], 1, np.random.default_rng(0), compiled)  # compiles
        for rung in rungs:
            found, spent = [], []
            for seed in range(bench.size.repetitions):
                rng = np.random.default_rng(seed)
                start = perf_counter()
                phi = estimate(aggregate, stage.y, rung, rng, compiled)
                spent.append(perf_counter() - start)
                found.append([phi[stage.masks[name]].sum() for name in names])
            rows.append(
                {
                    "n": n,
                    "aggregate": aggregate,
                    "permutations": rung,
                    "error": relative_error(np.array(found), exact),
                    "seconds": Repeated.of(spent),
                }
            )
    return {"rq6_converge": rows}


def _peers(n: int, bench: Bench) -> Findings:
    """Each row a player: the one game in which the libraries and IDS are after the same numbers."""
    stage = Stage(bench, n)
    names = list(stage.masks)
    exact = np.array([stage.estimands("AVG")["tuples"][name] for name in names])
    budget = 2 * n + 2_048  # what shap takes when it is not told
    game = GroupGame.of_tuples("AVG", stage.y)
    solvers: dict[str, Callable[[int], Floats]] = {
        "permutation MC, NumPy": lambda seed: estimate(
            "AVG", stage.y, max(1, budget // n), np.random.default_rng(seed), vectorised
        ),
        "KernelSHAP, paired": lambda seed: kernelshap(
            game, budget, np.random.default_rng(seed), paired=True
        ),
        "shap KernelExplainer": lambda seed: shap_kernel(game, budget, seed),
        "shapiq KernelSHAP": lambda seed: shapiq_kernel(game, budget, seed),
        "shapiq PermutationSamplingSV": lambda seed: shapiq_permutation(game, budget, seed),
    }
    found: dict[str, list[list[float]]] = {label: [] for label in solvers}

    def answer(label: str, seed: int) -> None:
        phi = solvers[label](seed)
        found[label].append([phi[stage.masks[name]].sum() for name in names])

    works = {label: _reseeded(partial(answer, label)) for label in solvers}
    ours, spent = _beside_ids(stage, "AVG", works, bench.size.repetitions)
    facts: Row = {"n": n, "aggregate": "AVG"}
    rows: list[Row] = [{**facts, **_ours(ours)}]
    for label, seconds in spent.items():
        if label != IDS:
            scores: Row = {
                "seconds": seconds,
                "vs_ids": seconds.over(ours),
                "error": relative_error(np.array(found[label]), exact),
            }
            named: Row = {"method": label, "estimand": "tuples", "budget": budget}
            rows.append({**facts, **named, **scores})
    return {"rq6_peers": rows}
