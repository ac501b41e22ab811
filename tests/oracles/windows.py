"""A continuous query the slow way: every window's rows are gathered anew, every sum is exact.

Rows are dicts with None for NULL and aware datetimes for timestamps. Nothing is incremental, and
nothing is shared with the engine but the parsed statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from ids.model import (
    Aggregate,
    Column,
    CountWindow,
    Emit,
    Expression,
    Item,
    ItemKind,
    Name,
    Select,
    TimeWindow,
)
from tests.oracles.shapley import CLOSED, closed_form, shapley_values, worth
from tests.oracles.three_valued import evaluate, nan

__all__ = ["Number", "Window", "answer", "emits", "kept", "window_at", "windows", "written_out"]

Row = Mapping[str, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class Number(NamedTuple):
    """An exact answer (None for NULL), and what its rounding may be measured against."""

    value: Fraction | None
    size: Fraction


class Window(NamedTuple):
    """One emit: its key, its instant, its rows, and the rows of the window one slide before."""

    key: tuple[Any, ...]
    emit_at: Any
    rows: Sequence[Row]
    before: Sequence[Row]


def emits(
    select: Select, rows: Iterable[Row], registered: Mapping[str, Expression] = {}
) -> list[dict[str, Any]]:
    """Every row of the output, under its column names."""
    select = written_out(select, registered)
    found = list(windows(select, kept(select, rows)))
    if select.emit is Emit.FINAL:
        last = {_ranks(window.key): number for number, window in enumerate(found)}
        found = [found[number] for number in sorted(last.values())]
    return [answer(select, window) for window in found]


def written_out(select: Select, registered: Mapping[str, Expression]) -> Select:
    """The query without a registered name in it."""
    items = [
        replace(
            item,
            aggregate=replace(item.aggregate, argument=_columns(item.aggregate.argument, {})),
            predicate=_columns(item.predicate, registered),
        )
        for item in select.items
    ]
    return replace(select, items=tuple(items), where=_columns(select.where, registered))


def _columns(part: Any, registered: Mapping[str, Expression]) -> Any:
    """Every name in a tree written out: a registered condition, or else a column."""
    if isinstance(part, Name):
        if part.name in registered:
            return _columns(registered[part.name], registered)
        return Column(part.name)
    if isinstance(part, tuple):
        return tuple(_columns(each, registered) for each in part) if part else part
    if not is_dataclass(part) or isinstance(part, type):
        return part
    names = [field.name for field in fields(part) if field.name != "at"]
    return replace(part, **{name: _columns(getattr(part, name), registered) for name in names})


def kept(select: Select, rows: Iterable[Row]) -> list[Row]:
    """The rows WHERE keeps, in the order of ORDER BY; equal ones as they came."""
    where = select.where
    held = [row for row in rows if where is None or evaluate(where, row) is True]
    return sorted(held, key=lambda row: _ranks(row[name] for name in select.window.order_by))


def windows(select: Select, rows: Sequence[Row]) -> Iterator[Window]:
    """Every emit of rows that are in order, in the order of the output."""
    frame = select.window.frame
    if isinstance(frame, CountWindow):
        yield from _count_windows(select, frame, rows)
    else:
        yield from _time_windows(select, frame, rows)


def _count_windows(select: Select, frame: CountWindow, rows: Sequence[Row]) -> Iterator[Window]:
    seen: dict[Any, list[Row]] = {}
    for row in rows:
        mine = seen.setdefault(_ranks(_key(select, row)), [])
        mine.append(row)
        if len(mine) % frame.slide == 0:
            earlier = mine[: -frame.slide]
            instant = row[select.window.order_by[0]]
            yield Window(_key(select, row), instant, mine[-frame.size :], earlier[-frame.size :])


def _time_windows(select: Select, frame: TimeWindow, rows: Sequence[Row]) -> Iterator[Window]:
    slide, duration = frame.slide, frame.duration
    assert slide is not None
    time = select.window.order_by[0]
    by_key: dict[Any, list[Row]] = {}
    for row in rows:
        by_key.setdefault(_ranks(_key(select, row)), []).append(row)
    last = max((_up(_micros(row[time]), slide) for row in rows), default=0)

    spoken = {
        (instant, key)
        for key, mine in by_key.items()
        for row in mine
        for instant in range(_up(_micros(row[time]), slide), _micros(row[time]) + duration, slide)
        if instant <= last
    }
    for instant, key in sorted(spoken):
        yield window_at(select, by_key[key], EPOCH + instant * MICROSECOND)


def window_at(select: Select, rows: Sequence[Row], instant: datetime) -> Window:
    """The window of one key's rows at one instant, which is not empty: (t - d, t]."""
    frame, time = select.window.frame, select.window.order_by[0]
    assert isinstance(frame, TimeWindow)
    assert frame.slide is not None

    def inside(t: int) -> list[Row]:
        return [row for row in rows if t - frame.duration < _micros(row[time]) <= t]

    here = inside(_micros(instant))
    return Window(_key(select, here[0]), instant, here, inside(_micros(instant) - frame.slide))


