"""The symbols of ``ids.exact`` on Spark: the bits that NumPy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ids.exact import (
    Parts,
    Program,
    Sums,
    Symbol,
    attribution,
    item_of,
    split,
    split_integer,
    window_of,
    worth,
)
from ids.games import find
from tests.exact.summing import fitted, stacked, sums_of

GAMES = ("SUM", "COUNT", "AVG", "VAR_POP", "VAR_SAMP")
SIZES = [0, 1, 2, 3, 4, 40, 255, 256, 257, 300, 1000]


def evaluated(
    frame: DataFrame, program: Program, results: dict[str, Symbol]
) -> dict[str, npt.NDArray[Any]]:
    """Apply the stages one after the other, and read the results in the order of ``row``."""
    for stage in program.stages():
        frame = frame.select("*", *(F.expr(text).alias(name) for name, text in stage))
    wanted = [F.expr(symbol.text).alias(name) for name, symbol in results.items()]
    rows = frame.select("row", *wanted).orderBy("row").collect()
    return {name: np.array([row[name] for row in rows]) for name in results}


def framed(spark: SparkSession, columns: dict[str, npt.NDArray[Any]]) -> DataFrame:
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    numbered = [(number, *row) for number, row in enumerate(rows)]
    return spark.createDataFrame(numbered, ["row", *columns])


def same_bits(found: npt.NDArray[Any], expected: npt.NDArray[Any]) -> bool:
    return found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


def sums_as(name: str, sums: Sums) -> dict[str, npt.NDArray[Any]]:
    columns = {f"{name}_m": sums.count}
    columns |= {f"{name}_a{k}": part for k, part in enumerate(sums.first)}
    return columns | {f"{name}_b{k}": part for k, part in enumerate(sums.second)}


def symbols_of(name: str, program: Program, parts: Parts) -> Sums:
    return Sums(
        program.column(f"{name}_m"),
        [program.column(f"{name}_a{k}") for k in range(parts.levels)],
        [program.column(f"{name}_b{k}") for k in range(parts.squares)],
    )


def answers(window_sums: Sums, item_sums: Sums, parts: Parts) -> dict[str, Any]:
    """Every game's aggregate and attribution, on whichever operands."""
    window = window_of(window_sums, parts)
    item = item_of(window, item_sums, parts)
    found: dict[str, Any] = {}
    for name in GAMES:
        found[f"{name}_worth"], found[f"{name}_missing"] = worth(find(name), window, parts)
        attributed = attribution(find(name), window, item, parts)
        found |= {f"{name}_{part}": value for part, value in attributed._asdict().items()}
    return found


@pytest.mark.parametrize(
    "kind",
    [
        lambda rng, n: rng.lognormal(size=n),
        lambda rng, n: rng.normal(1e9, 1e-3, n),
        lambda rng, n: rng.normal(size=n) * 10.0 ** rng.integers(-9, 9, n),
        lambda rng, n: -rng.lognormal(size=n) * 1e-160,
    ],
    ids=["lognormal", "stress", "mixed", "tiny"],
)
def test_every_game_has_the_bits_of_numpy(spark: SparkSession, kind: Any) -> None:
    rng = np.random.default_rng(11)
    values = kind(rng, max(SIZES))
    parts = fitted(values)
    windows, items = [], []
    for size in SIZES:
        for share in (0.0, 0.4, 1.0):
            held = rng.random(size) < share
            windows.append(sums_of(values[:size], parts))
            items.append(sums_of(values[:size][held], parts))
    window, item = stacked(windows), stacked(items)
    program = Program("ids_")
    symbols = answers(symbols_of("w", program, parts), symbols_of("i", program, parts), parts)
    frame = framed(spark, sums_as("w", window) | sums_as("i", item))
    found = evaluated(frame, program, symbols)
    for name, expected in answers(window, item, parts).items():
        assert same_bits(found[name], expected), name


@pytest.mark.parametrize("far", [[], [1e150, -1e-300, 5e-324]], ids=["near", "far apart"])
def test_values_are_split_as_numpy_splits_them(spark: SparkSession, far: list[float]) -> None:
    rng = np.random.default_rng(12)
    values = np.concatenate(
        [rng.normal(size=200), rng.normal(size=50) * 1e-5, [0.0, 0.5, 2.0**-28], far]
    )
    parts = fitted(values)
    assert parts.wide == bool(far)
    program = Program("ids_")
    symbols, expected = (
        {f"part{k}": part for k, part in enumerate([*first, *second])}
        for first, second in (split(program.column("y"), parts), split(values, parts))
    )
    found = evaluated(framed(spark, {"y": values}), program, symbols)
    for name in symbols:
        assert same_bits(found[name], np.broadcast_to(expected[name], len(values))), name


def test_whole_numbers_of_64_bits_are_split_as_numpy_splits_them(spark: SparkSession) -> None:
    parts = Parts.for_integers(64, 2)
    edges = np.array([0, 1, -1, 2**27, -(2**27), 2**53 + 1, 2**63 - 1, -(2**63)])
    program = Program("ids_")
    symbols, expected = (
        {f"part{k}": part for k, part in enumerate([*first, *second])}
        for first, second in (
            split_integer(program.column("y"), parts),
            split_integer(edges, parts),
        )
    )
    found = evaluated(framed(spark, {"y": edges}), program, symbols)
    for name in symbols:
        assert same_bits(found[name], expected[name]), name
