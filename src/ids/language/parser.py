"""Parser of expressions: tokens to a tree, by precedence climbing.

The first token of an operand selects the method that reads it (``_PREFIX``). After the operand, the
parser reads operators as long as they bind tighter than the operator to the left (``_POWER``, which
has Spark's precedences). A new form needs an entry in one of these tables and a method. Recursion
is as deep as the parentheses, whose nesting the cursor limits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from ids.errors import Position, ScriptError, closest
from ids.language.lexer import MAX_DEPTH, Cursor, Kind, Token, unexpected
from ids.model import (
    RESERVED,
    And,
    Arithmetic,
    Call,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Name,
    Negative,
    Not,
    Or,
    nodes,
    parse_timestamp,
)
from ids.predicates import FUNCTIONS as _TYPED

FUNCTIONS = (*_TYPED, "COALESCE")
_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN = range(1, 8)
_POWER = {
    "OR": _OR,
    "AND": _AND,
    **dict.fromkeys(("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>"), _COMPARISON),
    **dict.fromkeys(("IS", "NOT", "!", "IN", "BETWEEN", "LIKE"), _COMPARISON),
    **dict.fromkeys(("+", "-"), _SUM),
    **dict.fromkeys(("*", "/", "%"), _PRODUCT),
}
"""How tightly each operator binds; NOT is the one in NOT IN."""

_ALIASES = {"==": "=", "!=": "<>"}
_CONSTANTS = {"NULL": None, "TRUE": True, "FALSE": False}
_STOPS = frozenset({"APPROXIMATE", "AS", "EMIT", "FROM", "ON", "SELECT", "WHERE", "WINDOW", "WITH"})
"""Keywords that end an expression, like ',' and ')'."""

_NUMBER = re.compile(r"([0-9.]+)(E[+-]?[0-9]+)?(L|S|Y|D|F|BD)?", re.IGNORECASE)
_MAX_INTEGER = 2**63 - 1
_REPEATABLE = 1_000
_OPERATOR = "an operator such as AND or ="
_KNOWN = "known: AND OR NOT IS IN BETWEEN LIKE = <> < <= > >= <=> + - * / %"
_UNQUALIFIED = "write only the column's name (in backticks if it contains the dot)"


def expression(cursor: Cursor, what: str) -> Expression:
    """Read one expression, up to the comma, parenthesis or keyword that ends it; O(tokens).

    ``what`` describes the expected expression in the error for a missing one.
    """
    if _ends(cursor.token):
        raise _missing(cursor.token, what)
    operand = _Parser(cursor).expression()
    if not _ends(cursor.token):
        raise _misplaced(cursor.token)
    return operand.tree


class _Operand(NamedTuple):
    """A tree, its first token, and its depth (OR is not counted, as it alternates with others)."""

    tree: Expression
    token: Token
    depth: int = 1


class _Parser:
    """Reads one expression from the cursor; each method returns the operand it read."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor

    def expression(self, above: int = 0) -> _Operand:
        """Read an operand, and the operators after it that bind tighter than ``above``."""
        cursor, compared = self._cursor, False
        left = self._prefix(above)(self, cursor.take())
        while (power := _POWER.get(cursor.token.word, 0)) > above:
            operator = cursor.take()
            negated = operator.word in ("NOT", "!")
            if negated and (operator := cursor.take()).word not in ("IN", "LIKE", "BETWEEN"):
                raise unexpected(operator, "IN, LIKE or BETWEEN after NOT")
            if compared and power >= _COMPARISON:
                raise _second(operator, power)
            compared = power == _COMPARISON
            match operator.word:
                case "AND" | "OR" as word:
                    operands = [left, self.expression(power)]
                    while cursor.accept(word):
                        operands.append(self.expression(power))
                    left = _joined(word, operands)
                case "IS":
                    left = self._is(left)
                case "IN":
                    left = self._in(left)
                case "BETWEEN":
                    left = self._between(left, operator)
                case _:
                    left = _binary(operator, left, self.expression(power))
            if negated:
                left = _node(Not(left.tree), left.token, left)
        return left

    # Each of these methods reads an operand whose first token has been taken already.

    def _prefix(self, above: int) -> Callable[[_Parser, Token], _Operand]:
        token = self._cursor.token
        word = token.word
        if word in ("NOT", "!") and above > _NOT:
            raise unexpected(token, "a value (put NOT … in parentheses)")
        if read := _PREFIX.get(word):
            return read
        if token.kind in (Kind.NUMBER, Kind.STRING):
            return _Parser._value
        if token.kind is Kind.QUOTED or (token.kind is Kind.WORD and word not in RESERVED):
            return _Parser._name
        if _ends(token):
            raise _missing(token, "a value")
        if word in _POWER:
            raise unexpected(token, "a value")
        raise _misplaced(token)

    def _not(self, token: Token) -> _Operand:
        negations = 1
        while self._cursor.accept("NOT") or self._cursor.accept("!"):
            negations += 1
        operand = self.expression(_NOT)
        for _ in range(negations):
            operand = _node(Not(operand.tree), token, operand)
        return operand

    def _sign(self, token: Token) -> _Operand:
        """Parse signs and an operand; the last minus belongs to a number: -9223372036854775808."""
        signs = [token]
        while self._cursor.token.word in ("+", "-"):
            signs.append(self._cursor.take())
        if signs[-1].word == "-" and self._cursor.token.kind is Kind.NUMBER:
            at = signs.pop().at
            operand = _Operand(_number(self._cursor.take().text, at, negative=True), token)
        else:
            operand = self.expression(_SIGN)
        for sign in signs:
            if sign.word == "-":
                operand = _node(_negative(operand.tree), token, operand)
        return operand._replace(token=token)

    def _group(self, token: Token) -> _Operand:
        inner = self.expression()
        self._closes()
        return inner._replace(token=token)

    def _value(self, token: Token) -> _Operand:
        if token.kind is Kind.NUMBER:
            return _Operand(_number(token.text, token.at), token)
        if token.kind is Kind.STRING:
            return _Operand(Literal(token.text, token.at, token.double_quoted), token)
        return _Operand(Literal(_CONSTANTS[token.word], token.at), token)

    def _instant(self, token: Token) -> _Operand:
        """Read TIMESTAMP '…' or DATE '…'; without the text, the word is a name."""
        if self._cursor.token.kind is not Kind.STRING:
            return self._name(token)
        text = self._cursor.take().text
        instant = parse_timestamp(text, with_time=token.word == "TIMESTAMP")
        if instant is None:
            sample = "2026-01-31 12:00:00" if token.word == "TIMESTAMP" else "2026-01-31"
            hint = f"write it as '{sample}'"
            raise ScriptError(f"not a {token.word.lower()}: {text[:40]!r}", token.at, hint)
        return _Operand(Literal(instant, token.at), token)

    def _name(self, token: Token) -> _Operand:
        """Read a column, a registered predicate, or a function call."""
        cursor, function = self._cursor, token.word
        if cursor.sees("."):
            at = cursor.token.at
            raise ScriptError(f"unexpected '.' after {token.shown}", at, _UNQUALIFIED)
        if not function or not cursor.accept("("):
            return _Operand(Name(token.text, token.at), token)
        if function not in FUNCTIONS:
            hint = closest(function, FUNCTIONS, "known: " + ", ".join(FUNCTIONS))
            raise ScriptError(f"unknown function {token.shown}", token.at, hint)
        if cursor.sees(")"):
            cursor.fail(f"an argument for {function}")
        arguments = [self.expression()]
        while self._closes(",") == ",":
            arguments.append(self.expression())
        if len(arguments) > 1 and function != "COALESCE":
            hint = f"{function} takes one"
            raise ScriptError(f"{len(arguments)} arguments for {token.shown}", token.at, hint)
        call = Call(function, tuple(argument.tree for argument in arguments), token.at)
        return _Operand(call, token, 1 + max(argument.depth for argument in arguments))

    def _closes(self, *words: str) -> str:
        """Read the closing parenthesis, or one of these words, and return it."""
        token = self._cursor.token
        if token.word not in (")", *words):
            raise _misplaced(token)
        return self._cursor.take().word

    # Each of these methods reads a test after its operator.

    def _is(self, left: _Operand) -> _Operand:
        negated = self._cursor.accept("NOT")
        if self._cursor.token.word not in _CONSTANTS:
            self._cursor.fail("NULL, TRUE or FALSE after IS")
        truth = _CONSTANTS[self._cursor.take().word]
        test = IsNull(left.tree) if truth is None else IsTrue(left.tree, truth)
        return _node(Not(test) if negated else test, left.token, left, 1 + negated)

    def _in(self, left: _Operand) -> _Operand:
        if not self._cursor.accept("("):
            self._cursor.fail("'(' and the values after IN")
        options = [self._option()]
        while self._closes(",") == ",":
            options.append(self._option())
        return _node(In(left.tree, tuple(options), left.token.at), left.token, left)

    def _option(self) -> Literal:
        start = self._cursor.token
        option = self.expression().tree
        if not isinstance(option, Literal):
            raise ScriptError(f"{start.shown} is not a literal", start.at, "IN takes literals")
        return option

    def _between(self, left: _Operand, between: Token) -> _Operand:
        operand, at = left.tree, left.token.at
        # The operand occurs twice in the tree, so nested BETWEENs could grow exponentially.
        if any(True for _ in islice(nodes(operand), _REPEATABLE, None)):
            hint = "write it as two comparisons"
            raise ScriptError("the operand of BETWEEN is too large", at, hint)
        low = self.expression(_COMPARISON)
        if not self._cursor.accept("AND"):
            token = self._cursor.token
            if _POWER.get(token.word) == _COMPARISON:
                raise _second(token, _COMPARISON)
            if not _ends(token) and token.word not in _POWER:
                raise _misplaced(token)
            hint = "write x BETWEEN low AND high"
            raise ScriptError("BETWEEN without AND", between.at, hint)
        high = self.expression(_COMPARISON)
        lower = Comparison(">=", operand, low.tree, at)
        upper = Comparison("<=", operand, high.tree, at)
        deepest = max(left, low, high, key=lambda side: side.depth)
        return _node(And((lower, upper)), left.token, deepest, 2)


