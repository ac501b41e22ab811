"""The path for queries that speak at every row gives the general path's answers, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ids
from ids.query import Answers
from ids.query import replay as dense

ITEMS = (
    "SHAPLEY_ATTRIBUTE(AVG(y), a WITH (SHARE, LIFT))",
    "SHAPLEY_ATTRIBUTE(SUM(y), a OR NOT b WITH (LIFT))",
    "SHAPLEY_ATTRIBUTE(COUNT(y), b)",
    "SHAPLEY_DELTA(AVG(y), y > 50)",
    "SHAPLEY_ATTRIBUTE(AVG(y), TRUE WITH (SHARE, LIFT))",
    "AVG(y)",
    "SUM(y)",
    "COUNT(y)",
)


PATH = "ids.query.evaluate.answer_every_row"


def table(rows: int, seed: int, nulls: bool, keys: int, stress: bool) -> pa.Table:
    rng = np.random.default_rng(seed)
    y = 1e9 + 1e-3 * rng.standard_normal(rows) if stress else rng.lognormal(4, 1, rows)
    missing = rng.random(rows) < (0.2 if nulls else 0.0)
    return pa.table(
        {
            "t": rng.integers(0, rows, rows),
            "k": rng.integers(0, keys, rows),
            "region": rng.choice(["EU", "US", "AP"], rows),
            "tier": pa.array(rng.choice(["p", "b"], rows), mask=rng.random(rows) < 0.1),
            "y": pa.array(y, mask=missing),
        }
    )


def script(window: int, keys: int, items: tuple[str, ...] = ITEMS) -> str:
    partition = "PARTITION BY k " if keys > 1 else ""
    return (
        "REGISTER PREDICATE a AS (region = 'EU') ON w; REGISTER PREDICATE b AS (tier = 'p') ON w;"
        f"SELECT {', '.join(items)} FROM w "
        f"WINDOW x AS ({partition}ORDER BY t ROWS {window} PRECEDING) EMIT CHANGES"
    )


def equal_to_the_bit(left: pa.Table, right: pa.Table) -> bool:
    return left.schema == right.schema and all(
        np.array_equal(
            left[name].to_numpy(zero_copy_only=False).view(np.int64),
            right[name].to_numpy(zero_copy_only=False).view(np.int64),
        )
        for name in left.column_names
    )


@settings(max_examples=25)
@given(
    rows=st.integers(2_500, 6_000),
    window=st.sampled_from([1, 2, 7, 135, 136, 137, 500, 10_000]),
    seed=st.integers(0, 2**32),
    nulls=st.booleans(),
    keys=st.sampled_from([1, 1, 3]),
    stress=st.booleans(),
)
def test_same_bits_as_the_general_path(rows, window, seed, nulls, keys, stress):  # type: ignore[no-untyped-def]
    data = table(rows, seed, nulls, keys, stress)
    answered = ids.sql(script(window, keys), w=data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PATH, lambda *_: None)
        general = ids.sql(script(window, keys), w=data)
    assert equal_to_the_bit(answered, general)


def test_stretches_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    data = table(5_000, 1, True, 2, False)
    whole = ids.sql(script(300, 2), w=data)
    for length in (136, 272, 1_360):
        monkeypatch.setattr(
            dense,
            "_thread_parts",
            lambda rows, _, length=length: [
                (at, min(at + length, rows)) for at in range(0, rows, length)
            ],
        )
        assert equal_to_the_bit(ids.sql(script(300, 2), w=data), whole)


def test_it_is_the_dense_path_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    answered: list[Answers | None] = []

    def spy(*given: Any) -> Answers | None:
        answered.append(dense.answer_every_row(*given))
        return answered[-1]

    monkeypatch.setattr(PATH, spy)
    ids.sql(script(100, 1), w=table(3_000, 2, False, 1, False))
    assert answered[0] is not None


def test_a_window_of_players_only_null_is_all_zero_and_its_average_null() -> None:
    rows = 1_000
    data = {"t": range(rows), "region": ["EU"] * rows, "y": pa.nulls(rows, pa.float64())}
    asked = "SHAPLEY_ATTRIBUTE(AVG(y), region = 'EU' WITH (SHARE, LIFT)) AS v, AVG(y) AS m"
    got = ids.sql(
        f"SELECT {asked} FROM w WINDOW x AS (ORDER BY t ROWS 5 PRECEDING) EMIT CHANGES",
        w=data | {"t": list(range(rows))},
    )
    assert set(got["v"].to_pylist()) == {0.0}
    assert set(got["v_lift"].to_pylist()) == {0.0}
    assert set(got["m"].to_pylist()) == {None}
    assert got["n"].to_pylist()[-1] == 5
