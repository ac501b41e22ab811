"""Recognising: what is registered, in a condition that does not name it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ids.model.expression import And, Expression, IsTrue, Literal, Name, Not, Or, columns_of
from ids.model.table import Kind
from ids.predicates.canonical import canonical_key

__all__ = ["Recogniser", "Related"]

# Registered predicates that a condition is compared with, at most: each costs a few diagrams.
_MOST = 8
# Keys remembered before they are forgotten and made anew.
_REMEMBERED = 4096


class Related(NamedTuple):
    """What registered predicates tell of a condition, without a look at a row.

    mixed     the condition, with every part that is registered written as its ``Name``
    implying  predicates that imply it: where one holds, so does it
    implied   predicates that it implies: where one does not hold, neither does it
    excluded  predicates that rule it out
    covered   whether it holds only where one of ``implying`` does
    """

    mixed: Expression
    implying: tuple[str, ...]
    implied: tuple[str, ...]
    excluded: tuple[str, ...]
    covered: bool

    @property
    def useful(self) -> bool:
        """Whether they tell anything."""
        return bool(self.implying or self.implied or self.excluded or any(_names(self.mixed)))


class Recogniser:
    """The registered predicates by what they mean, however they are written.

    A condition's key is computed when it is first asked about; the registered ones' too.
    """

    def __init__(self, registered: Mapping[str, Expression], kinds: Mapping[str, Kind]) -> None:
        self._registered = registered
        self._kinds = kinds
        self._holding: dict[str, str] | None = None
        self._keys: dict[Expression, str] = {}

    def among(self, registered: Mapping[str, Expression], kinds: Mapping[str, Kind]) -> Recogniser:
        """The same for other predicates: a key tells of columns, not of what is registered."""
        other = Recogniser(registered, kinds)
        if kinds == self._kinds:
            other._keys = self._keys
        return other

    def key(self, condition: Expression) -> str:
        """Equal keys: conditions that hold on the same rows, whatever the rows."""
        known = self._keys.get(condition)
        if known is None:
            if len(self._keys) >= _REMEMBERED:
                self._keys.clear()
            known = self._keys[condition] = canonical_key(condition, self._kinds)
        return known

    def name_of(self, condition: Expression) -> str | None:
        """The registered predicate that holds on just the same rows."""
        if not self._registered:
            return None
        return self._by_key().get(self.key(condition))

    def related(self, condition: Expression) -> Related:
        """What the registered predicates tell of a condition over columns."""
        read = set(columns_of(condition))
        near = [n for n, e in self._registered.items() if not read.isdisjoint(columns_of(e))]
        implying, implied, excluded = [], [], []
        own = self.key(condition)
        for name in near[:_MOST]:
            one = self._registered[name]
            both = self.key(And((condition, one)))
            if both == own:
                implied.append(name)
            elif both == self.key(one):
                implying.append(name)
            elif both == self.key(Literal(False)):
                excluded.append(name)
        mixed = self._named(condition) if near else condition
        covered = self._covered(implying, condition)
        return Related(mixed, tuple(implying), tuple(implied), tuple(excluded), covered)

    def _covered(self, names: Sequence[str], condition: Expression) -> bool:
        if not names:
            return False
        together = tuple(self._registered[name] for name in names)
        either = Or(together) if len(together) > 1 else together[0]
        return self.key(And((condition, either))) == self.key(condition)

    def _by_key(self) -> dict[str, str]:
        if self._holding is None:
            # the first of several predicates that mean the same
            pairs = [(self.key(e), name) for name, e in self._registered.items()]
            self._holding = dict(reversed(pairs))
        return self._holding

    def _named(self, node: Expression) -> Expression:
        """Every part with a registered predicate's truth, NULL included, as that predicate's name.

        Under a NOT it matters whether a part is FALSE or NULL: holding alike is not enough there.
        """
        holds, fails = self.key(node), self.key(Not(node))
        name = self._by_key().get(holds)
        if name is not None and fails == self._failing(name):
            return Name(name)
        name = self._by_key().get(fails)
        if name is not None and holds == self._failing(name):
            return Not(Name(name))
        match node:
            case And(operands):
                return And(tuple(map(self._named, operands)))
            case Or(operands):
                return Or(tuple(map(self._named, operands)))
            case Not(operand):
                return Not(self._named(operand))
            case IsTrue(operand, truth):
                return IsTrue(self._named(operand), truth)
        return node

    def _failing(self, name: str) -> str:
        return self.key(Not(self._registered[name]))


def _names(node: Expression) -> Iterator[Name]:
    match node:
        case Name():
            yield node
        case And(operands) | Or(operands):
            for operand in operands:
                yield from _names(operand)
        case Not(operand) | IsTrue(operand):
            yield from _names(operand)
