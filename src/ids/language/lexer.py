"""Lexer: text → tokens. sqlglot's Spark tokenizer cuts, this module keeps it honest.

The tokenizer swallows everything behind a word such as SHOW or EXPLAIN when it opens a statement,
drops an unterminated comment without a word, and reads some templates as comments. So it is given
a masked text of the same length: comments blank, statement separators as commas, and one bracket
in front. Offsets, and with them positions, stay those of the script.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from sqlglot import Token as Raw
from sqlglot import TokenType
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from ids.errors import Position, ScriptError
from ids.language.literals import unescape
from ids.language.tokens import Kind, Token

__all__ = ["MAX_CHARACTERS", "tokenize"]

MAX_CHARACTERS = 2_000_000

_SPAN = re.compile(
    r"""(?P<literal>\b[rR]'[^']*'|\b[rR]"[^"]*"
        |'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*"|`[^`]*`)
      |(?P<line>--[^\n]*)|(?P<block>/\*)|(?P<separator>;)
      |(?P<open>['"`])|(?P<template>\{\#)""",
    re.VERBOSE | re.DOTALL,
)
_EDGE = re.compile(r"/\*|\*/")
_PART = re.compile(r"\S+")
_WORD = re.compile(r"\w+")
_SYMBOL = re.compile(r"[!-/:-@\[-^{-~]+")
_OPENED = {"'": "string", '"': "string", "`": "name"}


class _Places:
    """Offset → line and column, by bisection over the line starts."""

    def __init__(self, script: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", script))]

    def at(self, offset: int) -> Position:
        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)


def tokenize(script: str) -> list[Token]:
    """All tokens, statements divided by ';', the last token the end; O(length)."""
    if not isinstance(script, str):
        raise ScriptError(f"a script is text, not {type(script).__name__}")
    if len(script) > MAX_CHARACTERS:
        raise ScriptError(
            f"a script of {len(script)} characters", hint=f"at most {MAX_CHARACTERS} are read"
        )
    places = _Places(script)
    _refuse_unprintable(script, places)
    masked, separators = _mask(script, places)
    try:
        raw = Dialect.get_or_raise("spark").tokenize("(" + masked)
    except SqlglotError:
        raise ScriptError("the script cannot be read as SQL") from None
    tokens = list(_tokens(script, masked, raw[1:], separators, places))
    size = len(script.rstrip())
    return [*tokens, Token(Kind.END, "", places.at(size))]


def _refuse_unprintable(script: str, places: _Places) -> None:
    bad = re.search("[\0\ud800-\udfff]", script)
    if bad:
        raise ScriptError(
            f"character {bad.group()!r}", places.at(bad.start()), "a script is Unicode text"
        )


def _mask(script: str, places: _Places) -> tuple[str, set[int]]:
    """The text without comments, and where its statements end."""
    pieces: list[str] = []
    separators: set[int] = set()
    done = 0
    while match := _SPAN.search(script, done):
        start, end = match.span()
        pieces.append(script[done:start])
        match match.lastgroup:
            case "literal":
                pieces.append(match.group())
            case "separator":
                separators.add(start)
                pieces.append(",")
            case "line":
                pieces.append(" " * (end - start))
            case "block":
                end = _block_end(script, start, places)
                pieces.append(re.sub(r"[^\n]", " ", script[start:end]))
            case "open":
                kind = _OPENED[match.group()]
                hint = f"expected {match.group()} at its end"
                raise ScriptError(f"unterminated {kind}", places.at(start), hint)
            case _:
                raise ScriptError(f"unexpected {match.group()!r}", places.at(start))
        done = end
    pieces.append(script[done:])
    return "".join(pieces), separators


def _block_end(script: str, start: int, places: _Places) -> int:
    """Where a block comment ends; as in Spark, they nest."""
    depth = 0
    for edge in _EDGE.finditer(script, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    raise ScriptError("unterminated comment", places.at(start), "expected '*/' at its end")


def _tokens(
    script: str, masked: str, raw: list[Raw], separators: set[int], places: _Places
) -> Iterator[Token]:
    """Our tokens for sqlglot's: doubled quotes, .5, 10L and two-word keywords made good."""
    index = 0
    while index < len(raw):
        # The bracket in front shifts every offset by one.
        start, end = raw[index].start - 1, raw[index].end
        kind, name, at = raw[index].token_type, raw[index].text, places.at(start)
        index += 1
        if start in separators:
            yield Token(Kind.SYMBOL, ";", at, ";")
        elif kind is TokenType.STRING:
            token, index = _string(script, raw, index - 1, at)
            yield token
        elif kind is TokenType.RAW_STRING:
            double = script[start + 1] == '"'
            yield Token(Kind.STRING, script[start + 2 : end - 1], at, double_quoted=double)
        elif kind is TokenType.IDENTIFIER:
            if not name:
                raise ScriptError("empty name ``", at)
            yield Token(Kind.QUOTED, name, at)
        elif kind is TokenType.NUMBER:
            # A suffix comes as two more tokens over the same characters: 10L is 10 :: L.
            while index < len(raw) and raw[index].start - 1 == start:
                index += 1
            yield Token(Kind.NUMBER, script[start:end], at)
        elif kind is TokenType.DOT and _is_fraction(script, raw, index):
            end, index = raw[index].end, index + 1
            yield Token(Kind.NUMBER, script[start:end], at)
        else:
            yield from _words(masked, start, end, places)


def _string(script: str, raw: list[Raw], index: int, at: Position) -> tuple[Token, int]:
    """One string, and the token behind it; a doubled quote comes as two strings that touch."""
    start, end = raw[index].start - 1, raw[index].end
    quote = script[start]
    texts = [unescape(script[start + 1 : end - 1], at)]
    index += 1
    while _touches(raw, index, TokenType.STRING) and script[end] == quote:
        texts.append(unescape(script[end + 1 : raw[index].end - 1], at))
        end, index = raw[index].end, index + 1
    return Token(Kind.STRING, quote.join(texts), at, double_quoted=quote == '"'), index


def _touches(raw: list[Raw], index: int, kind: TokenType) -> bool:
    return (
        index < len(raw)
        and raw[index].token_type is kind
        and raw[index].start == raw[index - 1].end + 1
    )


def _is_fraction(script: str, raw: list[Raw], index: int) -> bool:
    """Whether the dot before ``index`` begins a number such as .5 (and not a part of a name)."""
    dot = raw[index - 1].start - 1
    return _touches(raw, index, TokenType.NUMBER) and not (
        dot > 0 and (script[dot - 1].isalnum() or script[dot - 1] in "_`")
    )


def _words(masked: str, start: int, end: int, places: _Places) -> Iterator[Token]:
    """A keyword, a name or a symbol; sqlglot makes one token of ORDER BY, here it is two."""
    for part in _PART.finditer(masked, start, end):
        text, at = part.group(), places.at(part.start())
        if _WORD.fullmatch(text):
            yield Token(Kind.WORD, text, at, text.upper())
        elif _SYMBOL.fullmatch(text):
            yield Token(Kind.SYMBOL, text, at, text)
        else:
            hint = "a name with such characters needs backticks"
            raise ScriptError(f"unexpected {text[:40]!r}", at, hint)
