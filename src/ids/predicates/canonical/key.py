"""The key of a condition: equal for conditions that hold on the same rows."""

from __future__ import annotations

from collections.abc import Mapping

from ids.model.expression import Expression
from ids.model.table import Kind
from ids.predicates.canonical.diagrams import Diagrams, TooLarge
from ids.predicates.canonical.forms import Form, Forms, shortened
from ids.predicates.canonical.reading import Reader

__all__ = ["canonical_key"]


def canonical_key(predicate: Expression, kinds: Mapping[str, Kind]) -> str:
    """A text that names the rows on which a bound predicate is TRUE, however it is written.

    Conditions with equal keys hold on the same rows, always; NULL counts as FALSE at the top. The
    reverse is true of what compares columns with constants, asks for NULL, and joins by AND, OR
    and NOT. What depends on two values at once, or on a pattern or a function of one, is a thing
    of its own: equal when its operands are, but not known to follow from other conditions. A
    condition whose diagram would be too large gets a key by its form, equal only to its like.

    O(n log n) for n constants on one column; at worst a fixed bound, then O(n log n).

    >>> from ids.model.expression import Column, Comparison, In, Literal, Not
    >>> x, kinds = Column("x"), {"x": Kind.NUMBER}
    >>> one = canonical_key(In(x, (Literal(1), Literal(1.0))), kinds)
    >>> one == canonical_key(Not(Comparison("<>", Literal(1), x)), kinds)
    True
    """
    diagrams = Diagrams()
    try:
        rows = Reader[int](diagrams, kinds).holds(predicate)
        return f"rows {shortened(diagrams.spelled(rows))}"
    except TooLarge:
        form = Reader[Form](Forms(), kinds).holds(predicate)
        return f"form {shortened(form.spelled())}"
