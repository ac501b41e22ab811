"""Questions put to a running engine: planned once, answered from what is kept."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ids.engine.adhoc import answer_from_rows, ways
from ids.engine.answering import answer, answer_by_atoms
from ids.engine.core import Core
from ids.engine.provisional import (
    provisional_meant,
    provisional_named,
    refuse_provisional_parts,
)
from ids.engine.rescaling import answer_rounded
from ids.engine.settings import Settings
from ids.errors import ScriptError, StateError, UnknownNameError, in_script
from ids.games import GAMES, Game, find
from ids.language import parse_aggregate, parse_predicate
from ids.model.attribution import Attribution
from ids.model.expression import Expression
from ids.model.query import Approximate
from ids.model.rendering import render
from ids.plan.mechanism import Offer
from ids.plan.question import Path, Question, choose, over_names, rows_path
from ids.plan.recognising import Recogniser
from ids.predicates.binding import bind_measure, bind_predicate
from ids.predicates.constants import refuse_constant_tests
from ids.state.enumerated import Enumerated
from ids.state.refined import Refined

__all__ = ["Questions", "Wording"]

# The aggregate and the predicate as they were written, and the sample asked for.
Wording = tuple[str, str, Approximate | None]

_MOST = 4096
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
        self._recogniser = Recogniser({}, {})
        self._recognises = False
        self._parsed: dict[str, Expression] = {}
        self._plans: dict[Wording, Question] = {}
        self._answers: dict[Wording, Attribution] = {}

    def slid(self) -> None:
        """The window moved: answers are stale."""
        self._answers.clear()

    def refined(self) -> None:
        """The predicates changed: plans are stale, too; what words mean is not."""
        self._recognises = False
        self._plans.clear()
        self._answers.clear()

    def attribute(self, core: Core | None, asked: Wording) -> Attribution:
        """The attribution now: an answer already given since the last slide costs a look-up."""
        known = self._answers.get(asked)
        if known is None:
            if len(self._plans) > _MOST or len(self._answers) > _MOST:
                self.refined()
            known = self._answers[asked] = self._answer(core, asked)
        return known

    def planned(self, core: Core | None, asked: Wording) -> Question:
        """Which state will answer; a plan already made is taken again."""
        question = self._plans.get(asked)
        if question is None:
            with in_script(asked[1]):
                question = self.plan(core, *asked)
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

    def plan(
        self, core: Core | None, aggregate: str, predicate: str, approximate: Approximate | None
    ) -> Question:
        """Which state will answer; a clear error where none can."""
        game, measure = self.game(core, aggregate)
        parsed = self._read(predicate)
        if core is None:
            refuse_constant_tests(parsed)  # it is bound when rows tell the columns
            mechanism = "marginal" if approximate is None else "sample"
            return Question(game, measure, Path(mechanism, "there are no rows yet"), approximate)
        if approximate is not None:
            # the rows drawn are put any condition to, a provisional predicate's as well
            known = {name: one.condition for name, one in core.provisional.items()}
            bound = bind_predicate(parsed, core.schema.kinds, {**core.predicates, **known})
            return Question(game, measure, Path("rows", "", None, bound), approximate)
        refuse_provisional_parts(parsed, core)
        recogniser = self._recogniser_of(core)
        path = provisional_named(parsed, core) or choose(
            parsed, core.predicates, core.schema.kinds, recogniser
        )
        if isinstance(core.membership, Enumerated) and path.mechanism == "compositional":
            path = self._enumerated(core, parsed, path, recogniser)
        path = provisional_meant(path, core)
        if path.mechanism == "rows" and not core.has_raw and core.sampler is None:
            raise StateError(
                f"nothing that is kept answers {predicate!r}; register it before the stream "
                "starts, or make the engine with retain=True or with sampling=ids.Sampling()"
            )
        return Question(game, measure, path)

    def _read(self, predicate: str) -> Expression:
        """A condition's expression; parsed once."""
        known = self._parsed.get(predicate)
        if known is None:
            if len(self._parsed) >= _MOST:
                self._parsed.clear()
            known = self._parsed[predicate] = parse_predicate(predicate)
        return known

    def _recogniser_of(self, core: Core) -> Recogniser:
        if not self._recognises:
            self._recogniser = self._recogniser.among(core.predicates, core.schema.kinds)
            self._recognises = True
        return self._recogniser

    def _enumerated(
        self, core: Core, parsed: Expression, path: Path, recogniser: Recogniser
    ) -> Path:
        """Where the atoms were given up: a named intersection, or a scan of the rows."""
        for text, expression in self._intersections.items():
            kept = text in core.membership.names
            if kept and over_names(expression, core.predicates) == path.condition:
                return Path("compositional", "it is a kept intersection", name=text)
        return rows_path(bind_predicate(parsed, core.schema.kinds, core.predicates), recogniser)

    def _answer(self, core: Core | None, asked: Wording) -> Attribution:
        question = self.planned(core, asked)
        game, measure, path, _ = question
        if core is None or measure >= len(core.measures):
            return Attribution(0.0, 0.0, 0.0, path.mechanism, 0.0, 0, path.why)
        if measure in core.rounded and asked[2] is None and path.mechanism != "provisional":
            bound = bind_predicate(self._read(asked[1]), core.schema.kinds, core.predicates)
            found = answer_rounded(core, measure, game, bound)
            mechanism = "scan" if path.mechanism == "rows" else path.mechanism
            return Attribution(*found, mechanism, 0.0, core.rows, _ROUNDED, core.rows, core.rows)
        if path.mechanism == "rows":
            return answer_from_rows(core, question, self._settings)
        if path.mechanism == "provisional":
            assert path.name is not None
            return core.provisional[path.name].attribution(core, game, measure)
        summaries = core.measures[measure]
        if path.name is not None:
            row = core.membership.names.index(path.name)
            found = answer(summaries, summaries.marginals, row, game)
        else:
            merged = summaries.merged(_chosen(core, path)).reshape(1, -1)
            found = answer(summaries, merged, 0, game)
        return Attribution(*found, path.mechanism, 0.0, core.rows, path.why)

    def offers(self, core: Core | None, question: Question) -> list[Offer]:
        """What the mechanisms offer for a question that no summary answers."""
        if core is None or question.path.mechanism != "rows":
            return []
        return [way.offer for way in ways(core, question, self._settings)]

    def by_atoms(self, core: Core, aggregate: str, predicate: str) -> Attribution:
        """The same answer by evaluating every atom and adding up: the cross-check."""
        game, measure = self.game(core, aggregate)
        if not isinstance(core.membership, Refined):
            raise StateError("the atoms were given up at their limit")
        condition = over_names(parse_predicate(predicate), core.predicates)
        chosen = core.membership.holding(condition)
        found = answer_by_atoms(core.measures[measure], chosen, game)
        return Attribution(*found, "compositional", 0.0, core.rows)


def _chosen(core: Core, path: Path) -> npt.NDArray[np.int64]:
    assert isinstance(core.membership, Refined)
    assert path.condition is not None
    return core.membership.holding(path.condition)
