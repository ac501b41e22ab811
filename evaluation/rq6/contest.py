"""What an attribution of one window costs and how far off it is: IDS and stateless estimators."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import count
from time import perf_counter
from typing import NamedTuple

import numpy as np

import ids
from evaluation.baselines import estimators
from evaluation.baselines.estimators import Aggregate, Floats, GroupGame
from evaluation.bench import Bench, registered
from evaluation.rq6.incident import RIVALS, Candidate
from evaluation.step import REGIONS, SUBJECTS, Findings, Repeated, Row, in_a_row, in_turns
from ids.demo.events import incident_rows

_IDS = "IDS (closed form)"
_AGGREGATES: tuple[Aggregate, ...] = ("AVG", "VAR_POP")
_PREDICATES = RIVALS["siblings"]
_ASKED = 201  # questions of which the median is one repetition's latency

Solve = Callable[[GroupGame, int, int], Floats]
"""(game, budget, seed) to the players' values; a budget is of permutations, or of coalitions."""


class Method(NamedTuple):
    """A way to an attribution."""

    label: str
    estimand: str  # who plays: "tuples" (as for IDS), "two" groups or "atoms"
    budget: int
    solve: Solve


_WALKS: dict[str, Solve] = {
    "plain Python": partial(estimators.permutation, walk=estimators.plain),
    "NumPy": partial(estimators.permutation, walk=estimators.vectorised),
    "compiled": partial(estimators.permutation, walk=estimators.compiled),
}
_PAIRED: dict[str, Solve] = {
    "KernelSHAP, paired": partial(estimators.kernelshap, paired=True),
    "shap KernelExplainer": estimators.shap_kernel,
    "shapiq KernelSHAP": estimators.shapiq_kernel,
}
_KERNELS: dict[str, Solve] = {"KernelSHAP": estimators.kernelshap, **_PAIRED}
_CONTENDERS = (  # the paper's, with its budgets, and the libraries'
    *(Method(f"permutation MC, {how}", "tuples", 200, solve) for how, solve in _WALKS.items()),
    *(Method(label, "two", 100, solve) for label, solve in _KERNELS.items()),
    Method("shapiq ExactComputer", "two", 4, estimators.shapiq_exact),
    *(Method(label, "atoms", 100, solve) for label, solve in _KERNELS.items()),
)


class Stage:
    """The ``n`` rows before the onset as every contender finds them, and what IDS says of them."""

    def __init__(self, bench: Bench, n: int, aggregate: Aggregate) -> None:
        subject = SUBJECTS["synthetic"]
        self.facts: Row = {"n": n, "aggregate": aggregate}
        self.aggregate, self.repetitions = aggregate, bench.size.repetitions
        stream = bench.events(subject)
        self.rows = stream.slice(incident_rows(stream.num_rows)[0] - n, n)
        self.y: Floats = self.rows[subject.value].to_numpy()
        self.masks = [predicate.mask(self.rows) for predicate in _PREDICATES]
        region = [Candidate("", (("region", name),)).mask(self.rows) for name in REGIONS]
        premium = Candidate("", (("tier", "premium"),)).mask(self.rows)
        self.atom = 4 * np.argmax(region, axis=0) + 2 * premium + self.masks[-1]  # of each row
        self._atoms = [np.unique(self.atom[mask]) for mask in self.masks]  # of each predicate
        self.tuples = GroupGame(aggregate, self.y)
        made = ids.Engine(window=ids.CountWindow(n), value=subject.value)
        self._engine = registered(made, {one.name: one.condition for one in _PREDICATES})
        self._engine.ingest(self.rows)
        self.exact = [self._engine.attribute(aggregate, one.name).value for one in _PREDICATES]

    def ask(self) -> float:
        """Seconds of a question to the engine, the median of many; each follows a slide."""
        asked = partial(self._engine.attribute, self.aggregate, _PREDICATES[0].name)
        slide = partial(self._engine.ingest, self.rows.slice(0, 1))
        return in_a_row(asked, _ASKED, slide).median

    def answer(self, method: Method, seed: int, first: int = len(_PREDICATES)) -> list[float]:
        """What a method gives the ``first`` predicates."""
        _, estimand, budget, solve = method
        if estimand == "two":  # a game for each predicate: its rows, and the others
            groups = [(~mask).astype(np.intp) for mask in self.masks[:first]]
            games = [GroupGame(self.aggregate, self.y, group, 2) for group in groups]
            return [float(solve(game, budget, seed)[0]) for game in games]
        game, members = self.tuples, self.masks
        if estimand == "atoms":
            game = GroupGame(self.aggregate, self.y, self.atom, 4 * len(REGIONS))
            members = self._atoms
        phi = solve(game, budget, seed)
        return [float(phi[of].sum()) for of in members[:first]]

    @cached_property
    def estimands(self) -> dict[str, list[float]]:
        """What each kind of method is after, predicate by predicate; all exact."""
        counted = [Method("", who, 0, lambda game, *_: game.shapley()) for who in ("two", "atoms")]
        two, atoms = (self.answer(method, 0) for method in counted)
        return {"tuples": self.exact, "two": two, "atoms": atoms}


