"""Results on their way out: written past the caches, eight doubles at a time.

A result column is not read again soon. Ordinary stores would first fetch each line of memory only
to overwrite it; these do not, which halves the traffic of a query that is bound by its output.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

__all__ = ["LANES", "fence", "store_lanes"]

LANES = 8


@intrinsic
def store_lanes(_typing, target, row, place, source, start):
    """``target[row, place : place + 8] = source[start : start + 8]``, past the caches.

    target  float64[r, n]  C-contiguous; the place written must be aligned to 64 bytes
    source  float64[m]
    """
    signature = types.void(target, types.int64, types.int64, source, types.int64)

    def emit(context, builder, signature, arguments):
        into = context.make_array(signature.args[0])(context, builder, arguments[0])
        data = context.make_array(signature.args[3])(context, builder, arguments[3])
        width = builder.extract_value(into.shape, 1)
        at = builder.add(builder.mul(arguments[1], width), arguments[2])
        lanes = ir.VectorType(ir.DoubleType(), LANES).as_pointer()
        origin = builder.bitcast(builder.gep(data.data, [arguments[4]]), lanes)
        spot = builder.bitcast(builder.gep(into.data, [at]), lanes)
        store = builder.store(builder.load(origin, align=8), spot, align=64)
        hint = builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
        store.set_metadata("nontemporal", hint)
        return context.get_dummy_value()

    return signature, emit


@intrinsic
def fence(_typing):
    """Everything stored so far is visible to other threads from here on."""

    def emit(context, builder, _signature, _arguments):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), emit
