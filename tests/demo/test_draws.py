from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from ids.demo.events import choice, exponential, hashed, ladder, uniform, with_normal

WORD = 2**64 - 1
PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def xxhash64(number: int, seed: int) -> int:
    """XXH64 of eight bytes, by its specification."""
    one, two, three, four, five = PRIMES

    def turned(word: int, by: int) -> int:
        return (word << by | word >> (64 - by)) & WORD

    word = (seed + five + 8) & WORD
    word ^= turned(number * two & WORD, 31) * one & WORD
    word = (turned(word, 27) * one + four) & WORD
    word ^= word >> 33
    word = word * two & WORD
    word ^= word >> 29
    word = word * three & WORD
    return word ^ word >> 32


def drawn_in_python(seed: int, stream: str, number: int) -> int:
    key = int.from_bytes(hashlib.sha256(f"{seed}/{stream}".encode()).digest()[:8], "big")
    return xxhash64(number & WORD, xxhash64(key, 42))


def column(spark: SparkSession, rows: int, *columns: Column) -> list[npt.NDArray[np.generic]]:
    named = [c.alias(f"c{i}") for i, c in enumerate(columns)]
    table = spark.range(rows).select("id", *named).orderBy("id").toArrow()
    return [table.column(f"c{i}").to_numpy() for i in range(len(columns))]


@pytest.mark.parametrize(("seed", "stream"), [(0, ""), (1, "gap"), (-5, "région"), (2**70, "gap")])
def test_a_draw_is_a_hash_of_seed_stream_and_row_and_nothing_else(
    spark: SparkSession, seed: int, stream: str
) -> None:
    row = F.col("id") - F.lit(50)
    bits, draws = column(spark, 100, hashed(seed, stream, row), uniform(seed, stream, row))
    expected = [drawn_in_python(seed, stream, number) for number in range(-50, 50)]
    assert [int(b) & WORD for b in bits] == expected
    assert draws.tolist() == [((word >> 12) + 0.5) / 2**52 for word in expected]


def test_draws_of_two_streams_or_seeds_have_nothing_to_do_with_each_other(
    spark: SparkSession,
) -> None:
    row = F.col("id")
    draws = column(spark, 20_000, *(uniform(s, n, row) for s in (1, 2) for n in ("a", "b")))
    correlation = np.corrcoef(np.array(draws, np.float64)) - np.eye(4)
    assert np.abs(correlation).max() < 4 / np.sqrt(20_000)
    lagged = np.corrcoef(draws[0][:-1].astype(float), draws[0][1:].astype(float))[0, 1]
    assert abs(lagged) < 4 / np.sqrt(20_000)


def test_the_normal_quantile_is_that_of_the_standard_library(spark: SparkSession) -> None:
    ends = [2.0**-53, 2.0**-40, 1e-12, 0.0749, 0.075, 0.0751, 0.5, 0.925, 0.9251, 1 - 2.0**-53]
    points = ends + np.random.default_rng(1).random(2000).tolist()
    frame = spark.createDataFrame([(p,) for p in points], "p double")
    table = with_normal(frame, "z", F.col("p")).toArrow()
    assert table.column_names == ["p", "z"]
    exact = [NormalDist().inv_cdf(p) for p in table.column("p").to_pylist()]
    np.testing.assert_allclose(table.column("z").to_numpy(), exact, rtol=1e-14, atol=1e-16)


def random_steps(rng: np.random.Generator, count: int) -> list[float]:
    return sorted(set(map(float, rng.integers(0, 1000, count))))


def test_a_ladder_finds_what_bisection_finds(spark: SparkSession) -> None:
    rng = np.random.default_rng(2)
    cases = [random_steps(rng, count) for count in (0, 1, 2, 3, 7, 50, 100)]
    found = column(
        spark, 1000, *(ladder(F.col("id"), steps, range(len(steps) + 1)) for steps in cases)
    )
    for steps, values in zip(cases, found, strict=True):
        assert values.tolist() == [bisect_right(steps, x) for x in range(1000)]


@pytest.mark.parametrize("weights", [[1.0], [0.3, 0.7], [1, 2, 3, 4], [1 / k for k in range(1, 9)]])
def test_a_choice_is_as_frequent_as_its_weight(
    spark: SparkSession, weights: Sequence[float]
) -> None:
    draw = uniform(3, "choice", F.col("id"))
    (found,) = column(spark, 20_000, choice(draw, list(range(len(weights))), weights))
    counts = np.bincount(found.astype(int), minlength=len(weights))
    shares = np.array(weights) / sum(weights)
    spread = np.sqrt(20_000 * shares * (1 - shares))
    assert (np.abs(counts - 20_000 * shares) <= 4 * spread).all()


def test_an_exponential_has_the_mean_and_the_spread_of_one(spark: SparkSession) -> None:
    (gaps,) = column(spark, 20_000, exponential(uniform(4, "gap", F.col("id")), 7.0))
    values = gaps.astype(float)
    assert values.min() > 0
    assert values.mean() == pytest.approx(7.0, rel=4 / np.sqrt(20_000))
    assert values.std() == pytest.approx(7.0, rel=0.06)
    assert (values > 7.0).mean() == pytest.approx(np.exp(-1), abs=0.014)