def answer(select: Select, window: Window) -> dict[str, Any]:
    """One row of the output: keys, emit_at, n, and each item as ``Number``."""
    row: dict[str, Any] = dict(zip(select.window.partition_by, window.key, strict=True))
    row |= {"emit_at": window.emit_at, "n": len(window.rows)}
    for number, item in enumerate(select.items, start=1):
        row |= _item(item, item.alias or f"expr_{number}", window)
    return row


def _item(item: Item, name: str, window: Window) -> dict[str, Number]:
    values, holds = _players(item, window.rows)
    game = item.aggregate.function
    if item.kind is ItemKind.AGGREGATE:
        return {name: _aggregate(game, values)}
    value, share = _attribution(game, values, holds)
    size = abs(share) + abs(value - share)
    if item.kind is ItemKind.DELTA:
        earlier, part = _attribution(game, *_players(item, window.before))
        return {name: Number(value - earlier, size + abs(part) + abs(earlier - part))}
    parts = {"SHARE": share, "LIFT": value - share}
    asked = {f"{name}_{part.lower()}": Number(parts[part], size) for part in item.parts}
    return {name: Number(value, size)} | asked


def _players(item: Item, rows: Sequence[Row]) -> tuple[tuple[Fraction, ...], tuple[int, ...]]:
    """The values of the rows that play, and which of them hold the predicate."""
    playing = [(_measured(item.aggregate, row), row) for row in rows]
    played = [(value, row) for value, row in playing if value is not None]
    holds: tuple[int, ...] = ()
    if item.predicate is not None:
        predicate = item.predicate
        holds = tuple(i for i, (_, row) in enumerate(played) if evaluate(predicate, row) is True)
    return tuple(value for value, _ in played), holds


def _measured(aggregate: Aggregate, row: Row) -> Fraction | None:
    if aggregate.argument is None:
        return Fraction(1)
    value = evaluate(aggregate.argument, row)
    if value is None:
        return None
    # counting asks only whether there is a value; what is summed is a double
    return Fraction(1) if aggregate.function == "COUNT" else Fraction(float(value))


def _aggregate(game: str, values: tuple[Fraction, ...]) -> Number:
    needed = {"COUNT": 0, "VAR_SAMP": 2}.get(game, 1)
    if len(values) < needed:
        return Number(None, Fraction(0))
    value = _worth(game, values)
    return Number(value, abs(value))


@cache
def _attribution(
    game: str, values: tuple[Fraction, ...], holds: tuple[int, ...]
) -> tuple[Fraction, Fraction]:
    """The predicate's attribution and its share."""
    if not values:
        return Fraction(0), Fraction(0)
    share = Fraction(len(holds), len(values)) * _worth(game, values)
    if game in CLOSED:
        return closed_form(game, values, holds), share
    each = _shapley(game, values)
    return sum((each[i] for i in holds), Fraction(0)), share


@cache
def _shapley(game: str, values: tuple[Fraction, ...]) -> list[Fraction]:
    return shapley_values(game, values)


@cache
def _worth(game: str, values: tuple[Fraction, ...]) -> Fraction:
    return worth(game, values)  # type: ignore[arg-type]  # as exact over fractions


def _key(select: Select, row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in select.window.partition_by)


def _ranks(key: Iterable[Any]) -> tuple[tuple[int, Any], ...]:
    """What keys are told apart and ordered by: NULL comes first, NaN last (and is one value)."""
    return tuple((0, 0) if part is None else (2, 0) if nan(part) else (1, part) for part in key)


def _micros(instant: datetime) -> int:
    return (instant - EPOCH) // MICROSECOND


def _up(micros: int, slide: int) -> int:
    """The first whole multiple of the slide that is not before."""
    return -(-micros // slide) * slide
