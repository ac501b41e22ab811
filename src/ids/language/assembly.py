"""Assembly: the pieces between two parentheses → one expression, AND and OR flat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ids.errors import ScriptError
from ids.language.shapes import COMPARISONS, Atom, Piece, shaped
from ids.language.tokens import MAX_DEPTH, Token
from ids.model.expression import And, Expression, Not, Or

__all__ = ["assemble"]

_NOT = ("NOT", "!")


def assemble(pieces: Sequence[Piece]) -> Atom:
    """One expression of operands and operators that are known to take turns; O(pieces)."""
    first = pieces[0]
    token = first.token if isinstance(first, Atom) else first
    if len(pieces) == 1 and isinstance(first, Atom):
        return first
    disjuncts: list[Expression] = []
    depth = terms = 0
    for disjunct in _split(pieces, "OR"):
        conjuncts: list[Expression] = []
        for term in _split(disjunct, "AND"):
            terms += 1
            depth = max(depth, _depth(term, token))
            conjuncts.append(_term(term))
        disjuncts.append(_joined(And, conjuncts))
    return Atom(_joined(Or, disjuncts), token, depth + (terms > 1))


def _split(pieces: Sequence[Piece], word: str) -> Iterator[Sequence[Piece]]:
    """The parts between the ANDs (or the ORs); the AND of a BETWEEN divides nothing."""
    start = 0
    between: Token | None = None
    for index, piece in enumerate(pieces):
        if isinstance(piece, Atom):
            continue
        if piece.word == "AND" and between:
            between = None
        elif piece.word == word:
            yield pieces[start:index]
            start = index + 1
        elif piece.word == "BETWEEN":
            between = piece
    if between:
        raise ScriptError("BETWEEN without its AND", between.at, "write x BETWEEN low AND high")
    yield pieces[start:]


def _joined(kind: type[And] | type[Or], operands: list[Expression]) -> Expression:
    flat: list[Expression] = []
    for operand in operands:
        if isinstance(operand, kind):
            flat.extend(operand.operands)
        else:
            flat.append(operand)
    return kind(tuple(flat)) if len(flat) > 1 else flat[0]


def _depth(term: Sequence[Piece], token: Token) -> int:
    """A bound on the depth of the term's tree, before anything recursive looks at it."""
    operators = sum(isinstance(piece, Token) for piece in term)
    depth = operators + max(piece.depth for piece in term if isinstance(piece, Atom))
    if depth >= MAX_DEPTH:
        hint = f"at most {MAX_DEPTH} operators inside each other (AND and OR do not count)"
        raise ScriptError("nested too deeply", token.at, hint)
    return depth


def _term(term: Sequence[Piece]) -> Expression:
    """A term without AND and OR; its leading NOTs hold for all of it."""
    negations = 0
    while _is_not(term[negations]):
        negations += 1
    body = term[negations:]
    compared = [p for p in body if isinstance(p, Token) and p.word in COMPARISONS]
    if len(compared) > 1:
        # Spark and sqlglot read such chains differently, and neither as it is meant.
        second = compared[1]
        hint = "join comparisons by AND, or use parentheses"
        raise ScriptError(f"unexpected second comparison {second.shown}", second.at, hint)
    only = body[0] if len(body) == 1 else None
    expression = only.expression if isinstance(only, Atom) else shaped(body)
    for _ in range(negations):
        expression = Not(expression)
    return expression


def _is_not(piece: Piece) -> bool:
    return isinstance(piece, Token) and piece.word in _NOT
