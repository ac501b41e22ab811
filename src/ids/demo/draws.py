"""Random numbers as Columns: each a function of the seed, the stream's name and the row alone.

No generator has a state that a partition could begin anew, so a row draws the same number in any
partition of any plan. Spark's ``log``, ``exp`` and ``pow`` are Java's StrictMath, everything else
here is exact or correctly rounded by IEEE 754: the bits are the same on every machine too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import accumulate

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

__all__ = ["choice", "exponential", "hashed", "ladder", "uniform", "with_normal"]

# Wichura's algorithm AS 241 (PPND16): the normal quantile to about 1e-16. For each region of the
# quantile the numerator's and the denominator's coefficients, the constant term first.
_CENTRE = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
     1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
     3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
     5.2264952788528545610e3),
)  # fmt: skip
_FLANK = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
     3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
     2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
     1.05075007164441684324e-9),
)  # fmt: skip
_TAIL = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
     2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
     2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
     2.04426310338993978564e-15),
)  # fmt: skip
_WIDTH_OF_CENTRE = 0.425
_END_OF_FLANK = 5.0


def hashed(seed: int, stream: str, of: Column) -> Column:
    """64 random bits, as a bigint, for each value of the bigint ``of``."""
    digest = hashlib.sha256(f"{seed}/{stream}".encode()).digest()
    return F.xxhash64(F.lit(int.from_bytes(digest[:8], "big", signed=True)), of)


def uniform(seed: int, stream: str, of: Column) -> Column:
    """Uniform in (0, 1), neither end included: the middles of 2^52 equal cells."""
    cell = F.shiftrightunsigned(hashed(seed, stream, of), 12).cast("double")
    return (cell + F.lit(0.5)) * F.lit(2.0**-52)


def exponential(draw: Column, mean: float) -> Column:
    """Exponential with that mean, from a uniform draw."""
    return F.lit(-mean) * F.log(draw)


def choice(draw: Column, values: Sequence[object], weights: Sequence[float]) -> Column:
    """One of the values, each as often as its weight says, from a uniform draw."""
    total = sum(weights)
    return ladder(draw, [reached / total for reached in accumulate(weights[:-1])], values)


def ladder(of: Column, steps: Sequence[float], values: Sequence[object]) -> Column:
    """``values[i]`` where exactly i of the ascending ``steps`` are at or below ``of``.

    A tree of CASEs, so that a hundred steps cost seven comparisons. NULL takes the last value.
    """
    if not steps:
        return F.lit(values[0])
    middle = len(steps) // 2
    below = ladder(of, steps[:middle], values[: middle + 1])
    above = ladder(of, steps[middle + 1 :], values[middle + 1 :])
    return F.when(of < F.lit(steps[middle]), below).otherwise(above)


def with_normal(frame: DataFrame, name: str, draw: Column) -> DataFrame:
    """The frame with one more column: standard normal, the quantile of a uniform draw."""
    u, side, depth = F.col("_u"), F.col("_side"), F.col("_depth")
    in_centre = F.abs(side) <= F.lit(_WIDTH_OF_CENTRE)
    outer = F.sqrt(-F.log(F.least(u, F.lit(1.0) - u)))
    # a column each, not one expression: Spark then computes the draw and the logarithm once
    staged = (
        frame.withColumn("_u", draw)
        .withColumn("_side", u - F.lit(0.5))
        .withColumn("_depth", F.when(in_centre, F.lit(0.180625) - side * side).otherwise(outer))
    )
    flank = _ratio(_FLANK, depth - F.lit(1.6))
    tail = _ratio(_TAIL, depth - F.lit(_END_OF_FLANK))
    outside = F.signum(side) * F.when(depth <= F.lit(_END_OF_FLANK), flank).otherwise(tail)
    quantile = F.when(in_centre, side * _ratio(_CENTRE, depth)).otherwise(outside)
    return staged.withColumn(name, quantile).drop("_u", "_side", "_depth")


def _ratio(coefficients: tuple[Sequence[float], Sequence[float]], x: Column) -> Column:
    return _polynomial(coefficients[0], x) / _polynomial(coefficients[1], x)


def _polynomial(coefficients: Sequence[float], x: Column) -> Column:
    value = F.lit(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + F.lit(coefficient)
    return value