_PREFIX: dict[str, Callable[[_Parser, Token], _Operand]] = {
    "(": _Parser._group,
    "+": _Parser._sign,
    "-": _Parser._sign,
    "NOT": _Parser._not,
    "!": _Parser._not,
    "TIMESTAMP": _Parser._instant,
    "DATE": _Parser._instant,
    **dict.fromkeys(_CONSTANTS, _Parser._value),
}


def _node(tree: Expression, token: Token, operand: _Operand, levels: int = 1) -> _Operand:
    """Wrap a tree that is ``levels`` deeper than its deepest operand."""
    depth = operand.depth + levels
    if depth >= MAX_DEPTH:
        hint = f"use at most {MAX_DEPTH} nested operators (AND and OR do not count)"
        raise ScriptError("nested too deeply", token.at, hint)
    return _Operand(tree, token, depth)


def _joined(word: str, operands: list[_Operand]) -> _Operand:
    """Join operands by AND or OR into one flat node."""
    kind = And if word == "AND" else Or
    flat: list[Expression] = []
    for operand in operands:
        flat.extend(operand.tree.operands if isinstance(operand.tree, kind) else (operand.tree,))
    depth = max(operand.depth for operand in operands) + (kind is And)
    return _Operand(kind(tuple(flat)), operands[0].token, depth)


