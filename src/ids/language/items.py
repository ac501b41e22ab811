"""SELECT items: what is asked for, and under which names it comes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ids.errors import ScriptError, closest
from ids.language.fragments import expression_of
from ids.language.tokens import Cursor, Kind
from ids.language.windows import integer
from ids.model.query import Aggregate, Approximate, Item, ItemKind

__all__ = ["AGGREGATES", "aggregate", "column_names", "item", "refuse_clashes"]

AGGREGATES = ("SUM", "COUNT", "AVG", "VAR_POP", "VAR_SAMP", "M3", "M4")
"""The games known when none are named."""

_ALWAYS = ("SUM", "COUNT", "AVG", "VAR_POP", "VAR_SAMP")
_SYNONYMS = {"MEAN": "AVG", "VARIANCE": "VAR_SAMP"}
_SHAPLEY = {kind.value: kind for kind in (ItemKind.ATTRIBUTE, ItemKind.DELTA)}
_PARTS = ("SHARE", "LIFT")


def item(cursor: Cursor, games: Collection[str]) -> Item:
    """SHAPLEY_ATTRIBUTE(…), SHAPLEY_DELTA(…) or an aggregate, each with an alias or without."""
    start = cursor.token
    kind = _SHAPLEY.get(start.word)
    if kind is None:
        measured = aggregate(cursor, games, bare=False, others=_SHAPLEY)
        return Item(ItemKind.AGGREGATE, measured, alias=_alias(cursor), at=start.at)
    cursor.take()
    cursor.expect("(")
    measured = aggregate(cursor, games, bare=False)
    if not cursor.accept(","):
        cursor.fail("',' and a predicate")
    predicate = expression_of(cursor.fragment(), cursor.token, "a predicate")
    parts: tuple[str, ...] = ()
    if cursor.sees("WITH"):
        parts = _parts(cursor, kind)
    approximate = _approximate(cursor) if cursor.sees("APPROXIMATE") else None
    if not cursor.sees(")"):
        cursor.fail("WITH (SHARE, LIFT), APPROXIMATE … or ')'" if not approximate else "')'")
    cursor.take()
    return Item(kind, measured, predicate, parts, approximate, _alias(cursor), start.at)


def aggregate(
    cursor: Cursor, games: Collection[str], *, bare: bool, others: Collection[str] = ()
) -> Aggregate:
    """AVG(x), COUNT(*), and where ``bare`` also AVG alone; ``others`` may be meant as well."""
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
    argument = expression_of(cursor.fragment(), cursor.token, f"what {token.word} is taken over")
    cursor.expect(")")
    return Aggregate(function, argument, token.at)


def _parts(cursor: Cursor, kind: ItemKind) -> tuple[str, ...]:
    start = cursor.expect("WITH")
    if kind is ItemKind.DELTA:
        raise ScriptError("SHAPLEY_DELTA takes no WITH", start.at, "ask SHAPLEY_ATTRIBUTE for it")
    cursor.expect("(")
    parts: list[str] = []
    while True:
        token = cursor.token
        if token.word not in _PARTS:
            cursor.fail("SHARE or LIFT")
        if token.word in parts:
            raise ScriptError(f"{token.word} asked twice", token.at, "once is enough")
        parts.append(cursor.take().word)
        if cursor.accept(")"):
            return tuple(parts)
        if not cursor.accept(","):
            cursor.fail("',' or ')'")


def _approximate(cursor: Cursor) -> Approximate:
    start = cursor.expect("APPROXIMATE", "USING", "RESERVOIR", "SAMPLE")
    at = cursor.token.at
    size = integer(cursor, "the size of the sample, a whole number of at least 1")
    if size < 1:
        raise ScriptError("a sample of 0 rows", at, "it must hold at least 1")
    if not cursor.accept("CONFIDENCE"):
        return Approximate(size, at=start.at)
    token = cursor.token
    if token.kind is not Kind.NUMBER:
        cursor.fail("a confidence between 0 and 1, such as 0.95")
    try:
        confidence = float(cursor.take().text)
    except ValueError:
        confidence = 0.0
    if not 0.0 < confidence < 1.0:
        hint = "it must lie between 0 and 1, such as 0.95"
        raise ScriptError(f"a confidence of {token.shown}", token.at, hint)
    return Approximate(size, confidence, start.at)


def _alias(cursor: Cursor) -> str | None:
    return cursor.name("an alias").text if cursor.accept("AS") else None


def column_names(asked: Item, number: int) -> Iterator[str]:
    """The columns an item becomes; ``number`` counts a SELECT's items from 1."""
    alias = asked.alias or f"expr_{number}"
    yield alias
    yield from (f"{alias}_{part.lower()}" for part in asked.parts)
    if asked.approximate:
        yield f"{alias}_error"
        yield f"{alias}_mechanism"


def refuse_clashes(items: Sequence[Item], partition_by: Sequence[str]) -> None:
    """Every column of the answer needs a name of its own, whatever the case of its letters."""
    taken = {"n": "the number of rows", "emit_at": "the emit's instant"}
    for column in partition_by:
        if column.lower() in taken:
            fact = f"PARTITION BY {column[:40]!r} clashes with {taken[column.lower()]}"
            raise ScriptError(fact, items[0].at, "rename the column")
        taken[column.lower()] = "a PARTITION BY column"
    for number, asked in enumerate(items, 1):
        for name in column_names(asked, number):
            other = taken.setdefault(name.lower(), f"a column of item {number}")
            if other != f"a column of item {number}":
                fact = f"column name {name[:40]!r} is already that of {other}"
                raise ScriptError(fact, asked.at, "choose another alias")
