"""Symbols: operands that answer like NumPy arrays and write Spark SQL instead of computing.

>>> program = Program("w")
>>> n = program.column("n")
>>> np.where(n > 1, 1.0 / np.maximum(n, 1.0), 0.0).text
'CASE WHEN (`n` > 1L) THEN (1.0E0D / greatest(`n`, 1.0E0D)) ELSE 0.0E0D END'

An intermediate that is used more than once is given a name with ``let``. A program keeps the names
in stages: a stage refers to columns and to earlier stages alone, so each is one projection.

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
    """A piece of SQL text, of type DOUBLE, BIGINT or BOOLEAN.

    depth  how many stages of its program must be there before it can be evaluated

    Python numbers stand for themselves: a float for a DOUBLE, an int for a BIGINT. Only int 0 is
    taken out of sums, which no integer notices. Operators are NumPy's functions of two operands.
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
        raise TypeError(f"{self.text} is known only where it is evaluated")

    def let(self) -> Symbol:
        """A reference to this piece, named in its program."""
        return self.program.name(self)

    def astype(self, dtype: type[np.generic]) -> Symbol:
        """This piece as DOUBLE or BIGINT."""
        return _written(f"cast({{}} as {_TYPES[dtype]})", self)

    def look_up(self, table: np.ndarray[Any, Any]) -> Symbol:
        """``table[self]``, for an index that is surely inside."""
        entries = ", ".join(_literal(float(entry)) for entry in table)
        return _written(f"element_at(array({entries}), cast({{}} + 1L as int))", self)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        options.pop("out", None)  # ``x += y`` makes a new symbol of the old one
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
    """The named intermediates of some symbols, in the order in which they can be computed.

    Names are the prefix and a number: choose a prefix that no column begins with. Equal text is
    named once.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._named: dict[str, Symbol] = {}
        self._references: set[str] = set()

    def column(self, name: str) -> Symbol:
        """A column that is there before the first stage."""
        return self._reference(name, 0)

    def name(self, symbol: Symbol) -> Symbol:
        """A reference to the symbol; the symbol itself if it is one."""
        if symbol.text in self._references:
            return symbol
        found = self._named.get(symbol.text)
        if found is None:
            found = self._reference(f"{self._prefix}{len(self._named)}", symbol.depth + 1)
            self._named[symbol.text] = found
        return found

    def stages(self) -> list[list[tuple[str, str]]]:
        """(name, SQL) of each stage: apply one after the other, each to the columns so far."""
        deepest = max((reference.depth for reference in self._named.values()), default=0)
        stages: list[list[tuple[str, str]]] = [[] for _ in range(deepest)]
        for text, reference in self._named.items():
            stages[reference.depth - 1].append((reference.text.strip("`"), text))
        return stages

    def _reference(self, name: str, depth: int) -> Symbol:
        quoted = f"`{name.replace('`', '``')}`"
        self._references.add(quoted)
        return Symbol(self, quoted, depth)


def _nothing(operand: Any) -> bool:
    return type(operand) is int and operand == 0


def _literal(number: float | int) -> str:
    """A number as Spark reads it back: a DOUBLE to the bit, or a BIGINT."""
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
        raise TypeError("symbols of two programs do not mix: neither's stages are the other's")
    text = template.format(*(_spelled(operand) for operand in operands))
    return Symbol(symbols[0].program, text, max(symbol.depth for symbol in symbols))


def _add(x: Any, y: Any) -> Any:
    if _nothing(y):
        return x
    return y if _nothing(x) else _written("({} + {})", x, y)


def _subtract(x: Any, y: Any) -> Any:
    return x if _nothing(y) else _written("({} - {})", x, y)


def _shift_right(x: Symbol, places: int) -> Symbol:
    return _written(f"shiftright({{}}, {places})", x)


def _frexp(x: Symbol) -> tuple[Symbol, Symbol]:
    """Fraction and exponent of a whole double in [1, 2**53): as long as its binary digits."""
    exponent = let(_written("cast(length(bin(cast({} as bigint))) as bigint)", x))
    power = _written("cast(shiftleft(1L, cast({} as int)) as double)", exponent)
    return x / power, exponent


def _ldexp(x: Symbol, exponent: int) -> Symbol:
    """``x * 2**exponent``, in steps that a double can spell; only the last one may round."""
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