def _binary(operator: Token, left: _Operand, right: _Operand) -> _Operand:
    """Build a comparison, LIKE or arithmetic node."""
    word, at = operator.word, left.token.at
    tree: Expression
    if word == "LIKE":
        if not isinstance(right.tree, Literal) or not isinstance(right.tree.value, str):
            raise ScriptError("the pattern of LIKE is not a string", at, "write x LIKE 'EU-%'")
        tree = Like(left.tree, right.tree.value, at)
    elif _POWER[word] == _COMPARISON:
        tree = Comparison(_ALIASES.get(word, word), left.tree, right.tree, at)
    else:
        tree = Arithmetic(word, left.tree, right.tree)
    return _node(tree, left.token, max(left, right, key=lambda side: side.depth))


def _negative(operand: Expression) -> Expression:
    match operand:
        case Literal(value=int() as value, at=at) if not isinstance(value, bool):
            return _integer(-value, at)
        case Literal(value=float() as value, at=at):
            return Literal(-value, at)
        case _:
            return Negative(operand)


def _number(text: str, at: Position, *, negative: bool = False) -> Literal:
    """Parse a 64-bit integer, or a double if there is a point, an exponent or a suffix like D."""
    parts = _NUMBER.fullmatch(text)
    if parts is None:
        raise ScriptError(f"not a number: {text[:40]!r}", at)
    digits, exponent, suffix = parts.groups("")
    sign = -1 if negative else 1
    if digits.isdigit() and not exponent and suffix.upper() in ("", "L", "S", "Y"):
        if len(digits.lstrip("0")) > 19:
            raise _too_large(text, at)
        return _integer(sign * int(digits[-20:]), at)
    value = sign * float(digits + exponent)
    if math.isinf(value):
        raise ScriptError(f"number out of range: {text[:40]}", at)
    return Literal(value, at)


def _integer(value: int, at: Position | None) -> Literal:
    if not -_MAX_INTEGER - 1 <= value <= _MAX_INTEGER:
        raise _too_large(str(value), at)
    return Literal(value, at)


def _too_large(text: str, at: Position | None) -> ScriptError:
    return ScriptError(
        f"integer out of range: {text[:40]}", at, "it must fit in 64 bits; 1e20 is a double"
    )


def _ends(token: Token) -> bool:
    return token.kind is Kind.END or token.word in (",", ")") or token.word in _STOPS


def _missing(token: Token, what: str) -> ScriptError:
    keyword = " (a column of that name needs backticks)" if token.word in RESERVED else ""
    return unexpected(token, what + keyword)


def _misplaced(token: Token) -> ScriptError:
    """Return the error for a token that is neither an operator nor an operand here."""
    reserved = token.word in RESERVED and token.word not in _CONSTANTS
    if reserved or (token.kind is Kind.SYMBOL and token.word != "("):
        hint = _UNQUALIFIED if token.word == "." else _KNOWN
        return ScriptError(f"{token.shown} is not supported in an expression", token.at, hint)
    return unexpected(token, _OPERATOR)


def _second(operator: Token, power: int) -> ScriptError:
    """Return the error for an operator after a test, which in Spark has a surprising meaning."""
    if power > _COMPARISON:
        return unexpected(operator, "AND or OR (or put the test before it in parentheses)")
    hint = "join comparisons with AND, or use parentheses"
    return ScriptError(f"unexpected second comparison {operator.shown}", operator.at, hint)
