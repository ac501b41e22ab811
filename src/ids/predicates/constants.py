"""Constants where a column is meant: tests that read no column, and names in the wrong quotes.

A script quotes names as Spark does, in backticks; "region" is a text. In PostgreSQL and DuckDB it
is a name, so ``"region" = 'EU'`` would quietly be FALSE on every row for whoever comes from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ids.errors import ScriptError, nearest
from ids.model.expression import (
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Name,
    children,
    position_of,
)
from ids.model.rendering import backtick_hint, brief

__all__ = ["quoted_name", "refuse_constant_tests", "refuse_quoted_measure"]


def refuse_constant_tests(expression: Expression, known: Iterable[str] = ()) -> None:
    """Refuse a comparison, IN, LIKE or IS NULL that reads no column; O(nodes).

    It is the same on every row, so it tells nothing about any of them. TRUE, FALSE and NULL alone
    are allowed: nobody writes them by mistake. ``known`` are the names that a text may mean.
    """
    reads: dict[int, bool] = {}
    stack = [expression]
    while stack:
        node = stack[-1]
        below = children(node)
        waiting = [child for child in reversed(below) if id(child) not in reads]
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        reads[id(node)] = isinstance(node, Name | Column) or any(reads[id(x)] for x in below)
        if isinstance(node, Comparison | In | Like | IsNull) and not reads[id(node)]:
            raise _reads_no_column(node, known, "name a column, or write TRUE or FALSE")


def refuse_quoted_measure(measure: Expression, known: Iterable[str] = ()) -> None:
    """Refuse ``COUNT("x")``, which counts every row; ``COUNT(1)`` is written to do just that."""
    nodes = list(_nodes(measure))
    if any(isinstance(node, Literal) and node.double_quoted for node in nodes) and not any(
        isinstance(node, Name | Column) for node in nodes
    ):
        raise _reads_no_column(measure, known, "name a column, or write COUNT(*)")


def quoted_name(expressions: Iterable[Expression], known: Iterable[str]) -> str | None:
    """The hint for a text that is meant as a name, if there is one among the expressions.

    In double quotes it may be misspelt, or anything where no name is known yet.
    """
    names = {name.lower(): name for name in known}
    nodes = [node for expression in expressions for node in _nodes(expression)]
    texts = [x for x in nodes if isinstance(x, Literal) and isinstance(x.value, str)]
    found = [names.get(str(text.value).lower()) for text in texts]
    for text in texts:
        if text.double_quoted:
            word = str(text.value)
            found.append(nearest(word, names.values()) if names else word)
    return next((backtick_hint(name) for name in found if name is not None), None)


def _reads_no_column(node: Expression, known: Iterable[str], hint: str) -> ScriptError:
    hint = quoted_name([node], known) or hint
    return ScriptError(f"{brief(node)} reads no column", position_of(node), hint)


def _nodes(expression: Expression) -> Iterator[Expression]:
    """Every node, from left to right."""
    stack = [expression]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))
