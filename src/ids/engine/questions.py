"""Plans and answers the queries to a live engine, which the code calls questions.

A query asks for the attribution of an aggregate to a predicate. Its plan is cached, and the answer
is computed from the cheapest state that is sufficient:

a registered predicate     its sums
a combination of names     the sums of the atoms on which the combination holds
a provisional predicate    its sums, which started as an estimate
any other condition        the rows: found exactly by the index or by a scan, or a random sample

Each way to answer a query is a *mechanism*; its *offer* states how many rows it reads and its cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ids.engine.core import Core
from ids.engine.settings import Settings
from ids.errors import DataError, ScriptError, StateError, UnknownNameError, in_script
from ids.games import GAMES, Drawn, Estimates, Game, Parts, Whole, estimate, find
from ids.kernels import LANES, tally_places
from ids.language import parse_aggregate, parse_predicate
from ids.model import (
    And,
    Approximate,
    Attribution,
    BoundedCache,
    CountWindow,
    Expression,
    IsTrue,
    Name,
    Not,
    Or,
    Sampling,
    Table,
    columns_of,
    render,
)
from ids.plan import (
    Offer,
    Path,
    Question,
    choose,
    choose_offer,
    index_offer,
    named_in,
    names_by_key,
    over_names,
    rows_path,
    sample_offer,
    scan_offer,
)
from ids.predicates import bind_measure, bind_predicate, holds, kleene, refuse_constant_tests
from ids.state import Access, Drawing, Enumerated, Refined, WindowSample, moments_of

Words = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# The text of the aggregate, the text of the predicate, and the requested sample, if any.
Wording = tuple[str, str, Approximate | None]

_MOST = 4096  # the largest number of plans, of answers and of parsed conditions in a cache
_FEW = 1 / 64  # if the index finds less than this fraction of the rows, no scan is considered
_ROUNDED = "values are too far apart in magnitude for the sums, so the rows are summed"


class Questions:
    """Plans and answers queries, and caches the plans and answers.

    A plan is valid until the predicates change, and an answer until the next slide.
    """

    def __init__(
        self, values: Mapping[str, Expression], intersections: Mapping[str, Expression],
        settings: Settings,
    ) -> None:  # fmt: skip
        self._values = values
        self._intersections = intersections
        self._settings = settings
        self._names: dict[str, Expression] | None = None  # registered predicates by key
        self._parse = lru_cache(maxsize=_MOST)(parse_predicate)
        self._plans = BoundedCache[Wording, Question](_MOST)
        self._answers: dict[Wording, Attribution] = {}  # plain: every answer after a slide is added
        self._slide = 0  # the slide after which the cached answers were computed

    def forget_answers(self) -> None:
        """Clear the cached answers but keep the plans, as after every slide."""
        self._answers.clear()

    def refined(self) -> None:
        """Clear cached plans and answers, because the predicates have changed."""
        self._names = None
        self._plans.clear()
        self._answers.clear()

    def attribute(self, core: Core | None, asked: Wording) -> Attribution:
        """Return the current attribution, from the cache if it is still valid."""
        if core is None:
            return self._answer(core, asked)
        if self._slide != core.slides:
            self._slide = core.slides
            self.forget_answers()
        known = self._answers.get(asked)
        if known is None:
            if len(self._answers) >= _MOST:
                self.forget_answers()
            known = self._answers[asked] = self._answer(core, asked)
        return known

    def plan(self, core: Core | None, asked: Wording) -> Question:
        """Return the plan of a query, from the cache if it is there."""
        question = self._plans.get(asked)
        if question is None:
            with in_script(asked[1]):
                question = self._planned(core, *asked)
            if core is not None:
                self._plans[asked] = question
        return question

    def game(self, core: Core | None, aggregate: str) -> tuple[Game, int]:
        """Return the game that belongs to an aggregate, and the number of its measure."""
        parsed = parse_aggregate(aggregate, tuple(GAMES))
        game = find(parsed.function)
        if game.degree > self._settings.degree:
            raise StateError(
                f"{game.name} needs power sums up to {game.degree}, this engine keeps "
                f"{self._settings.degree}; create it with degree={game.degree}"
            )
        if parsed.argument is None:
            if game.degree == 0:
                return game, 0
            if len(self._values) != 1:
                known = ", ".join(f"{game.name}({v})" for v in self._values) or "no measure"
                raise ScriptError(f"{aggregate} needs a measure", hint=f"known: {known}")
            return game, 1
        measures, argument = list(self._values.values()), parsed.argument
        if core is not None:
            measures = list(core.schema.measures)
            with in_script(aggregate):
                argument = bind_measure(argument, core.schema.kinds)
        if argument not in measures:
            raise UnknownNameError("measure", render(parsed.argument), self._values)
        return game, 1 + measures.index(argument)

    def _planned(
        self, core: Core | None, aggregate: str, predicate: str, approximate: Approximate | None
    ) -> Question:
        """Plan a query; raise if the engine keeps no state that can answer it."""
        game, measure = self.game(core, aggregate)
        parsed = self._parse(predicate)
        if core is None:
            # the condition is bound later, when the first batch shows which columns there are
            refuse_constant_tests(parsed)
            mechanism = "marginal" if approximate is None else "sample"
            return Question(game, measure, Path(mechanism, "there are no rows yet"), approximate)
        if approximate is not None:
            # any condition can be evaluated on a sample, even one with provisional predicates
            known = {name: one.condition for name, one in core.provisional.items()}
            bound = bind_predicate(parsed, core.schema.kinds, {**core.predicates, **known})
            return Question(game, measure, Path("rows", "", None, bound), approximate)
        path = _provisional_named(parsed, core)
        if path is None:
            if self._names is None:
                self._names = names_by_key(core.predicates)
            path = choose(parsed, core.predicates, core.schema.kinds, self._names)
            if isinstance(core.membership, Enumerated) and path.mechanism == "compositional":
                path = self._enumerated(core, parsed, path)
            path = _provisional_meant(path, core)
        if path.mechanism == "rows" and not core.has_raw and core.sample is None:
            raise StateError(
                f"cannot answer {predicate!r} without retained rows; register it before the first "
                "batch, or create the engine with retain=True or sampling=ids.Sampling()"
            )
        return Question(game, measure, path)

    def _enumerated(self, core: Core, parsed: Expression, path: Path) -> Path:
        """Plan a combination after the atoms were abandoned.

        The query reads the sums of a kept intersection if it matches one, and the rows otherwise.
        """
        for text, expression in self._intersections.items():
            kept = text in core.membership.names
            if kept and over_names(expression, core.predicates) == path.condition:
                return Path("compositional", "it is a kept intersection", name=text)
        return rows_path(bind_predicate(parsed, core.schema.kinds, core.predicates))

    def _answer(self, core: Core | None, asked: Wording) -> Attribution:
        question = self.plan(core, asked)
        game, measure, path, _ = question
        if core is None or measure >= len(core.measures):
            return Attribution(0.0, 0.0, 0.0, path.mechanism, 0.0, 0, path.reason)
        if path.mechanism == "provisional":
            return core.provisional[str(path.name)].attribution(core, game, measure)
        if measure in core.rounded and asked[2] is None:
            bound = bind_predicate(self._parse(asked[1]), core.schema.kinds, core.predicates)
            found = core.answer_rounded(measure, game, bound)
            mechanism = "scan" if path.mechanism == "rows" else path.mechanism
            return Attribution(*found, mechanism, 0.0, core.rows, _ROUNDED, core.rows, core.rows)
        rows = self._rows_question(core, question)
        if rows is not None:
            return rows.answer()
        summaries = core.measures[measure]
        if path.name is not None:
            row = core.membership.names.index(path.name)
            found = summaries.answer(summaries.marginals, row, game)
        else:
            merged = summaries.merged(_atoms(core, path.condition)).reshape(1, -1)
            found = summaries.answer(merged, 0, game)
        return Attribution(*found, path.mechanism, 0.0, core.rows, path.reason)

    def offers(self, core: Core | None, question: Question) -> list[Offer]:
        """Return the available mechanisms' offers, or none if no rows need to be read."""
        rows = None if core is None else self._rows_question(core, question)
        return [] if rows is None else [each.offer for each in rows.mechanisms()]

    def _rows_question(self, core: Core, question: Question) -> _RowsQuestion | None:
        """Return a ``_RowsQuestion`` if rows must be read to answer the query, else None."""
        game, measure, path, approximate = question
        if path.mechanism != "rows" or path.condition is None:
            return None
        return _RowsQuestion(core, game, measure, path.condition, approximate, self._settings)

    def by_atoms(self, core: Core, aggregate: str, predicate: str) -> Attribution:
        """Return the sum of the attributions of the single atoms, as a cross-check."""
        game, measure = self.game(core, aggregate)
        chosen = _atoms(core, over_names(parse_predicate(predicate), core.predicates))
        found = core.measures[measure].answer_by_atoms(chosen, game)
        return Attribution(*found, "compositional", 0.0, core.rows)


