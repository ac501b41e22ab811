"""Parser of statements: REGISTER, DROP, SHOW, EXPLAIN and SELECT."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ids.errors import ArgumentError, Position, ScriptError, UnknownNameError, closest
from ids.language.lexer import Cursor, Kind, Token
from ids.language.parser import expression
from ids.model import (
    Aggregate,
    Approximate,
    CountWindow,
    Drop,
    Emit,
    Explain,
    Item,
    ItemKind,
    Register,
    Select,
    Show,
    Statement,
    TimeWindow,
    WindowClause,
    microseconds,
)

AGGREGATES = ("SUM", "COUNT", "AVG", "VAR_POP", "VAR_SAMP", "M3", "M4")
"""The default aggregates."""

_ALWAYS = ("SUM", "COUNT", "AVG", "VAR_POP", "VAR_SAMP")
_SYNONYMS = {"MEAN": "AVG", "VARIANCE": "VAR_SAMP"}
_SHAPLEY = {kind.value: kind for kind in (ItemKind.ATTRIBUTE, ItemKind.DELTA)}
_OPENINGS = ("REGISTER", "DROP", "SHOW", "EXPLAIN", "SELECT")
_AMOUNT = re.compile(r"\s*\d+(\.\d+)?\s*", re.ASCII)


def divide(tokens: Sequence[Token]) -> Iterator[Cursor]:
    """Return a cursor for each statement that is not empty."""
    start = 0
    for index, token in enumerate(tokens):
        if token.kind is Kind.END or token.word == ";":
            if index > start:
                yield Cursor(tokens[start:index], token._replace(kind=Kind.END, word=""))
            start = index + 1


def statement(cursor: Cursor, games: Collection[str]) -> Statement:
    """Parse one statement."""
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
    condition = expression(cursor, "a condition")
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
    items = [_item(cursor, games)]
    while cursor.accept(","):
        items.append(_item(cursor, games))
    if not cursor.accept("FROM"):
        cursor.fail("AS, ',' or FROM" if items[-1].alias is None else "',' or FROM")
    table_at = cursor.token.at
    table = cursor.dotted("a table")
    where = expression(cursor, "a condition") if cursor.accept("WHERE") else None
    window = _window_clause(cursor)
    emit = _emit(cursor)
    _refuse_clashes(items, window.partition_by)
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


def _item(cursor: Cursor, games: Collection[str]) -> Item:
    """Parse SHAPLEY_ATTRIBUTE(…), SHAPLEY_DELTA(…) or an aggregate, with an optional alias."""
    start = cursor.token
    kind = _SHAPLEY.get(start.word)
    if kind is None:
        measured = aggregate(cursor, games, others=_SHAPLEY)
        return Item(ItemKind.AGGREGATE, measured, alias=_alias(cursor), at=start.at)
    cursor.take()
    cursor.expect("(")
    measured = aggregate(cursor, games)
    if not cursor.accept(","):
        cursor.fail("',' and a predicate")
    predicate = expression(cursor, "a predicate")
    parts = _parts(cursor, kind) if cursor.sees("WITH") else ()
    approximate = _approximate(cursor) if cursor.sees("APPROXIMATE") else None
    if not cursor.sees(")"):
        cursor.fail("WITH (SHARE, LIFT), APPROXIMATE … or ')'" if not approximate else "')'")
    cursor.take()
    return Item(kind, measured, predicate, parts, approximate, _alias(cursor), start.at)


def aggregate(
    cursor: Cursor, games: Collection[str], *, bare: bool = False, others: Collection[str] = ()
) -> Aggregate:
    """Parse AVG(x) or COUNT(*), and if ``bare`` also AVG; ``others`` are only for hints."""
    token = cursor.token
    known = tuple(dict.fromkeys((*_ALWAYS, *(game.upper() for game in games))))
    hint = "known: " + ", ".join(known)
    if token.kind is not Kind.WORD:
        cursor.fail("an aggregate such as AVG(x) or SHAPLEY_ATTRIBUTE(…)")
    function = _SYNONYMS.get(token.word, token.word)
    cursor.take()
    if not cursor.sees("(") and not (bare and cursor.token.kind is Kind.END):
        if function in known:
            cursor.fail(f"'(' after {token.word}")
        raise ScriptError(f"not an aggregate: {token.shown}", token.at, hint)
    if function not in known:
        near = closest(function, (*known, *others), hint)
        raise ScriptError(f"unknown aggregate {token.shown}", token.at, near)
    if not cursor.accept("("):
        return Aggregate(function, None, token.at)
    if function == "COUNT" and cursor.accept("*", ")"):
        return Aggregate(function, None, token.at)
    argument = expression(cursor, f"the argument of {token.word}")
    cursor.expect(")")
    return Aggregate(function, argument, token.at)


def _parts(cursor: Cursor, kind: ItemKind) -> tuple[str, ...]:
    start = cursor.expect("WITH")
    if kind is ItemKind.DELTA:
        raise ScriptError("SHAPLEY_DELTA does not take WITH", start.at, "use SHAPLEY_ATTRIBUTE")
    cursor.expect("(")
    parts: list[str] = []
    while True:
        token = cursor.token
        if token.word not in ("SHARE", "LIFT"):
            cursor.fail("SHARE or LIFT")
        if token.word in parts:
            raise ScriptError(f"{token.word} is repeated", token.at, "list it once")
        parts.append(cursor.take().word)
        if cursor.accept(")"):
            return tuple(parts)
        if not cursor.accept(","):
            cursor.fail("',' or ')'")


def _approximate(cursor: Cursor) -> Approximate:
    start = cursor.expect("APPROXIMATE", "USING", "RESERVOIR", "SAMPLE")
    with _located(cursor.token.at):
        size = _integer(cursor, "the size of the sample, a whole number of at least 1")
        sample = Approximate(size, at=start.at)
    if not cursor.accept("CONFIDENCE"):
        return sample
    token = cursor.token
    if token.kind is not Kind.NUMBER or token.text[-1].isalpha():
        cursor.fail("a confidence between 0 and 1, such as 0.95")
    with _located(cursor.take().at):
        return replace(sample, confidence=float(token.text))


def _alias(cursor: Cursor) -> str | None:
    return cursor.name("an alias").text if cursor.accept("AS") else None


def _refuse_clashes(items: Sequence[Item], partition_by: Sequence[str]) -> None:
    """Reject duplicate names of output columns, which are case-insensitive."""
    taken = {"n": "the number of rows", "emit_at": "the emit's timestamp"}
    for column in partition_by:
        if column.lower() in taken:
            fact = f"PARTITION BY {column[:40]!r} clashes with {taken[column.lower()]}"
            raise ScriptError(fact, items[0].at, "rename the column")
        taken[column.lower()] = "a PARTITION BY column"
    for number, asked in enumerate(items, 1):
        for name in _column_names(asked, number):
            other = taken.setdefault(name.lower(), f"item {number}")
            if other != f"item {number}":
                fact = f"column name {name[:40]!r} is already used for {other}"
                raise ScriptError(fact, asked.at, "choose another alias")


def _column_names(asked: Item, number: int) -> Iterator[str]:
    """Return the output columns of an item; ``number`` is its number in the SELECT, from 1."""
    alias = asked.alias or f"expr_{number}"
    yield alias
    yield from (f"{alias}_{part.lower()}" for part in asked.parts)
    if asked.approximate:
        yield f"{alias}_error"
        yield f"{alias}_mechanism"


def _window_clause(cursor: Cursor) -> WindowClause:
    """Parse WINDOW w AS ( [PARTITION BY …] ORDER BY … frame [slide] )."""
    if not cursor.sees("WINDOW"):
        cursor.fail("WINDOW w AS (ORDER BY … ROWS n PRECEDING)")
    at = cursor.take().at
    cursor.name("the window's name")
    cursor.expect("AS")
    cursor.expect("(")
    partition_by = _columns(cursor) if cursor.accept("PARTITION", "BY") else []
    if not cursor.accept("ORDER", "BY"):
        cursor.fail("ORDER BY and the event time" if partition_by else "PARTITION BY or ORDER BY")
    order_by = _columns(cursor, ordered=True)
    frame = _frame(cursor)
    cursor.expect(")")
    return WindowClause(
        order_by=tuple(name.text for name in order_by),
        frame=frame,
        partition_by=tuple(name.text for name in partition_by),
        at=at,
        columns_at={name.text: name.at for name in (*order_by, *partition_by)},
    )


def _columns(cursor: Cursor, *, ordered: bool = False) -> list[Token]:
    names: list[Token] = []
    while True:
        names.append(cursor.name("a column"))
        if ordered and not cursor.accept("ASC") and cursor.sees("DESC"):
            hint = "windows move forward in time: leave out DESC"
            raise ScriptError("ORDER BY … DESC", cursor.token.at, hint)
        if not cursor.accept(","):
            return names


def _frame(cursor: Cursor) -> CountWindow | TimeWindow:
    start = cursor.token
    if cursor.accept("ROWS"):
        return _rows(cursor, start)
    if cursor.accept("RANGE"):
        return _range(cursor, start)
    return cursor.fail("ROWS n PRECEDING or RANGE INTERVAL … PRECEDING")


def _rows(cursor: Cursor, start: Token) -> CountWindow:
    between = cursor.accept("BETWEEN")
    rows = _integer(cursor, "a number of rows")
    cursor.expect("PRECEDING")
    if between:
        cursor.expect("AND", "CURRENT", "ROW")
    slide = 1
    if cursor.accept("SLIDE"):
        if cursor.sees("INTERVAL"):
            hint = "a count window slides by rows: write SLIDE n ROWS"
            raise ScriptError("SLIDE INTERVAL with ROWS", cursor.token.at, hint)
        slide = _integer(cursor, "a number of rows")
        if not cursor.accept("ROW"):
            cursor.expect("ROWS")
    with _located(start.at):
        return CountWindow.preceding(rows, slide, and_current=between)


def _range(cursor: Cursor, start: Token) -> TimeWindow:
    between = cursor.accept("BETWEEN")
    duration = _interval(cursor)
    cursor.expect("PRECEDING")
    if between:
        cursor.expect("AND", "CURRENT", "ROW")
    slid = cursor.token
    if not cursor.accept("SLIDE"):
        hint = "add SLIDE INTERVAL …, which must divide the window"
        raise ScriptError("RANGE without a slide", start.at, hint)
    if not cursor.sees("INTERVAL"):
        cursor.fail("INTERVAL (a time window slides by a duration)")
    slide = _interval(cursor)
    with _located(slid.at):
        return TimeWindow(duration, slide)


def _interval(cursor: Cursor) -> int:
    """Parse INTERVAL '10' MINUTE, 10 MINUTES or '10 minutes'; return microseconds."""
    cursor.expect("INTERVAL")
    amount = cursor.token
    if amount.kind not in (Kind.NUMBER, Kind.STRING):
        cursor.fail("a duration such as '10' MINUTE")
    cursor.take()
    with _located(amount.at):
        if amount.kind is Kind.STRING and not _AMOUNT.fullmatch(amount.text):
            return microseconds(amount.text)
        if not _AMOUNT.fullmatch(amount.text):
            hint = "write INTERVAL '10' MINUTE"
            raise ScriptError(f"not a number: {amount.shown}", amount.at, hint)
        unit = cursor.token
        if unit.kind is not Kind.WORD or unit.word in ("PRECEDING", "SLIDE"):
            cursor.fail("a unit of time such as MINUTE")
        with _located(cursor.take().at):
            return microseconds(amount.text, unit.text)


def _integer(cursor: Cursor, what: str) -> int:
    """Read a whole number that is not negative."""
    token = cursor.token
    if token.kind is not Kind.NUMBER or not re.fullmatch(r"[0-9]{1,18}", token.text):
        cursor.fail(what)
    return int(cursor.take().text)


@contextmanager
def _located(at: Position) -> Iterator[None]:
    """Turn an argument error of the data model into a script error at this position."""
    try:
        yield
    except ArgumentError as error:
        raise ScriptError(error.fact, at, error.hint) from None
