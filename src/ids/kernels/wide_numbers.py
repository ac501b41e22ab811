"""Wide numbers: integers of many words, and double-double pairs.

Numba has no integers beyond 64 bits, but LLVM does: these intrinsics emit two's complement
arithmetic on words joined low word first. On x86-64 and arm64 a 128-bit ``mul_add`` is one
multiplication and an add with carry.

A pair is an unevaluated sum of two doubles, (high, low) with |low| at most half an ulp of high:
about 106 bits. Exact integer sums are centred in pairs, so that a deviation is rounded to a double
only once, at the end.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

from ids.model import DIGIT_BITS

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"


_WORD = 64
_I64 = ir.IntType(_WORD)


def _constant(bits, value):
    return ir.Constant(ir.IntType(bits), value)


def _both_words(builder, total):
    high = builder.lshr(total, _constant(2 * _WORD, _WORD))
    return [builder.trunc(total, _I64), builder.trunc(high, _I64)]


@intrinsic
def fma(_typing, x, y, z):
    """Return ``x * y + z``, rounded once."""

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
    """Return ``(low, high) + x * y`` in 128 bits: one multiplication, one add with carry."""
    pair = types.UniTuple(types.int64, 2)

    def emit(context, builder, signature, arguments):
        low, high, x, y = arguments
        double = ir.IntType(2 * _WORD)
        total = builder.or_(
            builder.zext(low, double),
            builder.shl(builder.sext(high, double), _constant(128, _WORD)),
        )
        product = builder.mul(builder.sext(x, double), builder.sext(y, double))
        words = _both_words(builder, builder.add(total, product))
        return context.make_tuple(builder, signature.return_type, words)

    return pair(types.int64, types.int64, types.int64, types.int64), emit


@intrinsic
def unsigned_mul_add(_typing, x, y, a, b):
    """Return ``x * y + a + b`` of unsigned words as (low word, high word); it cannot overflow."""

    def emit(context, builder, signature, arguments):
        double = ir.IntType(2 * _WORD)
        x, y, a, b = (builder.zext(each, double) for each in arguments)
        total = builder.add(builder.add(builder.mul(x, y), a), b)
        return context.make_tuple(builder, signature.return_type, _both_words(builder, total))

    return types.UniTuple(types.uint64, 2)(*[types.uint64] * 4), emit


@njit
def add_words(total, summary, start, count):
    """Add multi-word integers, with the carry from each word to the next."""
    carry = np.uint64(0)
    for w in range(start, start + count):
        one, word = np.uint64(1), np.uint64(summary[w])
        whole, carry = unsigned_mul_add(one, np.uint64(total[w]), word, carry)
        total[w] = np.int64(whole)


@njit
def multiply_words(number, factor):
    """Compute ``number *= factor`` modulo 2**(64·words): two's complement, low word first.

    number  int64[w]  changed in place
    factor  int64[w]
    """
    width = len(number)
    result = np.zeros(width, np.uint64)
    for i in range(width):
        carry = np.uint64(0)
        for j in range(width - i):
            x, y = np.uint64(number[i]), np.uint64(factor[j])
            result[i + j], carry = unsigned_mul_add(x, y, result[i + j], carry)
    for w in range(width):
        number[w] = np.int64(result[w])


@intrinsic
def power_add(_typing, accumulators, row, offset, digits, layout, sign):
    """Add ``sign`` times the value's powers 3, 4, … to their accumulators of whole words.

    accumulators  int64[a, w]  changed in place, from word ``offset`` of ``row`` on
    digits        int64[d]     the value, top digit first
    layout        its *type* gives the number of digits and the words per power
                  (see ``Scale.layout``), so that every width is known at compile time
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
    """Join the digits into one integer."""
    value = ir.Constant(wide, 0)
    for j in range(count):
        digit = builder.load(builder.gep(data, [_constant(_WORD, j)]))
        shifted = builder.shl(value, ir.Constant(wide, DIGIT_BITS))
        value = builder.add(shifted, builder.sext(digit, wide))
    return value


def _add_to_words(builder, data, start, total, words):
    """Add ``total`` to the integer stored in ``words`` words from ``start`` on."""
    wide = total.type
    spots = [builder.gep(data, [builder.add(start, _constant(_WORD, w))]) for w in range(words)]
    for w, spot in enumerate(spots):
        word = builder.zext(builder.load(spot), wide)
        total = builder.add(total, builder.shl(word, ir.Constant(wide, _WORD * w)))
    for w, spot in enumerate(spots):
        shifted = builder.lshr(total, ir.Constant(wide, _WORD * w))
        builder.store(builder.trunc(shifted, _I64), spot)


_inline = njit(inline="always")


@_inline
def two_sum(a, b):
    """Return a + b exactly, as a pair (Knuth)."""
    high = a + b
    shadow = high - a
    return high, (a - (high - shadow)) + (b - shadow)


@_inline
def _normal(high, low):
    """Return the same pair with the high part rounded; |low| must be far below |high| (Dekker)."""
    total = high + low
    return total, low - (total - high)


@_inline
def add(a, b):
    """Return pair + pair (accurate form: errors 2**-105 relative to the larger operand)."""
    high, low = two_sum(a[0], b[0])
    return _normal(high, low + (a[1] + b[1]))


@_inline
def times(a, x):
    """Return pair * double."""
    high = a[0] * x
    return _normal(high, fma(a[0], x, -high) + a[1] * x)


@_inline
def multiply(a, b):
    """Return pair * pair."""
    high = a[0] * b[0]
    return _normal(high, fma(a[0], b[0], -high) + (a[0] * b[1] + a[1] * b[0]))


@_inline
def divide(a, x):
    """Return pair / double."""
    high, low = mean_of(a[0], a[1], x)
    return _normal(high, low)


@_inline
def scale(a, power_of_two):
    """Return pair * a power of two: exact."""
    return a[0] * power_of_two, a[1] * power_of_two


@_inline
def from_word(word):
    """Convert a signed 64-bit integer to a pair: exact."""
    return two_sum(float(word >> 32) * 4294967296.0, float(word & 0xFFFFFFFF))


@_inline
def append_word(total, word):
    """Return ``total * 2**64 + word`` for a pair and the next lower word, unsigned."""
    high = float((word >> 32) & 0xFFFFFFFF) * 4294967296.0
    return add(scale(total, 18446744073709551616.0), two_sum(high, float(word & 0xFFFFFFFF)))


@_inline
def from_words(words, start, count):
    """Convert a two's complement integer of ``count`` words, low word first, to a pair."""
    total = from_word(words[start + count - 1])
    for w in range(count - 2, -1, -1):
        total = append_word(total, words[start + w])
    return total


@_inline
def mean_of(high, low, players):
    """Divide a sum by a count: the rounded quotient and its rounding error.

    Every computation of a first deviation uses these steps, so that the same exact sums give the
    same bits in each of them.
    """
    mean = high / players
    return mean, (fma(-mean, players, high) + low) / players


@_inline
def deviation_of(high, low, members, mean, missing):
    """Return Σ_P y - m · mean, rounded once, for the pairs (high, low) and (mean, missing)."""
    product = members * mean
    error = fma(members, mean, -product)
    difference, rest = two_sum(high, -product)
    return difference + (rest + (low - error - members * missing))
