"""The WINDOW clause: which rows are inside, and when the query speaks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ids.errors import Position, ScriptError
from ids.language.tokens import Cursor, Kind, Token
from ids.model.query import WindowClause
from ids.model.window import CountWindow, TimeWindow, microseconds

__all__ = ["integer", "window_clause"]

_AMOUNT = re.compile(r"\s*\d+(\.\d+)?\s*", re.ASCII)
_EXAMPLE = "write INTERVAL '10' MINUTE"


def window_clause(cursor: Cursor) -> WindowClause:
    """WINDOW w AS ( [PARTITION BY …] ORDER BY … frame [slide] )."""
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
            hint = "windows move forward in time: leave DESC out"
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
    # ROWS n PRECEDING is the paper's n tuples; the standard's BETWEEN has the current row besides.
    size = integer(cursor, "a number of rows") + between
    cursor.expect("PRECEDING")
    if between:
        cursor.expect("AND", "CURRENT", "ROW")
    slide = 1
    if cursor.accept("SLIDE"):
        if cursor.sees("INTERVAL"):
            hint = "a window of rows slides by rows: write SLIDE n ROWS"
            raise ScriptError("SLIDE INTERVAL with ROWS", cursor.token.at, hint)
        slide = integer(cursor, "a number of rows")
        if not cursor.accept("ROW"):
            cursor.expect("ROWS")
    with _placed(start.at):
        return CountWindow(size, slide)


def _range(cursor: Cursor, start: Token) -> TimeWindow:
    between = cursor.accept("BETWEEN")
    duration = _interval(cursor)
    cursor.expect("PRECEDING")
    if between:
        cursor.expect("AND", "CURRENT", "ROW")
    slid = cursor.token
    if not cursor.accept("SLIDE"):
        hint = "add SLIDE INTERVAL … (it must divide the window)"
        raise ScriptError("RANGE without a slide", start.at, hint)
    if not cursor.sees("INTERVAL"):
        cursor.fail("INTERVAL (a window of time slides by time)")
    slide = _interval(cursor)
    with _placed(slid.at):
        return TimeWindow(duration, slide)


def _interval(cursor: Cursor) -> int:
    """INTERVAL '10' MINUTE, INTERVAL 10 MINUTES, INTERVAL '10 minutes', in microseconds."""
    cursor.expect("INTERVAL")
    amount = cursor.token
    if amount.kind not in (Kind.NUMBER, Kind.STRING):
        cursor.fail("a span of time such as '10' MINUTE")
    cursor.take()
    with _placed(amount.at):
        if amount.kind is Kind.STRING and not _AMOUNT.fullmatch(amount.text):
            return microseconds(amount.text)
        if not _AMOUNT.fullmatch(amount.text):
            raise ScriptError(f"not a number: {amount.shown}", hint=_EXAMPLE)
        unit = cursor.token
        if unit.kind is not Kind.WORD or unit.word in ("PRECEDING", "SLIDE"):
            cursor.fail("a unit of time such as MINUTE")
        with _placed(unit.at):
            cursor.take()
            return microseconds(amount.text, unit.text)


def integer(cursor: Cursor, what: str) -> int:
    """Read a whole number, not negative."""
    token = cursor.token
    if token.kind is not Kind.NUMBER or not re.fullmatch(r"[0-9]{1,18}", token.text):
        cursor.fail(what)
    return int(cursor.take().text)


@contextmanager
def _placed(at: Position) -> Iterator[None]:
    """Give the model's errors, which know no script, their place in it."""
    try:
        yield
    except ScriptError as error:
        if error.at is not None:
            raise
        raise ScriptError(error.fact, at, error.hint) from None
