"""Deciding: what is sure of a condition when only some of its parts are known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ids.model.expression import And, Expression, IsTrue, Literal, Not, Or
from ids.predicates.vector import Kleene

__all__ = ["decide"]

_FALSE, _NULL, _TRUE = (np.array([truth], np.int8) for truth in (-1, 0, 1))
_TRUTH = {None: _NULL, False: _FALSE, True: _TRUE}


def decide(
    expression: Expression, known: Callable[[Expression], Kleene | None]
) -> tuple[Kleene, Kleene]:
    """The lowest and the highest truth a condition may have on each row: -1 FALSE, 0 NULL, 1 TRUE.

    ``known`` gives the truths of a condition, or None; it is asked from the top down, and what it
    knows is not looked into. Where the lowest is 1 the condition holds, whatever the unknown parts
    are; where the highest is below 1 it does not. Length 1 stands for every row, as in ``kleene``.
    O(nodes * rows).

    >>> from ids.model.expression import Column
    >>> a, b = Column("a"), Column("b")
    >>> truths = {a: np.array([-1, 0, 1], np.int8)}
    >>> decide(And((a, b)), truths.get)
    (array([-1, -1, -1], dtype=int8), array([-1,  0,  1], dtype=int8))
    """
    if isinstance(expression, Literal) and isinstance(expression.value, bool | None):
        truth = _TRUTH[expression.value]
        return truth, truth
    found = known(expression)
    if found is not None:
        return found, found
    match expression:
        case And(operands) | Or(operands):
            join = np.minimum if isinstance(expression, And) else np.maximum
            low, high = decide(operands[0], known)
            for operand in operands[1:]:
                lower, higher = decide(operand, known)
                low, high = join(low, lower), join(high, higher)
            return low, high
        case Not(operand):
            low, high = decide(operand, known)
            return -high, -low
        case IsTrue(operand, wanted):
            low, high = decide(operand, known)
            if not wanted:
                low, high = -high, -low
            return _is_true(low), _is_true(high)
    return _FALSE, _TRUE


def _is_true(truths: Kleene) -> Kleene:
    """TRUE where TRUE, else FALSE: it rises with its operand, so bounds become bounds."""
    return np.where(truths == 1, _TRUE, _FALSE)
