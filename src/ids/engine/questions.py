"""Questions put to a running engine: planned once, answered from what is kept.

registered       the predicate's own sums
combination      the sums of the atoms on which a combination of registered names holds
provisional      sums that began with an estimate
anything else    the rows: found by the index or by a scan, both exact, or drawn for an estimate
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ids.engine.core import Core
from ids.engine.sample_answers import draw_from, estimate_drawn
from ids.engine.settings import Settings
from ids.errors import ScriptError, StateError, UnknownNameError, in_script
from ids.games import GAMES, Game, find
from ids.kernels import LANES, tally_places
from ids.language import parse_aggregate, parse_predicate
from ids.model import Approximate, Attribution, Expression, Name, Sampling, columns_of, render
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
from ids.predicates import bind_measure, bind_predicate, holds, refuse_constant_tests
from ids.state import Access, Enumerated, Refined, WindowSample, answer, answer_by_atoms

Words = npt.NDArray[np.int64]

# The aggregate and the predicate as they were written, and the sample asked for.
Wording = tuple[str, str, Approximate | None]

_MOST = 4096  # plans, answers or parsed conditions that are remembered
_FEW = 1 / 64  # of the rows: whoever finds so few need not be compared with a scan
_ROUNDED = "values lie too far apart for the sums that are kept, so the rows are summed anew"


class Questions:
    """Plans and answers, kept while they hold.

    A plan holds until the predicates change, an answer until the next slide.
    """

    def __init__(
        self, values: Mapping[str, Expression], intersections: Mapping[str, Expression],
        settings: Settings,
    ) -> None:  # fmt: skip
        self._values = values
        self._intersections = intersections
        self._settings = settings
        self._names: dict[str, Expression] | None = None  # of the registered predicates, by key
        self._parse = lru_cache(maxsize=_MOST)(parse_predicate)
        self._plans: dict[Wording, Question] = {}
        self._answers: dict[Wording, Attribution] = {}
        self._slide = 0  # the one that the answers are of

    def forget_answers(self) -> None:
        """Answer anew, as after a slide; plans are kept."""
        self._answers.clear()

    def refined(self) -> None:
        """The predicates changed: plans are stale, too; what words mean is not."""
        self._names = None
        self._plans.clear()
        self._answers.clear()

    def attribute(self, core: Core | None, asked: Wording) -> Attribution:
        """The attribution now: an answer already given since the last slide costs a look-up."""
        if core is None:
            return self._answer(core, asked)
        if self._slide != core.slides:
            self._slide = core.slides
            self.forget_answers()
        known = self._answers.get(asked)
        if known is None:
            if len(self._plans) > _MOST or len(self._answers) > _MOST:
                self.refined()
            known = self._answers[asked] = self._answer(core, asked)
        return known

    def plan(self, core: Core | None, asked: Wording) -> Question:
        """Which state will answer; a plan already made is taken again."""
        question = self._plans.get(asked)
        if question is None:
            with in_script(asked[1]):
                question = self._planned(core, *asked)
            if core is not None:
                self._plans[asked] = question
        return question

    def game(self, core: Core | None, aggregate: str) -> tuple[Game, int]:
        """An aggregate's game and the number of the measure under it."""
        parsed = parse_aggregate(aggregate, tuple(GAMES))
        game = find(parsed.function)
        if game.degree > self._settings.degree:
            raise StateError(
                f"{game.name} needs power sums up to {game.degree}, this engine keeps "
                f"{self._settings.degree}; make it with degree={game.degree}"
            )
        if parsed.argument is None:
            if game.degree == 0:
                return game, 0
            if len(self._values) != 1:
                known = ", ".join(f"{game.name}({v})" for v in self._values) or "no measure"
                raise ScriptError(f"{aggregate} of which measure?", hint=f"known: {known}")
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
        """Which state will answer; a clear error where none can."""
        game, measure = self.game(core, aggregate)
        parsed = self._parse(predicate)
        if core is None:
            refuse_constant_tests(parsed)  # it is bound when rows tell the columns
            mechanism = "marginal" if approximate is None else "sample"
            return Question(game, measure, Path(mechanism, "there are no rows yet"), approximate)
        if approximate is not None:
            # any condition is put to the rows drawn, a provisional predicate's as well
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
                f"nothing that is kept answers {predicate!r}; register it before the stream "
                "starts, or make the engine with retain=True or with sampling=ids.Sampling()"
            )
        return Question(game, measure, path)

    def _enumerated(self, core: Core, parsed: Expression, path: Path) -> Path:
        """Where the atoms were given up: a named intersection, or a scan of the rows."""
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
            found = answer(summaries, summaries.marginals, row, game)
        else:
            merged = summaries.merged(_atoms(core, path.condition)).reshape(1, -1)
            found = answer(summaries, merged, 0, game)
        return Attribution(*found, path.mechanism, 0.0, core.rows, path.reason)

    def offers(self, core: Core | None, question: Question) -> list[Offer]:
        """What the mechanisms offer for a question that no summary answers."""
        rows = None if core is None else self._rows_question(core, question)
        return [] if rows is None else [each.offer for each in rows.mechanisms()]

    def _rows_question(self, core: Core, question: Question) -> _RowsQuestion | None:
        """The question, where some rows must be looked at for it."""
        game, measure, path, approximate = question
        if path.mechanism != "rows" or path.condition is None:
            return None
        return _RowsQuestion(core, game, measure, path.condition, approximate, self._settings)

    def by_atoms(self, core: Core, aggregate: str, predicate: str) -> Attribution:
        """The same answer by evaluating every atom and adding up: the cross-check."""
        game, measure = self.game(core, aggregate)
        chosen = _atoms(core, over_names(parse_predicate(predicate), core.predicates))
        found = answer_by_atoms(core.measures[measure], chosen, game)
        return Attribution(*found, "compositional", 0.0, core.rows)


