"""Every function of a text gives on Spark what it gives in process, for every character."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ids.model import Call, Column, ColumnData, Comparison, Expression, Kind, Like, Literal, Table
from ids.predicates import objects, truth
from ids.predicates.three_valued import vector
from ids.spark.expression_sql import compiled
from ids.spark.frame import Frame

TEXT = Column("s")
WORDS = {name: Call(name, (TEXT,)) for name in ("LOWER", "UPPER", "TRIM")}
CONDITIONS: list[Expression] = [
    Like(TEXT, "_"),
    Like(TEXT, "%Σ"),
    Like(WORDS["UPPER"], "_Σ%Β"),
    Comparison("<", TEXT, Literal("\ufffd")),
    Comparison("=", TEXT, WORDS["TRIM"]),
    Comparison("=", Call("LENGTH", (WORDS["UPPER"],)), Literal(2)),
]


def _texts() -> list[str]:
    """Every character but ideographs, alone and where a Σ looks at it, and words of odd ones."""
    codes = [*range(0xD800), *range(0xE000, 0x20000), *range(0xE0000, 0xE0200)]
    every = [chr(code) for code in codes]
    rng = random.Random(1)
    pool = [*"ΣΣΣΣαΒİıßǅﬁ.'0 ", "\u0295", "\u0301", "\ua7cb", "\U00010d50", "\u0897", "\U0001e030"]
    words = ["".join(rng.choices(pool, k=rng.randint(2, 6))) for _ in range(5_000)]
    return [*every, *words, *(f"αΣ{c}Β" for c in every), *(f"{c}Σ" for c in every)]


@pytest.mark.slow
def test_every_character_is_the_same_in_the_jvm(spark: SparkSession) -> None:
    texts = _texts()
    data = ColumnData(Kind.TEXT, np.arange(len(texts), dtype=np.int32), None, objects(texts))
    table = Table({"s": data}, len(texts))
    frame = Frame.of(spark.createDataFrame(pa.table({"s": texts})))
    asked: dict[str, Expression] = {
        **WORDS,
        **{f"c{n}": condition for n, condition in enumerate(CONDITIONS)},
    }
    spelled = [f"{compiled(each, frame.columns).text} AS {name}" for name, each in asked.items()]
    found = frame.data.selectExpr(f"{frame.columns['s'].text} AS s", *spelled).toArrow()
    assert found["s"].to_pylist() == texts
    for name, function in WORDS.items():
        dictionary = vector(function, table).dictionary
        assert dictionary is not None
        pairs = zip(texts, dictionary, found[name].to_pylist(), strict=True)
        assert [each for each in pairs if each[1] != each[2]] == []
    for number, condition in enumerate(CONDITIONS):
        theirs = found[f"c{number}"].to_numpy().astype(np.int8)
        assert [texts[row] for row in np.flatnonzero(truth(condition, table) != theirs)] == []
