"""Questions put to a running engine: planned once, answered from what is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ids.engine.answering import answer, answer_by_atoms
from ids.engine.core import Core
from ids.errors import ScriptError, StateError, UnknownNameError
from ids.games import GAMES, Game, find
from ids.language import parse_aggregate, parse_predicate
from ids.model.attribution import Attribution
from ids.model.expression import Expression
from ids.model.rendering import render
from ids.plan.question import Path, choose, over_names
from ids.predicates.binding import bind_measure, bind_predicate
from ids.predicates.truth import truth
from ids.state.enumerated import Enumerated
from ids.state.refined import Refined

__all__ = ["Question", "Questions"]

_MOST = 4096


class Question(NamedTuple):
    """A question as it was planned: the game, the measure's number, and what answers it."""

    game: Game
    measure: int
    path: Path


class Questions:
    """Plans and answers, kept while they hold.

    A plan holds until the predicates change, an answer until the next slide.
    """

    def __init__(
        self, values: Mapping[str, Expression], intersections: Mapping[str, Expression], degree: int
    ) -> None:
        self._values = values
        self._intersections = intersections
        self._degree = degree
        self._plans: dict[tuple[str, str], Question] = {}
        self._answers: dict[tuple[str, str], Attribution] = {}

    def slid(self) -> None:
        """The window moved: answers are stale."""
        self._answers.clear()

    def refined(self) -> None:
        """The predicates changed: plans are stale, too."""
        self._plans.clear()
        self._answers.clear()

    def attribute(self, core: Core | None, aggregate: str, predicate: str) -> Attribution:
        """The attribution now: an answer already given since the last slide costs a look-up."""
        key = (aggregate, predicate)
        known = self._answers.get(key)
        if known is None:
            if len(self._plans) > _MOST or len(self._answers) > _MOST:
                self.refined()
            question = self._plans.get(key) or self._plan(core, key)
            known = self._answers[key] = self._answer(core, question)
        return known

    def _plan(self, core: Core | None, key: tuple[str, str]) -> Question:
        question = self.plan(core, *key)
        if core is not None:
            self._plans[key] = question
        return question

    def game(self, core: Core | None, aggregate: str) -> tuple[Game, int]:
        """An aggregate's game and the number of the measure under it."""
        parsed = parse_aggregate(aggregate, tuple(GAMES))
        game = find(parsed.function)
        if game.degree > self._degree:
            raise StateError(
                f"{game.name} needs power sums up to {game.degree}, this engine keeps "
                f"{self._degree}; make it with degree={game.degree}"
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
            argument = bind_measure(argument, core.schema.kinds)
        if argument not in measures:
            raise UnknownNameError("measure", render(parsed.argument), self._values)
        return game, 1 + measures.index(argument)

    def plan(self, core: Core | None, aggregate: str, predicate: str) -> Question:
        """Which state will answer; a clear error where none can."""
        game, measure = self.game(core, aggregate)
        parsed = parse_predicate(predicate)
        if core is None:
            return Question(game, measure, Path("marginal"))
        path = choose(parsed, core.predicates, core.schema.kinds)
        if isinstance(core.membership, Enumerated) and path.mechanism == "compositional":
            path = self._enumerated(core, parsed, path)
        if path.mechanism == "scan" and not core.has_raw:
            raise StateError(
                f"nothing that is kept answers {predicate!r}; register it before the stream "
                "starts, or make the engine with retain=True"
            )
        return Question(game, measure, path)

    def _enumerated(self, core: Core, parsed: Expression, path: Path) -> Path:
        """Where the atoms were given up: a named intersection, or a scan of the rows."""
        for text, expression in self._intersections.items():
            kept = text in core.membership.names
            if kept and over_names(expression, core.predicates) == path.condition:
                return Path("compositional", name=text)
        bound = bind_predicate(parsed, core.schema.kinds, core.predicates)
        return Path("scan", condition=bound)

    def _answer(self, core: Core | None, question: Question) -> Attribution:
        game, measure, path = question
        if core is None or measure >= len(core.measures):
            return Attribution(0.0, 0.0, 0.0, path.mechanism, 0.0, 0)
        summaries = core.measures[measure]
        if path.name is not None:
            row = core.membership.names.index(path.name)
            found = answer(summaries, summaries.marginals, row, game)
        elif path.mechanism == "scan":
            found = answer(summaries, _scan(core, measure, path), 0, game)
        else:
            merged = summaries.merged(_chosen(core, path)).reshape(1, -1)
            found = answer(summaries, merged, 0, game)
        return Attribution(*found, path.mechanism, 0.0, core.rows)

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


def _scan(core: Core, measure: int, path: Path) -> npt.NDArray[np.int64]:
    """The summary of a condition nobody registered: one look at every row inside."""
    assert core.retained is not None
    assert path.condition is not None
    summaries = core.measures[measure]
    if not len(core.retained):
        return np.zeros((1, summaries.scale.words), np.int64)
    inside = core.inside()
    taking = truth(path.condition, core.retained.table()) == 1
    players = inside.players[measure]
    taking = taking & players if len(players) else taking
    everyone = np.zeros(len(taking), np.uint32)
    return summaries.tally(1, everyone, inside.digits[measure], taking, 1)
