"""Diagrams: sets of rows as reduced decision diagrams, of which equal sets have equal ones.

A node asks for the value of one variable and goes on by the interval between cuts in which it
lies, or by its being NULL. Variables are asked in one order, neighbours that go on alike are
merged, a question that decides nothing is left out, and equal nodes are one node. Then a set has
one diagram (Bryant's theorem, for many-valued questions).
"""

from __future__ import annotations

from typing import NamedTuple

from ids.predicates.canonical.scales import Cut, Values

__all__ = ["Diagrams", "TooLarge"]

_NOTHING, _EVERYTHING = 0, 1
_NEVER_NULL = -1
# Some fifty milliseconds of work; in bad cases diagrams are exponential in the variables.
_MOST_BRANCHES = 2**15
# As deep as recursion goes when diagrams are combined.
_MOST_VARIABLES = 256
# What a constant in the condition adds to the branches allowed: a long IN is no bad case.
_BRANCHES_A_CUT = 8


class TooLarge(Exception):
    """The diagrams of a condition grow beyond the limit."""


class _Node(NamedTuple):
    """``next[k]`` follows where the value lies between cuts k - 1 and k, ``null`` where NULL."""

    variable: str
    cuts: tuple[Cut, ...]
    next: tuple[int, ...]
    null: int


class Diagrams:
    """An algebra of sets: each set is the number of a node; 0 is no row, 1 is every row."""

    def __init__(self) -> None:
        terminal = _Node("", (), (), _NEVER_NULL)
        self._nodes = [terminal, terminal]
        self._numbers: dict[_Node, int] = {}
        self._combined: dict[tuple[int, int, int], int] = {}
        self._negated = {_NOTHING: _EVERYTHING, _EVERYTHING: _NOTHING}
        self._variables: set[str] = set()
        self._branches_left = _MOST_BRANCHES

    def constant(self, holds: bool) -> int:
        """Every row, or none."""
        return _EVERYTHING if holds else _NOTHING

    def among(self, variable: str, values: Values, null: bool | None) -> int:
        """Where a variable's value is one of a set; O(cuts)."""
        self._variables.add(variable)
        if len(self._variables) > _MOST_VARIABLES:
            raise TooLarge
        self._branches_left += _BRANCHES_A_CUT * len(values.cuts)
        odd, even = int(not values.first), int(values.first)
        follows = [even, odd] * (len(values.cuts) // 2 + 1)
        del follows[len(values.cuts) + 1 :]
        return self._node(
            variable, list(values.cuts), follows, _NEVER_NULL if null is None else int(null)
        )

    def both(self, operands: list[int]) -> int:
        """The intersection."""
        return self._joined(_NOTHING, operands)

    def either(self, operands: list[int]) -> int:
        """The union."""
        return self._joined(_EVERYTHING, operands)

    def negated(self, operand: int) -> int:
        """The complement; O(nodes)."""
        found = self._negated.get(operand)
        if found is None:
            variable, cuts, follows, null = self._nodes[operand]
            opposite = list(map(self.negated, follows))
            other = null if null == _NEVER_NULL else self.negated(null)
            found = self._node(variable, list(cuts), opposite, other)
            self._negated[operand] = found
            self._negated[found] = operand
        return found

    def spelled(self, operand: int) -> str:
        """The set as text: its nodes in the order in which they are first met."""
        if operand in (_NOTHING, _EVERYTHING):
            return "TRUE" if operand else "FALSE"
        numbers = {_NOTHING: 0, _EVERYTHING: 1, _NEVER_NULL: -1, operand: 2}
        met = [operand]
        for number in met:  # grows as it is read
            node = self._nodes[number]
            for each in (*node.next, node.null):
                if each not in numbers:
                    numbers[each] = len(numbers) - 1
                    met.append(each)
        nodes = (self._nodes[number] for number in met)
        return repr(
            [
                (
                    node.variable,
                    node.cuts,
                    [numbers[each] for each in node.next],
                    numbers[node.null],
                )
                for node in nodes
            ]
        )

    def _node(self, variable: str, cuts: list[Cut], follows: list[int], null: int) -> int:
        """The one node that asks this; neighbours are different already."""
        if not cuts and null in (_NEVER_NULL, follows[0]):
            return follows[0]
        if max(null, *follows) > _EVERYTHING:  # on one variable alone nothing can grow out of hand
            self._branches_left -= len(follows)
            if self._branches_left < 0:
                raise TooLarge
        node = _Node(variable, tuple(cuts), tuple(follows), null)
        number = self._numbers.setdefault(node, len(self._nodes))
        if number == len(self._nodes):
            self._nodes.append(node)
        return number

    def _joined(self, absorbing: int, operands: list[int]) -> int:
        """Operands on one variable meet first, two by two; then from the last variable upwards."""
        groups: dict[str, list[int]] = {}
        for operand in set(operands):
            if operand == absorbing:
                return absorbing
            if operand > _EVERYTHING:
                groups.setdefault(self._nodes[operand].variable, []).append(operand)
        result = 1 - absorbing
        for variable in sorted(groups, reverse=True):
            group = sorted(groups[variable])
            while len(group) > 1:
                odd = group[-1:] if len(group) % 2 else []
                pairs = zip(group[::2], group[1::2], strict=False)
                group = [self._combine(absorbing, a, b) for a, b in pairs] + odd
            result = self._combine(absorbing, group[0], result)
        return result

    def _combine(self, absorbing: int, a: int, b: int) -> int:
        """Interval by interval; a level is one frame of recursion, a variable one level."""
        if a in (b, absorbing) or b == 1 - absorbing:
            return a
        if a == 1 - absorbing or b == absorbing:
            return b
        key = (absorbing, a, b) if a < b else (absorbing, b, a)
        found = self._combined.get(key)
        if found is not None:
            return found
        one, other = self._nodes[a], self._nodes[b]
        variable = min(one.variable, other.variable)
        if one.variable > variable:
            one = _passed(variable, a, other.null)
        elif other.variable > variable:
            other = _passed(variable, b, one.null)
        here, there = 0, 0
        cuts: list[Cut] = []
        follows = [self._combine(absorbing, one.next[0], other.next[0])]
        while here < len(one.cuts) or there < len(other.cuts):
            cut = _next_cut(one.cuts, here, other.cuts, there)
            here += here < len(one.cuts) and one.cuts[here] == cut
            there += there < len(other.cuts) and other.cuts[there] == cut
            follow = self._combine(absorbing, one.next[here], other.next[there])
            if follow != follows[-1]:
                cuts.append(cut)
                follows.append(follow)
        null = _NEVER_NULL
        if one.null != _NEVER_NULL:
            null = self._combine(absorbing, one.null, other.null)
        self._combined[key] = found = self._node(variable, cuts, follows, null)
        return found


def _passed(variable: str, number: int, null: int) -> _Node:
    """A question that decides nothing: whatever the answer, the node of that number follows."""
    return _Node(variable, (), (number,), _NEVER_NULL if null == _NEVER_NULL else number)


def _next_cut(ours: tuple[Cut, ...], here: int, theirs: tuple[Cut, ...], there: int) -> Cut:
    if there == len(theirs):
        return ours[here]
    if here == len(ours):
        return theirs[there]
    return min(ours[here], theirs[there])