def _atoms(core: Core, condition: Expression | None) -> Words:
    """Return the live atoms on which a condition over registered names holds."""
    if not isinstance(core.membership, Refined) or condition is None:
        raise StateError("the atoms were given up at atom_limit; raise the limit")
    return core.membership.holding(condition)


def _provisional_named(predicate: Expression, core: Core) -> Path | None:
    """Return the path if the query is the name of a provisional predicate, else None.

    Raise if it combines such a name with others, because a provisional predicate has no atoms yet.
    """
    provisional = {name.lower(): name for name in core.provisional}
    if isinstance(predicate, Name) and predicate.name.lower() in provisional:
        return Path("provisional", "", provisional[predicate.name.lower()])
    for name in named_in(predicate):
        if name.name.lower() in provisional:
            raise StateError(
                f"{name.name} is provisional and cannot be combined; call engine.rebuild() first"
            )
    return None


def _provisional_meant(path: Path, core: Core) -> Path:
    """Return the path of a provisional predicate with the same condition, else ``path``."""
    if path.mechanism == "rows":
        for name, one in core.provisional.items():
            if one.key == path.key:
                return Path("provisional", "", name)
    return path


class _Mechanism(NamedTuple):
    """A mechanism's offer, and a function that computes its answer."""

    offer: Offer
    answer: Callable[[], Attribution]


