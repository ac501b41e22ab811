"""Symbols that behave like NumPy arrays but generate Spark SQL text.

>>> program = Program("w")
>>> n = program.column("n")
>>> np.where(n > 1, 1.0 / np.maximum(n, 1.0), 0.0).text
'CASE WHEN (`n` > 1L) THEN (1.0E0D / greatest(`n`, 1.0E0D)) ELSE 0.0E0D END'

``let`` assigns a name to an intermediate result that is used more than once. A program groups these
names into stages. A stage refers only to columns and to earlier stages, so each stage is a single
projection.

>>> half = let(n * 0.5)
>>> (half * half).text
'(`w0` * `w0`)'
>>> program.stages()
[[('w0', '(`n` * 0.5E0D)')]]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ids.games import let


class Symbol(NDArrayOperatorsMixin):
    """A SQL expression of type DOUBLE, BIGINT or BOOLEAN.

    depth  the number of stages of the program that must be computed before this expression

    Symbols can be combined with Python numbers: a float becomes a DOUBLE, an int a BIGINT. Adding
    or subtracting the int 0 returns the symbol unchanged. Operators map to NumPy's ufuncs.
    """

    __slots__ = ("depth", "program", "text")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, program: Program, text: str, depth: int) -> None:
        self.program = program
        self.text = text
        self.depth = depth

    def __repr__(self) -> str:
        return f"Symbol({self.text!r})"

    def __bool__(self) -> bool:
        raise TypeError(f"the value of {self.text} is not known before Spark evaluates it")

    def let(self) -> Symbol:
        """Assign a name to this expression in its program, and return a reference to it."""
        return self.program.name(self)

    def astype(self, dtype: type[np.generic]) -> Symbol:
        """Cast to DOUBLE or BIGINT."""
        return _written(f"cast({{}} as {_TYPES[dtype]})", self)

    def look_up(self, table: np.ndarray[Any, Any]) -> Symbol:
        """Return ``table[self]``; the index must be in range."""
        entries = ", ".join(_literal(float(entry)) for entry in table)
        return _written(f"element_at(array({entries}), cast({{}} + 1L as int))", self)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        options.pop("out", None)  # ``x += y`` creates a new symbol
        write = _UFUNCS.get(ufunc.__name__)
        if write is None or method != "__call__" or options:
            return NotImplemented
        return write(*inputs)

    def __array_function__(
        self,
        function: Callable[..., Any],
        _types: Any,
        inputs: tuple[Any, ...],
        options: Mapping[str, Any],
    ) -> Any:
        template = _FUNCTIONS.get(function.__name__)
        return NotImplemented if template is None or options else _written(template, *inputs)


class Program:
    """The named intermediate results of a set of symbols, in the order of computation.

    A name consists of the prefix and a number; no column name may start with the prefix. Equal
    expressions share one name.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._named: dict[str, Symbol] = {}
        self._references: set[str] = set()

    def column(self, name: str) -> Symbol:
        """Return a symbol for a column that exists before the first stage."""
        return self._reference(name, 0)

    def name(self, symbol: Symbol) -> Symbol:
        """Return a reference to the symbol, or the symbol itself if it is already a reference."""
        if symbol.text in self._references:
            return symbol
        found = self._named.get(symbol.text)
        if found is None:
            found = self._reference(f"{self._prefix}{len(self._named)}", symbol.depth + 1)
            self._named[symbol.text] = found
        return found

    def stages(self) -> list[list[tuple[str, str]]]:
        """Return each stage's (name, SQL) pairs, which are added to the previous columns."""
        deepest = max((reference.depth for reference in self._named.values()), default=0)
        stages: list[list[tuple[str, str]]] = [[] for _ in range(deepest)]
        for text, reference in self._named.items():
            stages[reference.depth - 1].append((reference.text.strip("`"), text))
        return stages

    def _reference(self, name: str, depth: int) -> Symbol:
        quoted = f"`{name.replace('`', '``')}`"
        self._references.add(quoted)
        return Symbol(self, quoted, depth)


def _is_zero(operand: Any) -> bool:
    return type(operand) is int and operand == 0


def _literal(number: float | int) -> str:
    """Format a number as a SQL literal, either a lossless DOUBLE or a BIGINT."""
    if isinstance(number, float):
        digits = repr(number).upper()
        text = digits + ("D" if "E" in digits else "E0D")
    else:
        text = f"{number}L"
    return f"({text})" if text.startswith("-") else text


def _spelled(operand: Any) -> str:
    if isinstance(operand, Symbol):
        return operand.text
    number = operand.item() if isinstance(operand, np.generic | np.ndarray) else operand
    return _literal(number)


def _written(template: str, *operands: Any) -> Symbol:
    symbols = [operand for operand in operands if isinstance(operand, Symbol)]
    if any(symbol.program is not symbols[0].program for symbol in symbols):
        raise TypeError("cannot combine symbols of two programs")
    text = template.format(*(_spelled(operand) for operand in operands))
    return Symbol(symbols[0].program, text, max(symbol.depth for symbol in symbols))


def _add(x: Any, y: Any) -> Any:
    if _is_zero(y):
        return x
    return y if _is_zero(x) else _written("({} + {})", x, y)


def _subtract(x: Any, y: Any) -> Any:
    return x if _is_zero(y) else _written("({} - {})", x, y)


def _shift_right(x: Symbol, places: int) -> Symbol:
    return _written(f"shiftright({{}}, {places})", x)


def _frexp(x: Symbol) -> tuple[Symbol, Symbol]:
    """Return the fraction and exponent of an integral double in [1, 2**53)."""
    exponent = let(_written("cast(length(bin(cast({} as bigint))) as bigint)", x))
    power = _written("cast(shiftleft(1L, cast({} as int)) as double)", exponent)
    return x / power, exponent


def _ldexp(x: Symbol, exponent: int) -> Symbol:
    """Multiply x by 2**exponent in steps that fit a double; only the last one may round."""
    steps = max(1, -(-abs(exponent) // _LARGEST_STEP))
    for step in range(steps):
        x = x * 2.0 ** ((exponent + step) // steps)
    return x


def _writer(template: str) -> Callable[..., Symbol]:
    return lambda *operands: _written(template, *operands)


_LARGEST_STEP = 1000
_TYPES: dict[Any, str] = {np.float64: "double", np.int64: "bigint"}
_FUNCTIONS = {
    "where": "CASE WHEN {} THEN {} ELSE {} END",
    "zeros_like": "0.0E0D",
    "ones_like": "1.0E0D",
}
_UFUNCS: dict[str, Callable[..., Any]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _writer("({} * {})"),
    "divide": _writer("({} / {})"),
    "negative": _writer("(- {})"),
    "maximum": _writer("greatest({}, {})"),
    "minimum": _writer("least({}, {})"),
    "rint": _writer("rint({})"),
    "absolute": _writer("abs({})"),
    "floor": _writer("floor({})"),
    "less": _writer("({} < {})"),
    "less_equal": _writer("({} <= {})"),
    "greater": _writer("({} > {})"),
    "greater_equal": _writer("({} >= {})"),
    "equal": _writer("({} = {})"),
    "not_equal": _writer("({} != {})"),
    "logical_and": _writer("({} AND {})"),
    "bitwise_and": _writer("({} & {})"),
    "right_shift": _shift_right,
    "frexp": _frexp,
    "ldexp": _ldexp,
}
