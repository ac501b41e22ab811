"""Statements: one cursor → one statement."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ids.errors import ScriptError, UnknownNameError
from ids.language.fragments import expression_of
from ids.language.items import item, refuse_clashes
from ids.language.tokens import Cursor, Kind, Token
from ids.language.windows import window_clause
from ids.model.query import Drop, Emit, Explain, Register, Select, Show, Statement

__all__ = ["divide", "statement"]

_OPENINGS = ("REGISTER", "DROP", "SHOW", "EXPLAIN", "SELECT")


def divide(tokens: Sequence[Token]) -> Iterator[Cursor]:
    """A cursor for each statement that is not empty."""
    start = 0
    for index, token in enumerate(tokens):
        if token.kind is Kind.END or token.word == ";":
            if index > start:
                yield Cursor(tokens[start:index], token._replace(kind=Kind.END, word=""))
            start = index + 1


def statement(cursor: Cursor, games: Collection[str]) -> Statement:
    """The one statement under the cursor."""
    start = cursor.token
    parsed: Statement
    if start.word == "SELECT":
        return _select(cursor, games)
    if cursor.accept("EXPLAIN"):
        if not cursor.sees("SELECT"):
            cursor.fail("SELECT after EXPLAIN")
        return Explain(_select(cursor, games))
    if start.word not in _OPENINGS:
        if start.kind is not Kind.WORD:
            cursor.fail("a statement: REGISTER PREDICATE, DROP PREDICATE, … or SELECT")
        raise UnknownNameError("statement", start.text[:40], _OPENINGS, start.at)
    cursor.take()
    if start.word == "SHOW":
        cursor.expect("PREDICATES")
        parsed = Show()
    else:
        cursor.expect("PREDICATE")
        parsed = _register(cursor, start) if start.word == "REGISTER" else _drop(cursor, start)
    cursor.finish("';'")
    return parsed


def _register(cursor: Cursor, start: Token) -> Register:
    name = cursor.name("the predicate's name").text
    cursor.expect("AS")
    cursor.expect("(")
    condition = expression_of(cursor.fragment(), cursor.token, "a condition")
    cursor.expect(")")
    cursor.expect("ON")
    table_at = cursor.token.at
    return Register(name, condition, cursor.dotted("a table"), start.at, table_at)


def _drop(cursor: Cursor, start: Token) -> Drop:
    name = cursor.name("the predicate's name").text
    cursor.expect("ON")
    return Drop(name, cursor.dotted("a table"), start.at)


def _select(cursor: Cursor, games: Collection[str]) -> Select:
    start = cursor.expect("SELECT")
    items = [item(cursor, games)]
    while cursor.accept(","):
        items.append(item(cursor, games))
    if not cursor.accept("FROM"):
        cursor.fail("AS, ',' or FROM" if items[-1].alias is None else "',' or FROM")
    table_at = cursor.token.at
    table = cursor.dotted("a table")
    where = None
    if cursor.accept("WHERE"):
        where = expression_of(cursor.fragment(), cursor.token, "a condition")
    window = window_clause(cursor)
    emit = _emit(cursor)
    refuse_clashes(items, window.partition_by)
    return Select(tuple(items), table, window, where, emit, start.at, table_at)


def _emit(cursor: Cursor) -> Emit:
    if cursor.token.kind is Kind.END:
        hint = "end the query with EMIT CHANGES or EMIT FINAL"
        raise ScriptError("missing EMIT", cursor.token.at, hint)
    cursor.expect("EMIT")
    if cursor.token.word not in Emit.__members__:
        cursor.fail("CHANGES or FINAL")
    emit = Emit[cursor.take().word]
    cursor.finish("';'")
    return emit
