"""APPROXIMATE in process: the rows that are drawn, the estimates, and how good their bounds are."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ids
from ids.errors import ArgumentError, ScriptError
from ids.games import Drawn, Moments, Parts, Whole, estimate, find
from ids.kernels import ordinals
from ids.model import ColumnData, ItemKind, Kind, Select, Table, extremes_of
from ids.state import contents, priorities
from tests.oracles.shapley import closed_form
from tests.oracles.three_valued import evaluate
from tests.oracles.windows import kept, windows, written_out
from tests.query.agreement import select_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WORD = 2**64 - 1
COLUMNS = ("at", "k", "s", "y")  # as a plan reads them: order, keys, predicates, measures
SCHEMA = pa.schema(
    {"at": pa.timestamp("us", "UTC"), "k": pa.int64(), "s": pa.string(), "y": pa.float64()}
)
P1, P2, P3, P4, P5 = (
    *(0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9),
    *(0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5),
)

Row = Mapping[str, Any]


# ── the slow way: hashes in whole numbers, every window sorted anew ──────────────────────────────


def rotated(x: int, bits: int) -> int:
    return (x << bits | x >> (64 - bits)) & WORD


def finished(h: int) -> int:
    h = (h ^ h >> 33) * P2 & WORD
    h = (h ^ h >> 29) * P3 & WORD
    return h ^ h >> 32


def hashed(data: bytes, seed: int = 42) -> int:
    """XXH64 of fewer than 32 bytes, signed."""
    h = ((seed & WORD) + P5 + len(data)) & WORD
    while len(data) >= 8:
        word = int.from_bytes(data[:8], "little")
        h = (rotated(h ^ rotated(word * P2 & WORD, 31) * P1 & WORD, 27) * P1 + P4) & WORD
        data = data[8:]
    if len(data) >= 4:
        h = (rotated(h ^ int.from_bytes(data[:4], "little") * P1 & WORD, 23) * P2 + P3) & WORD
        data = data[4:]
    for byte in data:
        h = rotated(h ^ byte * P5 & WORD, 11) * P1 & WORD
    h = finished(h)
    return h - 2**64 if h >= 2**63 else h


def chained(*words: int) -> int:
    h = 42
    for word in words:
        h = hashed(struct.pack("<q", word), h)
    return h


def cell(value: Any) -> int:
    if value is None:
        return 42
    if isinstance(value, str):
        return hashed(value.encode())
    if isinstance(value, datetime):
        return hashed(struct.pack("<q", (value - EPOCH) // timedelta(microseconds=1)))
    return hashed(struct.pack("<d", float(value) + 0.0))


def with_priorities(rows: Sequence[Row], columns: Sequence[str], seed: int) -> list[Row]:
    seen: dict[int, int] = {}
    found: list[Row] = []
    for row in rows:
        content = chained(seed, *(cell(row[name]) for name in columns))
        ordinal = seen[content] = seen.get(content, -1) + 1
        found.append({**row, "priority": chained(content, ordinal)})
    return found


def attribution_of(game: str, item: Any, rows: Sequence[Row], size: int, confidence: float) -> Any:
    """(value, error) of a window from a sample of it, by sorting, in exact arithmetic."""
    if not rows:
        return Fraction(0), 0.0
    counts = game == "COUNT"
    argument = item.aggregate.argument
    y = [1.0 if argument is None else evaluate(argument, row) for row in rows]
    players = [i for i in range(len(rows)) if y[i] is not None]
    values = tuple(Fraction(1) if counts else Fraction(y[i]) for i in players)
    holds = [evaluate(item.predicate, row) is True for row in rows]
    member = [n for n, i in enumerate(players) if holds[i]]
    k = 0 if counts else extremes_of(size)
    if len(rows) <= size + 2 * k:
        return closed_form(game, values, member) if values else Fraction(0), 0.0
    ranked = sorted(players, key=lambda i: (y[i], chained(rows[i]["priority"])))
    whole = list(dict.fromkeys([*ranked[::-1][:k], *ranked[:k]]))
    others = sorted(
        (i for i in range(len(rows)) if i not in whole), key=lambda i: -rows[i]["priority"]
    )
    drawn = others[:size]
    place = {i: n for n, i in enumerate(players)}

    def worth(i: int) -> Fraction:
        return closed_form(game, values, [place[i]]) if i in place and holds[i] else Fraction(0)

    value = sum(map(worth, whole), Fraction(0))
    value += Fraction(len(others), size) * sum(map(worth, drawn), Fraction(0))
    ends = ranked[:: max(1, len(ranked) - 1)]
    low, high = (y[ranked[k - 1]], y[ranked[-k]]) if 0 < k <= len(ranked) else (0.0, 0.0)
    if k == 0 and ends:
        low, high = y[ends[0]], y[ends[-1]]
    if 0 < len(ranked) < k:
        low, high = y[ranked[-1]], y[ranked[0]]
    if len(players) <= len(whole):
        low, high = 1.0, 0.0
    rest = Parts(np.array([0]), np.array([len(others)]), np.array([low]), np.array([high]))

    def given(chosen: list[int]) -> tuple[Any, Any, Any]:
        shown = np.array([0.0 if counts or y[i] is None else y[i] for i in chosen])
        inside = np.array([holds[i] and i in place for i in chosen], np.bool_)
        return np.array([0, len(chosen)]), shown, inside

    found = estimate(
        find(game),
        moments(values),
        rest,
        Drawn(*given(drawn)),
        Whole(*given(whole)),
        confidence=confidence,
    )
    return value, float(found.error[0])


def moments(values: tuple[Fraction, ...]) -> Moments:
    count = len(values)
    mean = sum(values, Fraction(0)) / max(count, 1)
    central = [float(sum((v - mean) ** d for v in values)) for d in range(3)]
    return Moments.of(float(count), float(sum(values)), float(mean), central)


def oracle(select: Select, rows: Sequence[Row], columns: Sequence[str], seed: int) -> list[Any]:
    """(value, error) of every item at every emit."""
    found = []
    select = written_out(select, {})
    for window in windows(select, with_priorities(kept(select, rows), columns, seed)):
        answers = []
        for item in select.items:
            assert item.approximate is not None
            size, confidence = item.approximate.size, item.approximate.confidence
            game, change = item.aggregate.function, item.kind is ItemKind.DELTA
            confidence = 1 - (1 - confidence) / 2 if change else confidence
            value, error = attribution_of(game, item, window.rows, size, confidence)
            if change:
                before, more = attribution_of(game, item, window.before, size, confidence)
                value, error = value - before, error + more
            answers.append((value, error))
        found.append(answers)
    return found


# ── the engine against it ────────────────────────────────────────────────────────────────────────


@st.composite
def crowded(draw: st.DrawFn) -> list[Row]:
    """Rows of which many are equal, with ties in y and at one instant, and NULLs."""
    size = draw(st.integers(1, 60))
    values = draw(
        st.sampled_from(
            [
                st.sampled_from([0.0, 1.0, 1.0, 2.5, -4.0]),
                st.integers(-1000, 1000).map(lambda v: v / 8),
                st.just(3.0),
            ]
        )
    )
    holes = draw(st.sampled_from([0, 1, 3, 40]))
    cells = st.fixed_dictionaries(
        {
            "at": st.integers(-20, 40).map(lambda t: EPOCH + timedelta(seconds=t)),
            "k": st.sampled_from([1, 2, None]),
            "s": st.sampled_from(["a", "b", "é", None]),
            "y": st.one_of(*[values] * 4, *[st.none()] * holes),
        }
    )
    rows: list[Row] = list(draw(st.lists(cells, min_size=size, max_size=size)))
    copies = draw(st.integers(0, 5))
    return rows + rows[: copies * 2]


@st.composite
def scripts(draw: st.DrawFn) -> str:
    games = st.sampled_from(["SUM(y)", "AVG(y)", "VAR_POP(y)", "VAR_SAMP(y)", "COUNT(y)"])
    sizes = st.sampled_from([1, 2, 5, 8, 9, 16, 24])
    items = []
    for number in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["ATTRIBUTE", "ATTRIBUTE", "DELTA"]))
        sample = f"APPROXIMATE USING RESERVOIR SAMPLE {draw(sizes)} CONFIDENCE 0.9"
        items.append(f"SHAPLEY_{kind}({draw(games)}, s IN ('a', 'b') {sample}) AS i{number}")
    frame = draw(
        st.sampled_from(
            [
                "ROWS 30 PRECEDING",
                "ROWS 25 PRECEDING SLIDE 4 ROWS",
                "ROWS 12 PRECEDING SLIDE 30 ROWS",
                "RANGE INTERVAL '20' SECOND PRECEDING SLIDE INTERVAL '5' SECOND",
                "RANGE INTERVAL '10' SECOND PRECEDING SLIDE INTERVAL '10' SECOND",
            ]
        )
    )
    key = draw(st.sampled_from(["", "PARTITION BY k "]))
    where = draw(st.sampled_from(["", "WHERE y <= 2 OR s = 'a' "]))
    return (
        f"SELECT {', '.join(items)} FROM t {where}"
        f"WINDOW w AS ({key}ORDER BY at {frame}) EMIT CHANGES"
    )


@settings(max_examples=60)
@given(crowded(), scripts(), st.sampled_from([0, 1, -5]))
def test_every_emit_is_that_of_a_window_sorted_anew(
    rows: list[Row], script: str, seed: int
) -> None:
    select = select_of(script)
    columns = [name for name in COLUMNS if name != "k" or select.window.partition_by]
    table = ids.sql(script, t=pa.Table.from_pylist(rows, SCHEMA), seed=seed)
    expected = oracle(select, rows, columns, seed)
    assert table.num_rows == len(expected)
    for number in range(len(select.items)):
        values, errors = (table[f"i{number}{end}"].to_pylist() for end in ("", "_error"))
        for value, error, answers in zip(values, errors, expected, strict=True):
            right, bound = answers[number]
            assert value == pytest.approx(float(right), rel=1e-9, abs=1e-7)
            assert error == pytest.approx(bound, rel=1e-6, abs=1e-7)


def sampled(size: int, rest: str = "", aggregate: str = "AVG(y)", emit: str = "CHANGES") -> str:
    sample = f"APPROXIMATE USING RESERVOIR SAMPLE {size}{rest}"
    return (
        f"SELECT SHAPLEY_ATTRIBUTE({aggregate}, s = 'a' WITH (SHARE, LIFT) {sample}) AS x,\n"
        f"SHAPLEY_ATTRIBUTE({aggregate}, s = 'a' WITH (SHARE, LIFT)) AS e\n"
        f"FROM t WINDOW w AS (ORDER BY at ROWS 2000 PRECEDING SLIDE 500 ROWS) EMIT {emit}"
    )


def stream(rows: int, seed: int = 7) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    y = rng.lognormal(3.0, 1.0, rows)
    y[rng.random(rows) < 0.3] = 20.0  # many rows of one value
    return {"at": np.arange(rows), "s": rng.choice(["a", "b", "c"], rows), "y": y}


def column(table: pa.Table, name: str) -> Any:
    return table[name].to_numpy()


@pytest.mark.parametrize("aggregate", ["SUM(y)", "COUNT(*)", "AVG(y)", "VAR_POP(y)", "M3(y)"])
def test_errors_stay_within_their_bounds_and_means_near_the_truth(aggregate: str) -> None:
    table, seeds = stream(40_000), 12
    script = sampled(256, " CONFIDENCE 0.9", aggregate)
    found = [ids.sql(script, t=table, seed=seed) for seed in range(seeds)]
    wide = column(found[0], "n") > 256 + 2 * 32
    errors = np.array([column(t, "x") - column(t, "e") for t in found])[:, wide]
    bounds = np.array([column(t, "x_error") for t in found])[:, wide]
    assert (bounds > 0).all()
    # 20 windows that share no row, 12 seeds: 24 of 240 may be out; more than 60 is beyond chance
    apart = np.abs(errors[:, ::4]) > bounds[:, ::4]
    assert apart.sum() <= 60
    off = errors[:, ::4].mean() / (errors[:, ::4].std() / np.sqrt(errors[:, ::4].size))
    assert abs(off) < 5.5, "without bias, though extremes are taken whole and values are tied"
    total = column(found[0], "x_share") + column(found[0], "x_lift")
    assert total == pytest.approx(column(found[0], "x"), rel=1e-9)


def test_ties_are_broken_by_something_else_than_the_priority() -> None:
    # nine in ten rows are 0, the others 1: were the rows of highest priority taken whole among
    # equals, the sample of the others would hardly hold a 1
    rng = np.random.default_rng(3)
    rows = 4_000
    table = {"at": np.arange(rows), "s": ["a"] * rows, "y": (rng.random(rows) < 0.1) * 1.0}
    script = sampled(512, "", "SUM(y)", "FINAL").replace("s = 'a'", "y > 0.5")
    found = [ids.sql(script, t=table, seed=seed) for seed in range(20)]
    errors = [column(t, "x")[-1] - column(t, "e")[-1] for t in found]
    assert abs(np.mean(errors)) < 5.5 * np.std(errors) / np.sqrt(len(errors)) < 40


def test_a_window_no_larger_than_its_sample_is_answered_exactly() -> None:
    table = ids.sql(sampled(2_000), t=stream(5_000))
    assert table["x"] == table["e"]
    assert table["x_share"] == table["e_share"] and table["x_lift"] == table["e_lift"]
    assert not column(table, "x_error").any()
    assert set(table["x_mechanism"].to_pylist()) == {"sample"}


def test_columns_stand_behind_the_item_in_the_order_of_the_contract() -> None:
    table = ids.sql(sampled(64), t=stream(1_000))
    behind = ["x", "x_share", "x_lift", "x_error", "x_mechanism", "e", "e_share", "e_lift"]
    assert table.column_names == ["emit_at", "n", *behind]
    assert table.schema.field("x_error").type == pa.float64()
    assert table.schema.field("x_mechanism").type == pa.string()


def test_the_seed_decides_and_nothing_else() -> None:
    table = stream(6_000)
    first, again, other = (ids.sql(sampled(64), t=table, seed=s) for s in (5, 5, 6))
    assert first == again
    assert first["x"] != other["x"] and first["e"] == other["e"]
    rows = np.random.default_rng(1).permutation(6_000)
    shuffled = {name: np.asarray(values)[rows] for name, values in table.items()}
    assert ids.sql(sampled(64), t=shuffled, seed=5) == first


def test_the_last_emit_is_the_last_of_all() -> None:
    table = stream(5_250)
    every, last = (ids.sql(sampled(64, emit=e), t=table) for e in ("CHANGES", "FINAL"))
    assert last == every.slice(every.num_rows - 1)


@pytest.mark.parametrize("trend", [1.0, -1.0])
def test_values_that_rise_or_fall_all_the_time_are_drawn_alike(trend: float) -> None:
    # no row is ever dominated at one end, every row at the other
    rows = 12_000
    table = {"at": np.arange(rows), "s": ["a", "b"] * (rows // 2), "y": trend * np.arange(rows)}
    script = sampled(64).replace("SLIDE 500", "SLIDE 1").replace("2000", "5000")
    found = ids.sql(script, t=table)
    wide = column(found, "n") > 64 + 2 * 8
    off = np.abs(column(found, "x") - column(found, "e"))
    assert (off <= column(found, "x_error"))[wide].mean() > 0.95


def test_contents_tell_rows_apart_and_ordinals_tell_equal_rows_apart() -> None:
    words = np.array(["a", "b", "ab"], object)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 500).astype(np.int32)
    whole = rng.choice([1, 2**53, 2**53 + 1, -(2**60)], 500)
    table = Table(
        {
            "s": ColumnData(Kind.TEXT, codes, rng.random(500) < 0.9, words),
            "k": ColumnData(Kind.NUMBER, whole),
            "b": ColumnData(Kind.BOOLEAN, rng.random(500) < 0.5),
        },
        500,
    )
    found = contents(table, ["s", "k", "b"], 3)
    valid = table.columns["s"].valid
    assert valid is not None
    shown = list(zip(np.where(valid, codes, -1), whole, table.columns["b"].values, strict=True))
    assert len(set(found.tolist())) == len(set(shown)) > 30
    numbers = np.empty(500, np.int64)
    ordinals(found, numbers)
    seen: dict[int, int] = {}
    for content, number in zip(found.tolist(), numbers.tolist(), strict=True):
        assert number == seen.get(content, 0)
        seen[content] = number + 1
    assert len(set(priorities(found).tolist())) == 500


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        ("0", "a sample of 0 rows at line 1, column 77; choose 1 to 16,777,216"),
        ("9 CONFIDENCE 0", "a confidence of 0 at line 1, column 90; choose a number between 0"),
        ("9 CONFIDENCE 1", "a confidence of 1 at line 1, column 90; choose a number between 0"),
        ("9 CONFIDENCE 2", "a confidence of 2 at line 1, column 90; choose a number between 0"),
        ("99999999", "a sample of 99,999,999 rows at line 1, column 77; choose 1 to 16,777,216"),
    ],
)
def test_samples_that_cannot_be_are_refused_where_they_stand(rest: str, told: str) -> None:
    script = (
        f"SELECT SHAPLEY_ATTRIBUTE(AVG(y), s = 'a' APPROXIMATE USING RESERVOIR SAMPLE {rest})"
        " FROM t WINDOW w AS (ORDER BY at ROWS 2 PRECEDING) EMIT CHANGES"
    )
    with pytest.raises(ScriptError) as error:
        ids.sql(script, t=stream(3))
    assert str(error.value).startswith(told)


def test_a_seed_is_a_whole_number_of_64_bits() -> None:
    with pytest.raises(ArgumentError, match="a seed of 9223372036854775808; choose a whole number"):
        ids.sql(sampled(9), t=stream(3), seed=2**63)


def test_explain_tells_of_the_sample() -> None:
    table = ids.sql("EXPLAIN " + sampled(1500, " CONFIDENCE 0.995"), t=stream(3))
    (line,) = (line for line in table["plan"].to_pylist() if line.startswith("x = "))
    assert line.endswith(": sample of 1,500 rows, bound at 99.5 %")