def relative_error(found: Sequence[Sequence[float]], exact: Sequence[float]) -> float:
    """Σ |estimate − estimand| / Σ |estimand|, over predicates, and the mean over seeds."""
    return float(np.mean(np.abs(np.subtract(found, exact))) / np.mean(np.abs(exact)))


def cost(n: int, bench: Bench) -> Findings:
    """Every estimator beside IDS, and what each is after."""
    costs: list[Row] = []
    worths: list[Row] = []
    for done, aggregate in enumerate(_AGGREGATES):
        stage = Stage(bench, n, aggregate)
        for k, one in enumerate(_PREDICATES):
            values = {kind: by_predicate[k] for kind, by_predicate in stage.estimands.items()}
            worths.append({**stage.facts, "predicate": one.name, **values})
        costs += _contest(stage, _CONTENDERS)
        bench.said((done + 1) / len(_AGGREGATES))
    return {"rq6_cost": costs, "rq6_estimands": worths}


def peers(n: int, bench: Bench) -> Findings:
    """Each row a player: the one game in which the libraries and IDS are after the same numbers."""
    stage = Stage(bench, n, "AVG")
    budget = 2 * n + 2_048  # what shap takes when it is not told
    solvers: dict[str, Solve] = {
        "permutation MC, NumPy": lambda game, asked, seed: _WALKS["NumPy"](game, asked // n, seed),
        **_PAIRED,
        "shapiq PermutationSamplingSV": estimators.shapiq_permutation,
    }
    methods = [Method(label, "tuples", budget, solve) for label, solve in solvers.items()]
    return {"rq6_peers": _contest(stage, methods)}


def _contest(stage: Stage, methods: Sequence[Method]) -> list[Row]:
    """One predicate is answered on the clock, in turns with IDS; errors are of all, off it."""

    def timed(method: Method) -> Callable[[], object]:
        seeds = count()  # a repetition draws anew
        return lambda: stage.answer(method, next(seeds), 1)

    asked: list[float] = []  # a turn of IDS is many questions, of which the median counts
    works = {f"{method.estimand}: {method.label}": timed(method) for method in methods}
    spent = in_turns({_IDS: lambda: asked.append(stage.ask()), **works}, stage.repetitions)
    ours = Repeated.of(asked[1:])  # the first was the warm-up
    times = [ours, *(spent[name] for name in works)]
    errors: list[float | None] = [None]
    for method in methods:
        found = [stage.answer(method, seed) for seed in range(stage.repetitions)]
        errors.append(relative_error(found, stage.estimands[method.estimand]))
    about = [(_IDS, "tuples", None), *(method[:3] for method in methods)]
    return [
        {**stage.facts, "method": label, "estimand": estimand, "budget": budget,
         "seconds": seconds, "vs_ids": seconds.over(ours), "error": error}
        for (label, estimand, budget), seconds, error in zip(about, times, errors, strict=True)
    ]  # fmt: skip


def converge(n: int, bench: Bench) -> Findings:
    """More and more permutations, compiled."""
    rungs = bench.size.of(quick=(50, 200, 800, 3_200), full=(50, 200, 800, 3_200, 12_800, 51_200))
    rows: list[Row] = []
    for aggregate in _AGGREGATES:
        stage = Stage(bench, n, aggregate)
        _WALKS["compiled"](stage.tuples, 1, 0)  # compiles
        for rung in (rung for rung in rungs if n * rung <= 130_000_000):
            method = Method("", "tuples", rung, _WALKS["compiled"])
            found, spent = [], []
            for seed in range(stage.repetitions):
                start = perf_counter()
                found.append(stage.answer(method, seed))
                spent.append(perf_counter() - start)
            about: Row = {"permutations": rung, "error": relative_error(found, stage.exact)}
            rows.append({**stage.facts, **about, "seconds": Repeated.of(spent)})
    return {"rq6_converge": rows}
