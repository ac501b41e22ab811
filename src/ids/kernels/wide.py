"""Wide integers: 128 bits for products of digits, any width for powers of whole values.

Numba knows no integer beyond 64 bits, LLVM does: these intrinsics emit two's complement
arithmetic on words joined low word first. On x86-64 and arm64 a 128-bit ``mul_add`` is one
multiplication and an add with carry.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

from ids.model.scale import DIGIT_BITS

__all__ = ["add_words", "fma", "mul_add", "multiply_words", "power_add"]

_WORD = 64
_I64 = ir.IntType(_WORD)


def _constant(bits, value):
    return ir.Constant(ir.IntType(bits), value)


@intrinsic
def fma(_typing, x, y, z):
    """``x * y + z``, rounded once."""

    def emit(_context, builder, _signature, arguments):
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.DoubleType(), [ir.DoubleType()] * 3),
            "llvm.fma.f64",
        )
        return builder.call(function, arguments)

    return types.float64(types.float64, types.float64, types.float64), emit


@intrinsic
def mul_add(_typing, low, high, x, y):
    """``(low, high) + x * y`` as 128 bits: one multiplication, one add with carry."""
    pair = types.UniTuple(types.int64, 2)

    def emit(context, builder, signature, arguments):
        low, high, x, y = arguments
        double = ir.IntType(2 * _WORD)
        total = builder.or_(
            builder.zext(low, double),
            builder.shl(builder.sext(high, double), _constant(128, _WORD)),
        )
        product = builder.mul(builder.sext(x, double), builder.sext(y, double))
        total = builder.add(total, product)
        words = [
            builder.trunc(total, _I64),
            builder.trunc(builder.lshr(total, _constant(128, _WORD)), _I64),
        ]
        return context.make_tuple(builder, signature.return_type, words)

    return pair(types.int64, types.int64, types.int64, types.int64), emit


@njit
def add_words(total, summary, start, count):
    """Multi-word addition: the carry of each word goes into the next."""
    carry = np.uint64(0)
    for w in range(start, start + count):
        word = np.uint64(summary[w])
        partial = np.uint64(total[w]) + carry
        overflow = partial < carry
        whole = partial + word
        overflow = overflow or whole < word
        carry = np.uint64(1) if overflow else np.uint64(0)
        total[w] = np.int64(whole)


@intrinsic
def _product(_typing, x, y):
    """``x * y`` of two unsigned words: (low word, high word)."""

    def emit(context, builder, signature, arguments):
        double = ir.IntType(2 * _WORD)
        product = builder.mul(*(builder.zext(a, double) for a in arguments))
        words = [
            builder.trunc(product, _I64),
            builder.trunc(builder.lshr(product, _constant(128, _WORD)), _I64),
        ]
        return context.make_tuple(builder, signature.return_type, words)

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), emit


@njit
def multiply_words(number, factor):
    """``number *= factor`` modulo 2**(64·words): two's complement, low word first.

    number  int64[w]  changed in place
    factor  int64[w]
    """
    width = len(number)
    result = np.zeros(width, np.uint64)
    for i in range(width):
        carry = np.uint64(0)
        for j in range(width - i):
            low, high = _product(np.uint64(number[i]), np.uint64(factor[j]))
            partial = result[i + j] + low
            high += np.uint64(1) if partial < low else np.uint64(0)
            whole = partial + carry
            high += np.uint64(1) if whole < carry else np.uint64(0)
            result[i + j] = whole
            carry = high
    for w in range(width):
        number[w] = np.int64(result[w])


@intrinsic
def power_add(_typing, accumulators, row, offset, digits, layout, sign):
    """Add ``sign`` times the value's powers 3, 4, … to its accumulators, each in whole words.

    accumulators  int64[a, w]  changed in place, from word ``offset`` of ``row`` on
    digits        int64[d]     the value, top digit first
    layout        the number of digits and the words of each power are read from its *type*
                  (see ``Scale.layout``), so that every width is known when this compiles
    """
    count = layout[0].count
    powers, words = layout[2].count, layout[3].count
    signature = types.void(accumulators, types.int64, types.int64, digits, layout, types.int64)

    def emit(context, builder, signature, arguments):
        if powers == 0:
            return context.get_dummy_value()
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        values = context.make_array(signature.args[3])(context, builder, arguments[3])
        row_words = builder.extract_value(array.shape, 1)
        start = builder.add(builder.mul(arguments[1], row_words), arguments[2])
        wide = ir.IntType(_WORD * words)
        value = _joined(builder, values.data, count, wide)
        for power in range(3, 3 + powers):
            product = builder.mul(value, builder.sext(arguments[5], wide))
            for _ in range(power - 1):
                product = builder.mul(product, value)
            _add_to_words(builder, array.data, start, product, words)
            start = builder.add(start, _constant(_WORD, words))
        return context.get_dummy_value()

    return signature, emit


def _joined(builder, data, count, wide):
    """The digits as one integer."""
    value = ir.Constant(wide, 0)
    for j in range(count):
        digit = builder.load(builder.gep(data, [_constant(_WORD, j)]))
        shifted = builder.shl(value, ir.Constant(wide, DIGIT_BITS))
        value = builder.add(shifted, builder.sext(digit, wide))
    return value


def _add_to_words(builder, data, start, total, words):
    """Add ``total`` to the integer held in ``words`` words from ``start`` on."""
    wide = total.type
    spots = [builder.gep(data, [builder.add(start, _constant(_WORD, w))]) for w in range(words)]
    for w, spot in enumerate(spots):
        word = builder.zext(builder.load(spot), wide)
        total = builder.add(total, builder.shl(word, ir.Constant(wide, _WORD * w)))
    for w, spot in enumerate(spots):
        shifted = builder.lshr(total, ir.Constant(wide, _WORD * w))
        builder.store(builder.trunc(shifted, _I64), spot)
