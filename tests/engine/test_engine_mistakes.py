"""Wrong input: one clear line, and an engine that is as it was."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pytest

import ids
from ids.errors import ArgumentError, DataError, IdsError, ScriptError, StateError, UnknownNameError
from tests.streams.comparing import everything

GOOD = {"t": [1, 2, 3], "x": [1.0, 2.0, None], "region": ["EU", None, "US"], "k": [1, 2, 3]}


def begun(**settings: Any) -> ids.Engine:
    engine = ids.Engine(
        **{"window": ids.TimeWindow(100), "value": "x", "order_by": "t", "lateness": 5, **settings}
    )
    engine.register("eu", "region = 'EU'")
    engine.register("big", "x > 1")
    engine.ingest(GOOD)
    return engine


BAD = [
    ({**GOOD, "x": [1.0, float("nan"), 2.0]}, DataError, r"'x' is NaN in row 2"),
    ({**GOOD, "x": [float("inf"), 1.0, 2.0]}, DataError, r"'x' is infinite in row 1"),
    ({**GOOD, "x": [1.0, -float("inf"), 2.0]}, DataError, r"'x' is infinite in row 2"),
    ({**GOOD, "t": [4, None, 5]}, DataError, r"NULL event time 't' in row 2"),
    ({**GOOD, "t": [4.0, 4.5, 5.0]}, DataError, r"'t' is 4.5, not a whole number, in row 2"),
    (
        {**GOOD, "t": [4.0, float("nan"), 5.0]},
        DataError,
        r"'t' is nan, not a whole number, in row 2",
    ),
    (
        {**GOOD, "x": ["a", "b", "c"]},
        DataError,
        r"'x' is of type text in this batch, of type number before",
    ),
    (
        {**GOOD, "region": [1, 2, 3]},
        DataError,
        r"'region' is of type number in this batch, of type text before",
    ),
    ({n: v for n, v in GOOD.items() if n != "k"}, UnknownNameError, r"unknown column 'k'"),
    ({**{n: v for n, v in GOOD.items() if n != "x"}, "xx": [1.0] * 3}, UnknownNameError, "'xx'"),
    ({**GOOD, "x": [[1.0], [2.0], [3.0]]}, DataError, r"column 'x' is a list"),
    ({**GOOD, "x": [1.0]}, IdsError, r"columns of equal length"),
    (object(), IdsError, r"give a pyarrow Table"),
    ("no/such/file.parquet", IdsError, r"no/such/file.parquet"),
]


@pytest.mark.parametrize(("batch", "error", "message"), BAD)
@pytest.mark.parametrize("retain", [True, False])
def test_a_bad_batch_is_refused_whole(
    batch: Any, error: type[IdsError], message: str, retain: bool
) -> None:
    engine = begun(retain=retain)
    if not retain and "'k'" in message:
        return  # a column nobody reads is not missed
    before, held = everything(engine), engine.memory()
    for call in (engine.ingest, lambda b: engine.apply(inserts=b)):
        with pytest.raises(error, match=message) as caught:
            call(batch)
        assert "\n" not in str(caught.value)
        assert everything(engine) == before
        assert engine.memory() == held
    engine.ingest({**GOOD, "t": [4, 5, 6]})
    assert engine.rows == 6


@pytest.mark.parametrize(("batch", "error", "message"), BAD)
def test_a_bad_first_batch_leaves_a_fresh_engine(
    batch: Any, error: type[IdsError], message: str
) -> None:
    engine = ids.Engine(ids.TimeWindow(100), "x", order_by="t", lateness=5)
    engine.register("eu", "region = 'EU'")
    with pytest.raises(IdsError) as caught:
        engine.ingest(batch)
        assert "'k'" in message, "only a column nobody reads may be missing"
        raise UnknownNameError("column", "k")
    assert "\n" not in str(caught.value)
    if "'k'" not in message:
        engine.ingest(GOOD)
        assert engine.attribute("SUM", "eu").value == 1.0


@pytest.mark.parametrize("engine", [begun(), ids.Engine(ids.CountWindow(9), "x")])
def test_a_condition_on_a_column_in_double_quotes_is_refused_with_rows_and_without(
    engine: ids.Engine,
) -> None:
    meant = "'region' = 'EU' reads no column at line 1, column 1; did you mean `region`"
    with pytest.raises(ScriptError, match=meant):
        engine.register("quoted", "\"region\" = 'EU'")
    with pytest.raises(ScriptError, match=meant):
        engine.attribute("SUM", "\"region\" = 'EU'")


def test_a_first_batch_of_nulls_is_taken_for_what_the_conditions_say() -> None:
    engine = ids.Engine(ids.CountWindow(9), "x")
    conditions = {"text": "k = 'a'", "flag": "NOT b", "number": "n > 1", "time": "HOUR(w) = 0"}
    for name, condition in conditions.items():
        engine.register(name, condition)
    nothing = {name: [None, None] for name in "kbnw"}
    engine.ingest({"x": [1.0, 2.0], **nothing})
    assert [engine.attribute("SUM", name).value for name in conditions] == [0.0] * 4
    engine.ingest({"x": [4.0], "k": ["a"], "b": [False], "n": [2], "w": [datetime(2026, 1, 1)]})
    assert [engine.attribute("SUM", name).value for name in conditions] == [4.0] * 4


def test_a_batch_without_rows_changes_nothing() -> None:
    engine = begun()
    before = everything(engine)
    nothings: list[dict[str, Any]] = [
        {n: [] for n in GOOD},
        {"other": []},
        {n: np.zeros(0) for n in GOOD},
    ]
    for nothing in nothings:
        engine.ingest(nothing)
        engine.apply(inserts=nothing, deletes=nothing)
    engine.apply()
    assert everything(engine) == before


def test_a_first_batch_without_rows_decides_nothing() -> None:
    engine = ids.Engine(ids.CountWindow(5), "x")
    engine.register("eu", "region = 'EU'")
    engine.ingest({"x": [], "region": []})
    assert engine.rows == 0
    engine.ingest({"x": [1.0], "region": ["EU"]})
    assert engine.attribute("AVG", "eu").value == 1.0


def test_a_column_of_nothing_but_null_is_of_any_kind() -> None:
    engine = begun()
    engine.ingest({"t": [4, 5], "x": [None, None], "region": [None, None], "k": [None, None]})
    assert engine.rows == 5
    assert engine.attribute("COUNT", "eu").value == 1.0
    assert engine.attribute("COUNT", "region IS NULL").value == 3.0
    assert engine.attribute("COUNT", "k IS NULL").value == 2.0


def test_whole_numbers_may_turn_into_fractions() -> None:
    engine = ids.Engine(ids.CountWindow(4), "x")
    engine.register("big", "x > 2")
    engine.ingest({"x": [1, 2, 3]})
    engine.ingest({"x": [2.5]})
    assert engine.attribute("SUM", "big").value == 5.5
    assert engine.attribute("SUM", "x > 2.2").value == 5.5
    engine.ingest({"x": [7]})
    assert engine.attribute("SUM", "x > 2.2").value == 12.5
    engine.apply(deletes={"x": [7, 2]})
    assert engine.attribute("SUM", "x > 2.2").value == 5.5


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        (("AVG", "eux"), UnknownNameError, r"unknown predicate 'eux'.*did you mean 'eu'\?"),
        (("AVG", "regoin = 'EU'"), UnknownNameError, r"did you mean 'region'\?"),
        (("AVGG", "eu"), ScriptError, r"AVG"),
        (("AVG(y)", "eu"), UnknownNameError, r"unknown column 'y'"),
        (("AVG(k)", "eu"), UnknownNameError, r"unknown measure 'k'; known: x"),
        (("M3", "eu"), StateError, r"needs power sums up to 3, this engine keeps 2.*degree=3"),
        (("AVG", "region"), ScriptError, r"must be a condition"),
        (("AVG", "eu AND"), ScriptError, r"."),
        (("AVG", ""), ScriptError, r"."),
        (("AVG", "x > 'text'"), ScriptError, r"."),
    ],
)
def test_a_question_that_cannot_be_answered(
    asked: tuple[str, str], error: type[IdsError], message: str
) -> None:
    engine = begun()
    before = everything(engine)
    with pytest.raises(error, match=message) as caught:
        engine.attribute(*asked)
    assert "\n" not in str(caught.value)
    assert everything(engine) == before


@pytest.mark.parametrize(
    ("name", "condition", "message"),
    [
        ("eu", "x > 3", r"predicate 'eu' is already registered; drop it first"),
        ("EU", "x > 3", r"already registered"),
        ("new", "regoin = 'EU'", r"did you mean 'region'\?"),
        ("new", "x +", r"."),
        ("new", "x + 1", r"must be a condition"),
        ("new", "region > 3", r"."),
    ],
)
def test_a_predicate_that_cannot_be_registered(name: str, condition: str, message: str) -> None:
    engine = begun()
    before = everything(engine)
    with pytest.raises(ScriptError, match=message):
        engine.register(name, condition)
    assert everything(engine) == before


def test_a_predicate_that_others_are_written_with_cannot_be_dropped() -> None:
    engine = begun()
    engine.register("both", "eu AND big")
    before = everything(engine)
    with pytest.raises(UnknownNameError, match="'eu'"):
        engine.drop("eu")
    with pytest.raises(UnknownNameError, match=r"unknown predicate 'bot'; did you mean 'both'\?"):
        engine.drop("bot")
    assert everything(engine) == before
    engine.drop("both")
    engine.drop("eu")
    assert list(engine.predicates) == ["big"]


def test_a_text_measure_is_refused_at_the_first_batch() -> None:
    engine = ids.Engine(ids.CountWindow(5), "region")
    with pytest.raises(ScriptError, match="an aggregate needs a number"):
        engine.ingest(GOOD)
    assert engine.rows == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": ids.TimeWindow(5)}, "requires order_by"),
        ({"window": ids.CountWindow(5), "degree": 7}, "degree 7 is out of range"),
        ({"window": ids.CountWindow(5), "degree": -1}, "degree -1 is out of range"),
        ({"window": ids.CountWindow(5), "lateness": -1}, "cannot be negative"),
        ({"window": ids.CountWindow(5), "lateness": "soon"}, "not a duration"),
        ({"window": ids.CountWindow(5), "value": "x +"}, "."),
        ({"window": ids.CountWindow(5), "intersections": ["a AND"]}, "."),
    ],
)
def test_an_engine_that_cannot_be(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((ArgumentError, ScriptError), match=message):
        ids.Engine(**settings)


def test_order_by_a_column_that_is_not_there_or_is_text() -> None:
    engine = ids.Engine(ids.CountWindow(5), "x", order_by="when")
    with pytest.raises(UnknownNameError, match="unknown column 'when'"):
        engine.ingest(GOOD)
    engine = ids.Engine(ids.CountWindow(5), "x", order_by="region")
    with pytest.raises(DataError, match="cannot order by text column 'region'"):
        engine.ingest(GOOD)
    assert engine.rows == 0


def test_a_late_row_is_counted_and_shapes_nothing() -> None:
    engine = begun(retain=False)
    engine.ingest({**GOOD, "t": [50, 20, 51], "x": [1.0, 1e300, 2.0]})
    assert (engine.late_rows, engine.rows) == (1, 5)
    assert engine.aggregate("SUM") == 6.0


def test_only_a_time_window_moves_with_time() -> None:
    with pytest.raises(StateError, match="only a TimeWindow"):
        ids.Engine(ids.CountWindow(5), "x").advance(5)


def test_deletes_need_rows_or_summaries_that_can_tell() -> None:
    engine = ids.Engine(ids.CountWindow(5), "x", retain=False)
    engine.ingest({"x": [1.0, 2.0]})
    with pytest.raises(StateError, match="cannot find the row to delete"):
        engine.apply(deletes={"x": [1.0]})
    assert engine.rows == 2
    fresh = ids.Engine(ids.Changelog(), "x", retain=False)
    with pytest.raises(StateError, match="not in the window"):
        fresh.apply(deletes={"x": [1.0]})
    fresh.apply(inserts={"y": ["text"], "x": [2]})
    assert fresh.aggregate("SUM") == 2.0


def test_a_delete_and_an_insert_stand_or_fall_together() -> None:
    engine = ids.Engine(ids.Changelog(), "x", retain=True)
    engine.register("big", "x > 1")
    engine.apply(inserts={"x": [1, 2**60 + 1]})
    before = everything(engine)
    with pytest.raises(StateError, match="not in the window"):
        engine.apply(inserts={"x": [5]}, deletes={"x": [1, 1]})
    assert everything(engine) == before
    with pytest.raises(StateError, match="give it one type"):
        engine.apply(inserts={"x": [0.5]}, deletes={"x": [1]})
    assert everything(engine) == before
    with pytest.raises(DataError):
        engine.apply(inserts={"x": [float("nan")]}, deletes={"x": [1]})
    assert everything(engine) == before
    engine.apply(inserts={"x": [5]}, deletes={"x": [1]})
    assert engine.rows == 2
