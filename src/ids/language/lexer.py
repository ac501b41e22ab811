"""Lexer: split a script into tokens with their positions, and a cursor to read them.

The lexical rules are Spark's: keywords are case-insensitive, names may be in backticks, strings are
in single or double quotes with backslash escapes (``r'…'`` has none), block comments nest, and
numbers may have suffixes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple, NoReturn

from ids.errors import Position, ScriptError
from ids.model import RESERVED, backtick_hint

MAX_CHARACTERS = 2_000_000
MAX_DEPTH = 200
"""Limits the nesting of parentheses and of trees, so that recursion over a tree is safe."""

_SHOWN = 40
# Common SQL keywords that are not supported, and what to use instead.
_ALTERNATIVES = {
    "GROUP": "use PARTITION BY inside WINDOW, which gives each key its own window",
    "HAVING": "filter the result, or filter the rows with WHERE",
    "JOIN": "a query reads one table: join the tables beforehand",
    "LIMIT": "use EMIT FINAL to get only the last answer",
    "OVER": "define the window after the table: WINDOW w AS (…)",
}


class Kind(Enum):
    """The kind of a token; the lexer does not distinguish keywords from other words."""

    WORD = "word"
    QUOTED = "name in backticks"
    NUMBER = "number"
    STRING = "string"
    SYMBOL = "symbol"
    END = "end"


class Token(NamedTuple):
    """One token; ``text`` is decoded for strings and names.

    ``word`` is the word in upper case or the symbol; it is empty for values and the end.
    ``double_quoted`` is set for a string in double quotes.
    """

    kind: Kind
    text: str
    at: Position
    word: str = ""
    double_quoted: bool = False

    @property
    def shown(self) -> str:
        """The token for an error message, shortened and on one line."""
        if self.kind is Kind.END:
            return "end"
        return repr(self.text if len(self.text) <= _SHOWN else self.text[:_SHOWN] + "…")


def unexpected(token: Token, expected: str) -> ScriptError:
    """Return the error for an unexpected token."""
    if token.kind is Kind.WORD and token.word in _ALTERNATIVES:
        return ScriptError(f"unexpected {token.shown}", token.at, _ALTERNATIVES[token.word])
    return ScriptError(f"unexpected {token.shown}", token.at, f"expected {expected}")


class Cursor:
    """Reads the tokens of one statement from left to right; checks first that parentheses match."""

    def __init__(self, tokens: Sequence[Token], end: Token) -> None:
        self._tokens = tokens
        self._end = end
        self._next = 0
        _match_parentheses(tokens)

    @property
    def token(self) -> Token:
        """The next token, or the end token."""
        return self._ahead(0)

    def _ahead(self, steps: int) -> Token:
        index = self._next + steps
        return self._tokens[index] if index < len(self._tokens) else self._end

    def take(self) -> Token:
        """Read one token."""
        token = self.token
        self._next += 1
        return token

    def sees(self, *words: str) -> bool:
        """Return whether the next tokens are these words."""
        return all(self._ahead(step).word == word for step, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Read these words if they come next; return whether they did."""
        if not self.sees(*words):
            return False
        self._next += len(words)
        return True

    def expect(self, *words: str) -> Token:
        """Read exactly these words and return the first token."""
        first = self.token
        for word in words:
            if self.token.word != word:
                self.fail(repr(word) if not word.isalpha() else word)
            self._next += 1
        return first

    def fail(self, expected: str) -> NoReturn:
        """Raise an error for the next token."""
        raise unexpected(self.token, expected)

    def finish(self, expected: str) -> None:
        """Raise an error if tokens are left."""
        if self.token.kind is not Kind.END:
            self.fail(expected)

    def name(self, what: str) -> Token:
        """Read a name; keywords need backticks."""
        token = self.token
        if token.kind is Kind.STRING:
            hint = backtick_hint(token.text[:_SHOWN])
            raise ScriptError(f"unexpected text {token.shown}", token.at, hint)
        if token.kind not in (Kind.WORD, Kind.QUOTED):
            self.fail(what)
        if token.word in RESERVED:
            raise ScriptError(
                f"unexpected keyword {token.shown}",
                token.at,
                f"expected {what} (a name that is a keyword needs backticks)",
            )
        return self.take()

    def dotted(self, what: str) -> str:
        """Read a name of one or more parts, joined by dots."""
        parts = [self.name(what).text]
        while self.accept("."):
            parts.append(self.name(what).text)
        return ".".join(parts)


def _match_parentheses(tokens: Sequence[Token]) -> None:
    opened: list[Token] = []
    for token in tokens:
        if token.word == "(":
            opened.append(token)
            if len(opened) > MAX_DEPTH:
                hint = f"use at most {MAX_DEPTH} levels of parentheses"
                raise ScriptError("nested too deeply", token.at, hint)
        elif token.word == ")":
            if not opened:
                raise ScriptError("unexpected ')'", token.at, "there is no matching '('")
            opened.pop()
    if opened:
        raise ScriptError("'(' is never closed", opened[-1].at, "expected ')'")