class _RowsQuestion(NamedTuple):
    """A query that can only be answered by reading rows; its condition is over columns."""

    core: Core
    game: Game
    measure: int
    condition: Expression
    approximate: Approximate | None
    settings: Settings

    def answer(self) -> Attribution:
        """Compute the answer with the cheapest mechanism."""
        access = None if self.approximate is not None else self._access()
        if access is not None and access.candidates < _FEW * self.core.rows:
            return self._by_index(access).answer()
        every = self.mechanisms(access, estimate=False)
        best = choose_offer([each.offer for each in every])
        return next(each for each in every if each.offer is best).answer()

    def mechanisms(
        self, access: Access | None = None, *, estimate: bool = True
    ) -> list[_Mechanism]:
        """Return the available mechanisms, exact ones first.

        If the query requests a sample, return only that. With ``estimate=False``, the kept sample
        is included only if there is no exact mechanism.
        """
        if self.approximate is not None:
            return [self._by_sample(self.approximate)]
        found = []
        if self.core.has_raw:
            access = access or self._access()
            found = [self._by_scan()]
            found += [] if access is None else [self._by_index(access)]
        if self.core.sample is not None and (estimate or not found):
            found.append(self._by_sample(Approximate(self.core.sample.sampling.size)))
        return found

    def _access(self) -> Access | None:
        index = self.core.index
        return None if index is None else index.access(self.condition, self.core.retained)

    def _by_index(self, access: Access) -> _Mechanism:
        """Return the mechanism that reads the rows found by the index."""
        offer = index_offer(self.core.rows, access.candidates)

        def found() -> Attribution:
            sums = self._sum_places(access.places(self.core.retained))
            return self._exact(offer, sums, access.candidates)

        return _Mechanism(offer, found)

    def _by_scan(self) -> _Mechanism:
        """Return the mechanism that evaluates the condition on every row.

        It sums either the rows on which the condition holds or the other rows, whichever are fewer,
        and subtracts the latter from the window. Sums are exact, so both results are identical.
        """
        offer = scan_offer(self.core.rows)

        def found() -> Attribution:
            table = self.core.retained.table(set(columns_of(self.condition)))
            held = holds(self.condition, table) if table.rows else np.zeros(0, np.bool_)
            if 2 * int(np.count_nonzero(held)) <= len(held):
                sums = self._sum_places(np.flatnonzero(held))
            else:
                sums = self._sum_places(np.flatnonzero(~held), without=True)
            return self._exact(offer, sums, table.rows)

        return _Mechanism(offer, found)

    def _sum_places(self, places: Words, *, without: bool = False) -> Words:
        """Return int64[1, words], the summary of the rows at these positions.

        With ``without=True``, return the summary of all other rows in the window. Powers above the
        game's degree are omitted.
        """
        summaries = self.core.measures[self.measure]
        layout, words = summaries.scale.up_to(self.game.degree)
        lanes = np.zeros((LANES, summaries.scale.words), np.int64)
        if without:
            lanes[0, :words] = summaries.window[:words]
        digits, players = self.core.playing(self.measure)
        sign = -1 if without else 1
        tally_places(lanes, places, digits, players, summaries.centre, layout, sign)
        return lanes[:1]

    def _exact(self, offer: Offer, sums: Words, touched: int) -> Attribution:
        found = self.core.measures[self.measure].answer(sums, 0, self.game)
        rows = self.core.rows
        return Attribution(*found, offer.mechanism, 0.0, rows, offer.reason, offer.rows, touched)

    def _by_sample(self, asked: Approximate) -> _Mechanism:
        """Return the mechanism that reads a sample.

        The sample is taken from the retained rows if the kept sample is missing or too small.
        """
        core, kept = self.core, self.core.sample
        if kept is not None and asked.size > kept.sampling.size:
            kept = None
        if kept is None and not core.has_raw:
            raise _too_large(asked, core.sample)
        looked_at = core.rows if kept is None else min(core.rows, kept.looks_at(asked.size))
        stratified = kept is not None and bool(kept.sampling.strata)
        forced = self.approximate is not None
        offer = sample_offer(looked_at, stratified=stratified, asked=forced)

        def found() -> Attribution:
            if kept is not None:
                sampling = kept.sampling
                drawing = kept.drawn(self.measure, asked.size)
            else:
                sampling = replace(self.settings.sampling or Sampling(), size=asked.size)
                drawing = draw_from(core, sampling, self.measure)
            estimates = estimate_drawn(
                core, self.game, self.measure, self.condition, drawing, sampling, asked.confidence
            )
            value, share, lift, error, standard_error = (float(each[0]) for each in estimates)
            touched = core.rows if kept is None else len(drawing.value)
            return Attribution(
                value, share, lift, offer.mechanism, error, core.rows, offer.reason, offer.rows,
                touched, asked.confidence, standard_error,
                len(drawing.value) - (0 if drawing.complete else drawing.whole), sampling.seed,
            )  # fmt: skip

        return _Mechanism(offer, found)


