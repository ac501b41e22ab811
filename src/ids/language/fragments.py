"""Fragments: the tokens of one expression → the model's expression."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ids.errors import ScriptError, closest
from ids.language.assembly import assemble
from ids.language.literals import instant, number
from ids.language.shapes import OPERATORS, Atom, Piece
from ids.language.tokens import Kind, Token, unexpected
from ids.model.expression import Call, Expression, In, Literal, Name
from ids.model.rendering import RESERVED

__all__ = ["FUNCTIONS", "expression_of"]

FUNCTIONS = (
    *("ABS", "FLOOR", "CEIL", "SQRT", "LOWER", "UPPER", "LENGTH", "TRIM", "COALESCE"),
    *("HOUR", "MINUTE", "DAYOFWEEK", "DAY", "MONTH", "YEAR"),
)
_CONSTANTS = {"NULL": None, "TRUE": True, "FALSE": False}
_OPERATOR = "an operator such as AND or ="
_KNOWN = "known: AND OR NOT IS IN BETWEEN LIKE = <> < <= > >= <=> + - * / %"
_UNQUALIFIED = "write the column's name alone (in backticks if the dot is part of it)"


def expression_of(tokens: Sequence[Token], end: Token, what: str) -> Expression:
    """The expression these tokens write; ``end`` is the token behind them.

    O(tokens), without recursion: a group in parentheses is finished before what encloses it.
    """
    if not tokens:
        raise _missing(end, what)
    reader = _Reader(tokens, end)
    while not reader.done:
        reader.step()
    return reader.result()


@dataclass(slots=True)
class _Group:
    """What stands between two parentheses, so far: a group, a call's arguments, or IN's list."""

    opener: Token | None = None
    function: Token | None = None
    is_list: bool = False
    arguments: list[Atom] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    wants_operand: bool = True

    def follows(self, *words: str) -> bool:
        """Whether the last piece is one of these operators (or, for '', there is none)."""
        last = self.pieces[-1] if self.pieces else None
        return ("" if last is None else last.word if isinstance(last, Token) else "?") in words


class _Reader:
    def __init__(self, tokens: Sequence[Token], end: Token) -> None:
        self._tokens = tokens
        self._end = end
        self._next = 0
        self._groups = [_Group()]

    @property
    def done(self) -> bool:
        return self._next >= len(self._tokens)

    def _ahead(self, steps: int = 0) -> Token:
        index = self._next + steps
        return self._tokens[index] if index < len(self._tokens) else self._end

    def result(self) -> Expression:
        return self._close(self._groups[0], self._end).expression

    def step(self) -> None:
        """Read one operand, operator, comma or parenthesis."""
        token, group = self._ahead(), self._groups[-1]
        word = token.word
        if word == "(":
            self._open(group, token)
        elif word == ")":
            self._groups.pop()
            self._operand(self._groups[-1], self._finished(group, token))
        elif word == "," and (group.function or group.is_list):
            group.arguments.append(self._close(group, token))
            group.pieces, group.wants_operand = [], True
        elif word in OPERATORS:
            self._operator(group, token, word)
            return
        else:
            self._operand(group, self._atom(group, token, word))
            return
        self._next += 1

    def _open(self, group: _Group, token: Token) -> None:
        if not group.wants_operand:
            raise unexpected(token, _OPERATOR)
        self._groups.append(_Group(token, is_list=group.follows("IN")))

    def _operand(self, group: _Group, atom: Atom | None) -> None:
        if atom is not None:
            group.pieces.append(atom)
            group.wants_operand = False

    def _atom(self, group: _Group, token: Token, word: str) -> Atom | None:
        """A name or a literal; None for the head of a call, whose arguments come first."""
        if (word in RESERVED and word not in _CONSTANTS) or token.kind is Kind.SYMBOL:
            hint = _UNQUALIFIED if word == "." else _KNOWN
            raise ScriptError(f"{token.shown} cannot stand in an expression", token.at, hint)
        if not group.wants_operand:
            raise unexpected(token, _OPERATOR)
        if group.follows("IN"):
            raise unexpected(token, "'(' and the values after IN")
        self._next += 1
        if token.kind is Kind.NUMBER:
            return Atom(number(token.text, token.at), token)
        if token.kind is Kind.STRING:
            return Atom(Literal(token.text, token.at, token.double_quoted), token)
        if word in _CONSTANTS:
            return Atom(Literal(_CONSTANTS[word], token.at), token)
        if word in ("TIMESTAMP", "DATE") and self._ahead().kind is Kind.STRING:
            text = self._ahead()
            self._next += 1
            return Atom(instant(word, text.text, token.at), token)
        return self._named(token, word)

    def _named(self, token: Token, word: str) -> Atom | None:
        behind = self._ahead()
        if behind.word == "(" and word:
            if word not in FUNCTIONS:
                hint = closest(word, FUNCTIONS, "known: " + ", ".join(FUNCTIONS))
                raise ScriptError(f"unknown function {token.shown}", token.at, hint)
            self._next += 1
            self._groups.append(_Group(behind, function=token))
            return None
        if behind.word == ".":
            raise ScriptError(f"unexpected '.' after {token.shown}", behind.at, _UNQUALIFIED)
        return Atom(Name(token.text, token.at), token)

    def _operator(self, group: _Group, token: Token, word: str) -> None:
        self._next += 1
        if not group.wants_operand:
            if word == "IS":
                self._is(group, token)
                return
            if word in ("NOT", "!") and self._ahead().word not in ("IN", "LIKE", "BETWEEN"):
                raise unexpected(self._ahead(), "IN, LIKE or BETWEEN after NOT")
            group.wants_operand = word not in ("NOT", "!")
        elif word in ("NOT", "!"):
            if not group.follows("", "AND", "OR", "NOT", "!"):
                raise unexpected(token, "a value (put NOT … in parentheses)")
        elif word not in ("-", "+") or group.follows("IN"):
            raise unexpected(token, "a value" if not group.follows("IN") else "'(' after IN")
        elif word == "-" and self._ahead().kind is Kind.NUMBER:
            literal = number(self._ahead().text, token.at, negative=True)
            self._next += 1
            self._operand(group, Atom(literal, token))
            return
        group.pieces.append(token)

    def _is(self, group: _Group, token: Token) -> None:
        group.pieces.append(token)
        if self._ahead().word == "NOT":
            group.pieces.append(self._ahead())
            self._next += 1
        if self._ahead().word not in _CONSTANTS:
            raise unexpected(self._ahead(), "NULL, TRUE or FALSE after IS")
        group.pieces.append(self._ahead())
        self._next += 1

    def _finished(self, group: _Group, closing: Token) -> Atom:
        """The atom a whole pair of parentheses stands for."""
        function, opener = group.function, group.opener or closing
        if function and not group.arguments and not group.pieces:
            raise unexpected(closing, f"an argument of {function.word}")
        group.arguments.append(self._close(group, closing))
        arguments = tuple(atom.expression for atom in group.arguments)
        depth = 1 + max(atom.depth for atom in group.arguments)
        if group.is_list:
            return Atom(In(Literal(None), tuple(_options(group.arguments)), opener.at), opener)
        if not function:
            return Atom(arguments[0], opener, depth - 1)
        if len(arguments) > 1 and function.word != "COALESCE":
            hint = f"{function.word} takes one"
            raise ScriptError(f"{len(arguments)} arguments of {function.shown}", function.at, hint)
        return Atom(Call(function.word, arguments, function.at), function, depth)

    def _close(self, group: _Group, closing: Token) -> Atom:
        if group.wants_operand:
            raise _missing(closing, "a value")
        return assemble(group.pieces)


def _missing(token: Token, what: str) -> ScriptError:
    keyword = " (a column of that name needs backticks)" if token.word in RESERVED else ""
    return unexpected(token, what + keyword)


def _options(atoms: Sequence[Atom]) -> Iterator[Literal]:
    for atom in atoms:
        if not isinstance(atom.expression, Literal):
            raise ScriptError(
                f"{atom.token.shown} in the list of IN", atom.token.at, "expected literals"
            )
        yield atom.expression