_RUN = r"[^\s!-/:-@\[-^`{-~]"  # a character of a word: neither a blank nor ASCII punctuation
_TOKEN = re.compile(
    rf"""(?P<blank>\s+|--[^\n]*)
      |(?P<comment>/\*)
      |(?P<raw>[rR](?:'[^']*'|"[^"]*"))
      |(?P<string>'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")
      |(?P<name>`[^`]*(?:``[^`]*)*`)
      |(?P<open>['"`])
      |(?P<number>(?:[0-9]+\.?[0-9]*|(?<![\w`])\.[0-9]+)(?:[eE](?:[+-]?[0-9]+)?)?)(?P<rest>{_RUN}*)
      |(?P<word>{_RUN}+)
      |(?P<template>\{{\#)
      |(?P<symbol><=>|<->|->>|<>|<=|>=|!=|==|=>|->|:=|::|\?\?|\|\||&&|.)""",
    re.VERBOSE | re.DOTALL,
)
_EDGE = re.compile(r"/\*|\*/")
_OPENED = {"'": "string", '"': "string", "`": "name"}
_SUFFIXES = ("", "L", "S", "Y", "D", "F", "BD")
_ESCAPE = re.compile(
    r"\\(?:u(?P<u>[0-9A-Fa-f]{4})|U(?P<U>[0-9A-Fa-f]{8})|(?P<octal>[0-3][0-7]{2})|(?P<one>.))",
    re.DOTALL,
)
_ONE = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def tokenize(script: str) -> list[Token]:
    """Return all tokens, including each ';' and the end token; O(length)."""
    if not isinstance(script, str):
        raise ScriptError(f"a script must be text, not {type(script).__name__}")
    if len(script) > MAX_CHARACTERS:
        raise ScriptError(
            f"the script has {len(script):,} characters", hint=f"the limit is {MAX_CHARACTERS:,}"
        )
    lexer = _Lexer(script)
    bad = re.search("[\0\ud800-\udfff]", script)
    if bad:
        raise ScriptError(
            f"invalid character {bad.group()!r}",
            lexer.position(bad.start()),
            "a script must be Unicode text",
        )
    return [*lexer.tokens(), Token(Kind.END, "", lexer.position(len(script.rstrip())))]


class _Lexer:
    """Splits one script; ``_starts`` are the offsets of its lines."""

    def __init__(self, script: str) -> None:
        self._script = script
        self._starts = [0, *(match.end() for match in re.finditer("\n", script))]

    def position(self, offset: int) -> Position:
        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)

    def tokens(self) -> Iterator[Token]:
        done = 0
        while match := _TOKEN.match(self._script, done):
            start, done = match.span()
            if match.lastgroup == "comment":
                done = self._comment_end(start)
            elif match.lastgroup == "string":
                token, done = self._string(match)
                yield token
            elif match.lastgroup != "blank":
                yield _token(match, self.position(start))

    def _comment_end(self, start: int) -> int:
        """Return the offset where a block comment ends; comments nest, as in Spark."""
        depth = 0
        for edge in _EDGE.finditer(self._script, start):
            depth += 1 if edge.group() == "/*" else -1
            if depth == 0:
                return edge.end()
        raise ScriptError("unterminated comment", self.position(start), "expected '*/' at the end")

    def _string(self, match: re.Match[str]) -> tuple[Token, int]:
        """Return a string token and the offset where it ends; a doubled quote is one quote."""
        at, quote, end = self.position(match.start()), match.group()[0], match.end()
        texts = [_unescaped(match.group()[1:-1], at)]
        while self._script.startswith(quote, end):
            more = _TOKEN.match(self._script, end)
            assert more is not None
            if more.lastgroup != "string":
                raise _unterminated(quote, self.position(end))
            texts.append(_unescaped(more.group()[1:-1], at))
            end = more.end()
        return Token(Kind.STRING, quote.join(texts), at, double_quoted=quote == '"'), end


def _token(match: re.Match[str], at: Position) -> Token:
    """Return the token of a match that is not blank, a comment or a string with escapes."""
    text = match.group()
    match match.lastgroup:
        case "raw":
            return Token(Kind.STRING, text[2:-1], at, double_quoted=text[1] == '"')
        case "name":
            if text == "``":
                raise ScriptError("empty name ``", at)
            return Token(Kind.QUOTED, text[1:-1].replace("``", "`"), at)
        case "open":
            raise _unterminated(text, at)
        case "rest" if match["rest"].upper() in _SUFFIXES:
            return Token(Kind.NUMBER, text, at)
        case "rest" | "word" if re.fullmatch(r"\w+", text):
            return Token(Kind.WORD, text, at, text.upper())
        case "rest" | "word":
            hint = "a name with such characters needs backticks"
            raise ScriptError(f"unexpected {text[:_SHOWN]!r}", at, hint)
        case "template":
            raise ScriptError(f"unexpected {text!r}", at)
    return Token(Kind.SYMBOL, text, at, text)


def _unterminated(quote: str, at: Position) -> ScriptError:
    return ScriptError(f"unterminated {_OPENED[quote]}", at, f"expected {quote} at the end")


def _unescaped(body: str, at: Position) -> str:
    r"""Replace the escapes in a string literal, except ``\%`` and ``\_``, which LIKE needs.

    >>> _unescaped(r"it\'s 5\% \u00e9", Position(1, 1))
    "it's 5\\% é"
    """
    if "\\" not in body:
        return body

    def character(match: re.Match[str]) -> str:
        if one := match["one"]:
            return _ONE.get(one, one)
        octal = match["octal"]
        code = int(octal, 8) if octal else int(match["u"] or match["U"], 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise ScriptError(f"invalid escape {match.group()!r}", at)
        return chr(code)

    return _ESCAPE.sub(character, body)
