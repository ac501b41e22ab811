"""Tokens: what the reader of a statement sees, each with its place in the script."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, NoReturn

from ids.errors import Position, ScriptError
from ids.model.rendering import RESERVED, backtick_hint

__all__ = ["MAX_DEPTH", "Cursor", "Kind", "Token", "unexpected"]

MAX_DEPTH = 200
"""Deepest nesting of parentheses, and of the trees built: recursion further down stays safe."""

_STOPS = frozenset({"APPROXIMATE", "AS", "EMIT", "FROM", "ON", "SELECT", "WHERE", "WINDOW", "WITH"})
_SHOWN = 40
# What people of SQL reach for first, and what says it here.
_ELSEWHERE = {
    "GROUP": "PARTITION BY inside WINDOW gives each key its own window",
    "HAVING": "filter the answers, or the rows with WHERE",
    "JOIN": "a query reads one table: join before",
    "LIMIT": "EMIT FINAL gives only the last answer",
    "OVER": "name the window after the table: WINDOW w AS (…)",
}


class Kind(Enum):
    """What a token is; keywords are words, told apart only by where they stand."""

    WORD = "word"
    QUOTED = "name in backticks"
    NUMBER = "number"
    STRING = "string"
    SYMBOL = "symbol"
    END = "end"


class Token(NamedTuple):
    """One token; ``text`` is decoded for strings and names.

    ``word`` is the keyword or symbol it may be, in upper case; empty for values and the end.
    ``double_quoted`` says that a string stands in double quotes.
    """

    kind: Kind
    text: str
    at: Position
    word: str = ""
    double_quoted: bool = False

    @property
    def shown(self) -> str:
        """The token as an error message quotes it, on one line and not too long."""
        if self.kind is Kind.END:
            return "end"
        return repr(self.text if len(self.text) <= _SHOWN else self.text[:_SHOWN] + "…")


def unexpected(token: Token, expected: str) -> ScriptError:
    """The error of a token that cannot stand where it stands."""
    if token.kind is Kind.WORD and token.word in _ELSEWHERE:
        return ScriptError(f"unexpected {token.shown}", token.at, _ELSEWHERE[token.word])
    return ScriptError(f"unexpected {token.shown}", token.at, f"expected {expected}")


class Cursor:
    """Reads one statement from left to right; parentheses are known to match."""

    def __init__(self, tokens: Sequence[Token], end: Token) -> None:
        self._tokens = tokens
        self._end = end
        self._next = 0
        _match_parentheses(tokens)

    @property
    def token(self) -> Token:
        """The token to be read next; the end when there is none."""
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
        """Whether these words come next."""
        return all(self._ahead(step).word == word for step, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Read these words if they come next."""
        if not self.sees(*words):
            return False
        self._next += len(words)
        return True

    def expect(self, *words: str) -> Token:
        """Read exactly these words; the first of them."""
        first = self.token
        for word in words:
            if self.token.word != word:
                self.fail(repr(word) if not word.isalpha() else word)
            self._next += 1
        return first

    def fail(self, expected: str) -> NoReturn:
        """Refuse the next token."""
        raise unexpected(self.token, expected)

    def finish(self, expected: str) -> None:
        """Refuse whatever is left."""
        if self.token.kind is not Kind.END:
            self.fail(expected)

    def name(self, what: str) -> Token:
        """Read a plain or backticked name; keywords need the backticks."""
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
        """Read a name of one or more parts, as one text."""
        parts = [self.name(what).text]
        while self.accept("."):
            parts.append(self.name(what).text)
        return ".".join(parts)

    def fragment(self) -> Sequence[Token]:
        """Read up to the comma, closing parenthesis or keyword that ends an expression."""
        first, depth = self._next, 0
        while self.token.kind is not Kind.END:
            word = self.token.word
            if depth == 0 and (word in (")", ",") or word in _STOPS):
                break
            depth += (word == "(") - (word == ")")
            self._next += 1
        return self._tokens[first : self._next]


def _match_parentheses(tokens: Sequence[Token]) -> None:
    opened: list[Token] = []
    for token in tokens:
        if token.word == "(":
            opened.append(token)
            if len(opened) > MAX_DEPTH:
                hint = f"at most {MAX_DEPTH} levels of parentheses"
                raise ScriptError("nested too deeply", token.at, hint)
        elif token.word == ")":
            if not opened:
                raise ScriptError("unexpected ')'", token.at, "it closes nothing")
            opened.pop()
    if opened:
        raise ScriptError("'(' is never closed", opened[-1].at, "expected ')'")
