"""Language: text → model, through tokens, expressions and statements."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from typing import ParamSpec, TypeVar

from ids.errors import ScriptError, in_script
from ids.language.lexer import Cursor, tokenize
from ids.language.parser import FUNCTIONS, expression
from ids.language.statements import AGGREGATES, aggregate, divide, statement
from ids.model import Aggregate, Expression, Statement

__all__ = [
    "AGGREGATES",
    "FUNCTIONS",
    "parse",
    "parse_aggregate",
    "parse_expression",
    "parse_predicate",
]

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _bounded(parser: Callable[_P, _T]) -> Callable[_P, _T]:
    """The last resort: a caller deep in its own stack may leave too little of it for us."""

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
    """The statements of a script, in order; O(length).

    ``games`` names the aggregates known besides SUM, COUNT, AVG, VAR_POP and VAR_SAMP.

    >>> parse("REGISTER PREDICATE eu AS (region = 'EU-West') ON server_events")[0].name
    'eu'
    """
    return tuple(statement(cursor, games) for cursor in divide(tokenize(script)))


@_bounded
def parse_predicate(text: str) -> Expression:
    """A condition alone, such as ``region_eu AND NOT tier_premium``."""
    return _alone(text, "a condition")


@_bounded
def parse_expression(text: str) -> Expression:
    """A measure alone, such as ``latency * 2``."""
    return _alone(text, "an expression")


@_bounded
def parse_aggregate(text: str, games: Collection[str] = AGGREGATES) -> Aggregate:
    """An aggregate alone: ``AVG(latency)``, ``COUNT(*)``, or ``AVG`` without its measure."""
    cursor = _cursor(text)
    parsed = aggregate(cursor, games, bare=True)
    cursor.finish("nothing more")
    return parsed


def _alone(text: str, what: str) -> Expression:
    cursor = _cursor(text)
    parsed = expression(cursor, what)
    cursor.finish("an operator such as AND or =")
    return parsed


def _cursor(text: str) -> Cursor:
    *tokens, end = tokenize(text)
    return Cursor(tokens, end)
