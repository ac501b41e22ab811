"""Shapes: operators over atoms → one expression; sqlglot knows what binds tighter than what.

Every atom (a name, a literal, a call, a group in parentheses) is handed over as a placeholder, so
sqlglot sees only ``p0 + p1 < p2``. Its trees stay flat, never meet a function or a keyword of
ours, and one tree serves every term of the same shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import Token as Raw
from sqlglot import TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from ids.errors import ScriptError
from ids.language.literals import as_integer
from ids.language.tokens import Token
from ids.model.expression import (
    And,
    Arithmetic,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Negative,
    Not,
    children,
)

__all__ = ["COMPARISONS", "OPERATORS", "Atom", "Piece", "shaped"]

COMPARISONS = {
    "=": TokenType.EQ,
    "==": TokenType.EQ,
    "<>": TokenType.NEQ,
    "!=": TokenType.NEQ,
    "<": TokenType.LT,
    "<=": TokenType.LTE,
    ">": TokenType.GT,
    ">=": TokenType.GTE,
    "<=>": TokenType.NULLSAFE_EQ,
    "LIKE": TokenType.LIKE,
    "IN": TokenType.IN,
    "BETWEEN": TokenType.BETWEEN,
    "IS": TokenType.IS,
}
OPERATORS = COMPARISONS | {
    "+": TokenType.PLUS,
    "-": TokenType.DASH,
    "*": TokenType.STAR,
    "/": TokenType.SLASH,
    "%": TokenType.MOD,
    "AND": TokenType.AND,
    "OR": TokenType.OR,
    "NOT": TokenType.NOT,
    "!": TokenType.NOT,
}
_TYPES = OPERATORS | {
    "NULL": TokenType.NULL,
    "TRUE": TokenType.TRUE,
    "FALSE": TokenType.FALSE,
    "(": TokenType.L_PAREN,
    ")": TokenType.R_PAREN,
}
_COMPARED: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_COMPUTED: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_REPEATABLE = 1_000


@dataclass(frozen=True, slots=True)
class Atom:
    """An operand with the token it begins at; ``depth`` bounds the depth of its tree.

    The list behind IN is an atom too: an ``In`` whose operand is yet to come.
    """

    expression: Expression
    token: Token
    depth: int = 1


Piece = Atom | Token


def shaped(pieces: Sequence[Piece]) -> Expression:
    """The expression of one term: operands and operators that take turns, one comparison at most.

    O(pieces), and one sqlglot parse for each new shape.
    """
    atoms = [piece for piece in pieces if isinstance(piece, Atom)]
    shape = tuple("" if isinstance(piece, Atom) else piece.word for piece in pieces)
    first = pieces[0].token if isinstance(pieces[0], Atom) else pieces[0]
    try:
        tree = _tree(shape)
    except SqlglotError:
        raise ScriptError("not an expression", first.at) from None
    return _Conversion(atoms, first).expression(tree)


@lru_cache(maxsize=1024)
def _tree(shape: tuple[str, ...]) -> exp.Expr:
    """What sqlglot makes of a shape; an empty word stands for an atom."""
    words: list[str] = []
    atoms = 0
    for index, word in enumerate(shape):
        atom = word or f"p{atoms}"
        atoms += not word
        is_list = not word and index > 0 and shape[index - 1] == "IN"
        words.extend(("(", atom, ")") if is_list else (atom,))
    raw = [
        Raw(_TYPES.get(word, TokenType.VAR), word, 1, index, index, index)
        for index, word in enumerate(words)
    ]
    (tree,) = Dialect.get_or_raise("spark").parser().parse_into(exp.Condition, raw, " ".join(words))
    if tree is None:
        raise SqlglotError("nothing parsed")
    return tree


class _Conversion:
    """sqlglot's tree → ours; what the model has no node for is refused."""

    def __init__(self, atoms: Sequence[Atom], first: Token) -> None:
        self._atoms = atoms
        self._first = first

    def expression(self, node: exp.Expr) -> Expression:
        """One node and all below it; the pieces of a term bound the depth."""
        at = self._first.at
        match node:
            case exp.Column():
                return self._atom(node)
            case exp.Neg():
                return _negative(self.expression(node.this))
            case exp.Not():
                return Not(self.expression(node.this))
            case exp.Between():
                return _signed(node, self._between(node))
            case exp.In(expressions=[exp.Column() as options]):
                listed = self._atom(options)
                if isinstance(listed, In):
                    return _signed(node, In(self.expression(node.this), listed.options, at))
            case exp.Like():
                return _signed(node, self._like(node))
            case exp.Is(expression=exp.Null()):
                return IsNull(self.expression(node.this))
            case exp.Is(expression=exp.Boolean() as truth):
                return IsTrue(self.expression(node.this), bool(truth.this))
            case exp.Binary() if type(node) in _COMPARED:
                left, right = self.expression(node.left), self.expression(node.right)
                return Comparison(_COMPARED[type(node)], left, right, at)
            case exp.Binary() if type(node) in _COMPUTED:
                left, right = self.expression(node.left), self.expression(node.right)
                return Arithmetic(_COMPUTED[type(node)], left, right)
        raise ScriptError(f"{node.key.upper()} cannot stand in an expression", at)

    def _atom(self, node: exp.Column) -> Expression:
        return self._atoms[int(node.name[1:])].expression

    def _between(self, node: exp.Between) -> Expression:
        operand = self.expression(node.this)
        # The operand is written out twice: unbounded, nested BETWEENs would double at each level.
        if _exceeds(operand, _REPEATABLE):
            raise ScriptError(
                "too large an operand of BETWEEN", self._first.at, "write it as two comparisons"
            )
        low, high = self.expression(node.args["low"]), self.expression(node.args["high"])
        at = self._first.at
        return And((Comparison(">=", operand, low, at), Comparison("<=", operand, high, at)))

    def _like(self, node: exp.Like) -> Expression:
        pattern = self.expression(node.expression)
        if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
            raise ScriptError(
                "LIKE with a pattern that is no string", self._first.at, "write x LIKE 'EU-%'"
            )
        return Like(self.expression(node.this), pattern.value, self._first.at)


def _signed(node: exp.Expr, positive: Expression) -> Expression:
    """Some negations stand inside sqlglot's node, others around it."""
    return Not(positive) if node.args.get("negate") else positive


def _negative(operand: Expression) -> Expression:
    match operand:
        case Literal(value=int() as value, at=at) if not isinstance(value, bool):
            return as_integer(-value, at)
        case Literal(value=float() as value, at=at):
            return Literal(-value, at)
        case _:
            return Negative(operand)


def _exceeds(expression: Expression, nodes: int) -> bool:
    stack = [expression]
    while stack and nodes >= 0:
        stack.extend(children(stack.pop()))
        nodes -= 1
    return nodes < 0