def _too_large(asked: Approximate, sample: WindowSample | None) -> StateError:
    if sample is None:
        return StateError(
            f"cannot sample {asked.size:,} rows: this engine has neither a sample nor retained "
            "rows; create it with sampling=ids.Sampling() or retain=True"
        )
    kept = sample.sampling.size
    return StateError(
        f"cannot sample {asked.size:,} rows: this engine keeps a sample of {kept:,}; ask for at "
        f"most {kept:,}, or create it with sampling=ids.Sampling(size={asked.size})"
    )


def explain_answer(
    aggregate: str, predicate: str, found: Attribution, offers: Sequence[Offer]
) -> str:
    """Return the text of ``Engine.explain``."""
    lines = [
        f"{aggregate} of {predicate}: {found.mechanism}",
        f"  reason: {found.reason}",
        f"  rows read: {found.rows_read:,} (expected {found.rows_expected:,})",
    ]
    if found.sample_size:
        lines.append(
            f"  error: at most {found.error:.6g} at {100 * found.confidence:g} %, standard error "
            f"{found.standard_error:.6g}; {found.sample_size:,} rows drawn, seed {found.seed}"
        )
    if len(offers) > 1:
        lines.append("  considered, the exact ones first:")
        ranked = sorted(offers, key=lambda offer: (not offer.exact, offer.cost))
        lines += [f"    {_offer(offer)}" for offer in ranked]
    return "\n".join(lines)


def _offer(offer: Offer) -> str:
    kind = "exact" if offer.exact else "estimate"
    cost = f"{offer.rows:,} rows, about {offer.cost / 1e3:,.0f} µs, {kind}"
    return f"{offer.mechanism}: {cost} ({offer.reason})"


def draw_from(core: Core, sampling: Sampling, measure: int) -> Drawing:
    """Draw a sample from the retained rows; used if there is no kept sample of that size."""
    table, schema = core.retained.table(), core.schema
    once = replace(sampling, strata=(), replacement=False)
    window = CountWindow(max(1, table.rows))
    sample = WindowSample(schema.kinds, len(schema.measures), once, window)
    numbers, strata = sample.number(table)
    if core.retained.sequence is not None:
        numbers = core.retained.sequence
    if table.rows:
        sample.insert(table, schema.evaluate(table), None, numbers, strata)
    return sample.drawn(measure)


