"""The SQL dialect: parse scripts, conditions, measures and aggregates into the data model."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from typing import ParamSpec, TypeVar

from ids.errors import ScriptError, in_script
from ids.language.lexer import Cursor, tokenize
from ids.language.parser import expression
from ids.language.statements import AGGREGATES, aggregate, divide, statement
from ids.model import Aggregate, Expression, Statement

__all__ = ["parse", "parse_aggregate", "parse_expression", "parse_predicate"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _bounded(parser: Callable[_P, _T]) -> Callable[_P, _T]:
    """Raise ScriptError instead of RecursionError, which a caller deep in its stack could get."""

    @wraps(parser)
    def bounded(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            with in_script(str(args[0])):
                return parser(*args, **kwargs)
        except RecursionError:
            raise ScriptError("nested too deeply", hint="use fewer parentheses") from None

    return bounded


@_bounded
def parse(script: str, games: Collection[str] = AGGREGATES) -> tuple[Statement, ...]:
    """Parse a script and return its statements, in order; O(length).

    ``games`` are the aggregates that are allowed besides SUM, COUNT, AVG, VAR_POP and VAR_SAMP.

    >>> parse("REGISTER PREDICATE eu AS (region = 'EU-West') ON server_events")[0].name
    'eu'
    """
    return tuple(statement(cursor, games) for cursor in divide(tokenize(script)))


@_bounded
def parse_predicate(text: str) -> Expression:
    """Parse a single condition, such as ``region_eu AND NOT tier_premium``."""
    return _single(text, "a condition")


@_bounded
def parse_expression(text: str) -> Expression:
    """Parse a single measure, such as ``latency * 2``."""
    return _single(text, "an expression")


@_bounded
def parse_aggregate(text: str, games: Collection[str] = AGGREGATES) -> Aggregate:
    """Parse a single aggregate: ``AVG(latency)``, ``COUNT(*)``, or ``AVG`` without a measure."""
    cursor = _cursor(text)
    parsed = aggregate(cursor, games, bare=True)
    cursor.finish("the end")
    return parsed


def _single(text: str, what: str) -> Expression:
    cursor = _cursor(text)
    parsed = expression(cursor, what)
    cursor.finish("an operator such as AND or =")
    return parsed


def _cursor(text: str) -> Cursor:
    *tokens, end = tokenize(text)
    return Cursor(tokens, end)