def _atoms(core: Core, condition: Expression | None) -> Words:
    """The live atoms on which a condition over registered names holds."""
    if not isinstance(core.membership, Refined) or condition is None:
        raise StateError("the atoms were given up at their limit")
    return core.membership.holding(condition)


def _provisional_named(predicate: Expression, core: Core) -> Path | None:
    """The provisional predicate that a question names, if it does.

    It has no atoms yet, so nothing joint can be asked of it.
    """
    provisional = {name.lower(): name for name in core.provisional}
    if isinstance(predicate, Name) and predicate.name.lower() in provisional:
        return Path("provisional", "", provisional[predicate.name.lower()])
    for name in named_in(predicate):
        if name.name.lower() in provisional:
            raise StateError(
                f"{name.name} is provisional: it can be asked about alone until its exact rebuild; "
                "call engine.rebuild() for that now"
            )
    return None


def _provisional_meant(path: Path, core: Core) -> Path:
    """The provisional predicate that a question means which would be put to the rows, if any."""
    if path.mechanism == "rows":
        for name, one in core.provisional.items():
            if one.key == path.key:
                return Path("provisional", "", name)
    return path


class _Mechanism(NamedTuple):
    """What a mechanism offers, and the answer if it is taken."""

    offer: Offer
    answer: Callable[[], Attribution]


class _RowsQuestion(NamedTuple):
    """A question about a condition over columns, which some rows must be looked at for."""

    core: Core
    game: Game
    measure: int
    condition: Expression
    approximate: Approximate | None
    settings: Settings

    def answer(self) -> Attribution:
        """The answer, in the cheapest way there is."""
        access = None if self.approximate is not None else self._access()
        if access is not None and access.candidates < _FEW * self.core.rows:
            return self._by_index(access).answer()
        every = self.mechanisms(access, estimate=False)
        best = choose_offer([each.offer for each in every])
        return next(each for each in every if each.offer is best).answer()

    def mechanisms(
        self, access: Access | None = None, *, estimate: bool = True
    ) -> list[_Mechanism]:
        """Every way to the answer, exact ones first; where a sample was asked for, that alone.

        Without ``estimate`` the kept sample is left out where there is an exact way.
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
        return self.core.index.access(self.condition, self.core.retained)

    def _by_index(self, access: Access) -> _Mechanism:
        """The rows that the index has found."""
        offer = index_offer(self.core.rows, access.candidates)

        def found() -> Attribution:
            sums = self._sum_places(access.places(self.core.retained))
            return self._exact(offer, sums, access.candidates)

        return _Mechanism(offer, found)

    def _by_scan(self) -> _Mechanism:
        """One look at every row inside, on the columns the condition reads.

        Sums are exact, so the window less the rows on which the condition does not hold is the same
        to the bit: whichever are fewer are summed.
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
        """The summary of the rows at the places, or of the window without them; int64[1, words].

        Powers beyond the game's degree are left out.
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
        found = answer(self.core.measures[self.measure], sums, 0, self.game)
        rows = self.core.rows
        return Attribution(*found, offer.mechanism, 0.0, rows, offer.reason, offer.rows, touched)

    def _by_sample(self, asked: Approximate) -> _Mechanism:
        """The rows drawn; drawn on the spot where no sample of that size is kept."""
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
    fact = f"a sample of {asked.size:,} rows was asked for"
    if sample is None:
        return StateError(
            f"{fact}, and this engine keeps neither rows nor a sample; make it with "
            "sampling=ids.Sampling() or with retain=True"
        )
    return StateError(
        f"{fact}, and this engine keeps one of {sample.sampling.size:,}; ask for no more than "
        "that, or make the engine with a larger one"
    )


def explain_answer(
    aggregate: str, predicate: str, found: Attribution, offers: Sequence[Offer]
) -> str:
    """Lines for a person to read."""
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