def estimate_drawn(
    core: Core, game: Game, measure: int, condition: Expression, drawing: Drawing,
    sampling: Sampling, confidence: float,
) -> Estimates:  # fmt: skip
    """Return the value, share, lift, error and standard error for one window, each float64[1].

    If every row on which the condition may hold was drawn, the answer equals the exact one in every
    bit.
    """
    summaries = core.measures[measure]
    held = holds(condition, drawing.rows) if drawing.rows.rows else np.zeros(0, np.bool_)
    member = drawing.plays & held
    possible = _possible_parts(condition, drawing)
    if _all_drawn(drawing, possible):
        if measure in core.rounded:
            exact = core.answer_rounded(measure, game, condition)
        else:
            values, everyone = drawing.value[member], np.zeros(int(member.sum()), np.uint32)
            own = summaries.tally(1, everyone, summaries.cut(values), np.zeros(0, np.bool_), 1)
            exact = summaries.answer(own, 0, game)
        return Estimates(*(np.array([each]) for each in (*exact, 0.0, 0.0)))
    exponent = summaries.scale.exponent
    value = np.ldexp(drawing.value, -exponent)
    low, high = np.ldexp([drawing.low, drawing.high], -exponent)
    whole = drawing.whole
    drawn = Drawn(drawing.starts, value[whole:], member[whole:], drawing.plays[whole:])
    found = estimate(
        game,
        moments_of(summaries.window_alone()),
        parts_of(drawing, low, high, possible),
        _rows_of(possible, drawn),
        Whole(np.array([0, whole], np.int64), value[:whole], member[:whole], drawing.plays[:whole]),
        confidence=confidence,
        bound=sampling.bound,
        replacement=drawing.replacement,
        control_variate=sampling.control_variate and drawing.strata is None,
    )
    with np.errstate(over="ignore", under="ignore"):
        return Estimates(*(np.ldexp(each, exponent * game.power) for each in found))


def parts_of(
    drawing: Drawing, low: float, high: float, which: Bools | slice = slice(None)
) -> Parts:
    """Return one window's parts (strata), or the selected ones, with values in [low, high]."""
    population = drawing.population[which]
    count = len(population)
    return Parts(np.zeros(count, np.int64), population, np.full(count, low), np.full(count, high))


def _possible_parts(condition: Expression, drawing: Drawing) -> Bools:
    """Mark the parts in which the condition may hold, given the values that define a stratum."""
    if drawing.strata is not None:
        return _possible(condition, drawing.strata)
    return np.ones(len(drawing.population), np.bool_)


def _all_drawn(drawing: Drawing, possible: Bools) -> bool:
    """Return whether every row was drawn from the parts in which the condition may hold."""
    if drawing.complete:
        return True
    every = np.diff(drawing.starts) == drawing.population
    return not drawing.replacement and bool(every[possible].all())


def _rows_of(parts: Bools, drawn: Drawn) -> Drawn:
    """Return only the drawn rows that belong to the selected parts."""
    if parts.all():
        return drawn
    sizes = np.diff(drawn.starts)
    rows = np.repeat(parts, sizes)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[parts])])
    return Drawn(starts, drawn.value[rows], drawn.member[rows])


def _possible(condition: Expression, strata: Table, truth: bool = True) -> Bools:
    """Mark the strata in which a condition may be TRUE (FALSE if ``truth`` is False).

    Only the columns that define the strata are used.
    """
    if strata.columns.keys() >= set(columns_of(condition)):
        try:
            found = kleene(condition, strata) == (1 if truth else -1)
            return np.broadcast_to(found, strata.rows).copy()
        except DataError:  # an integer overflow, perhaps on rows excluded by another operand
            pass
    match condition:
        case And(operands) | Or(operands):
            join = np.logical_and if isinstance(condition, And) is truth else np.logical_or
            each = [_possible(operand, strata, truth) for operand in operands]
            return cast(Bools, join.reduce(each))
        case Not(operand):
            return _possible(operand, strata, not truth)
        case IsTrue(operand, wanted) if truth:
            return _possible(operand, strata, wanted)
    return np.ones(strata.rows, np.bool_)
