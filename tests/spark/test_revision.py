"""A script that changes between two starts of a stream: it goes on, or is refused by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import ids
from ids.errors import CheckpointError
from ids.exact import Parts
from ids.model import Kind
from ids.plan import Schema as PlanSchema
from ids.plan import SelectPlan, planned
from ids.spark import stream_count as row_store
from ids.spark.spark_evaluate import Layout
from ids.spark.stream_checkpoint import Begins, Revision, Script
from ids.spark.stream_panes import relaid
from tests.spark.streams import arrive, events, run

SLIDE, WIDTH = 10_000_000, 3
POOL = (
    "COUNT(*) AS c",
    "SUM(latency) AS s",
    "AVG(size) AS m",
    "VAR_POP(latency) AS v",
    "SHAPLEY_ATTRIBUTE(COUNT(*), region = 'EU') AS ce",
    "SHAPLEY_ATTRIBUTE(SUM(latency), region = 'EU' WITH (SHARE, LIFT)) AS se",
    "SHAPLEY_ATTRIBUTE(VAR_SAMP(latency), tier = 'free') AS vf",
    "SHAPLEY_DELTA(AVG(size), tier = 'free') AS df",
    "SHAPLEY_DELTA(SUM(latency), latency > 20) AS dl",
)
KINDS = {
    "event_time": Kind.TIME,
    "region": Kind.TEXT,
    "tier": Kind.TEXT,
    "latency": Kind.NUMBER,
    "size": Kind.NUMBER,
}


def script(
    *items: str, keys: str = "", where: str = "", order: str = "event_time", frame: str = ""
) -> str:
    frame = frame or "RANGE INTERVAL '30' SECOND PRECEDING SLIDE INTERVAL '10' SECOND"
    return (
        f"SELECT {', '.join(items)} FROM events {where} "
        f"WINDOW w AS ({keys} ORDER BY {order} {frame}) EMIT CHANGES;"
    )


@cache
def plan_of(items: tuple[str, ...]) -> SelectPlan:
    (step,) = planned(script(*items), lambda _: PlanSchema(KINDS, {}))
    assert step.plan is not None
    return step.plan


_SCRIPTS = st.lists(st.sampled_from(POOL), min_size=1, unique=True).map(tuple)


@given(_SCRIPTS, st.integers(0, 2**40))
def test_a_script_is_read_back_from_a_manifest_as_it_was(items: tuple[str, ...], seed: int) -> None:
    script = replace(Script.of(plan_of(items)), types={"a b": "double"}, seed=seed)
    assert Script.read(json.loads(json.dumps(script.facts()))) == script


@given(_SCRIPTS, _SCRIPTS)
def test_sums_go_to_the_places_of_the_same_sums_in_any_other_script(
    before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    """Each sum has a meaning here: it must come out where the new script keeps it."""
    old, new = Script.of(plan_of(before)), Script.of(plan_of(after))
    was, now = _layout(plan_of(before)), _layout(plan_of(after))
    means, keeps = _meanings(was, old), _meanings(now, new)
    revision = Revision(old, new)
    moved = relaid(was, now, revision)
    common = set(means.values())
    assert {to: means[of] for to, of in moved.items()} == {
        to: meaning for to, meaning in keeps.items() if meaning in common
    }
    if before == after:
        assert not revision.moves and set(moved) == set(now.sums)


def _layout(plan: SelectPlan) -> Layout:
    return Layout.of(plan, [_parts(degree) for degree in plan.degrees])


def _parts(degree: int) -> Parts:
    return Parts(28 * degree, min(degree, 1) * 2, 4 if degree > 1 else 0)


def _meanings(layout: Layout, script: Script) -> dict[str, tuple[object, ...]]:
    """Each column of sums, and what it is the sum of."""
    named: dict[str, tuple[object, ...]] = {"ids_n": ("rows",)}
    for number, text in enumerate(script.measures):
        parts = layout.parts[number]
        for item in layout.items(number):
            of = None if item.predicate is None else script.predicates[item.predicate]
            named[item.count] = (text, of, "m")
            named |= {item.first(k): (text, of, "a", _place(parts, k)) for k in range(parts.levels)}
            named |= {item.second(k): (text, of, "b", k) for k in range(parts.squares)}
    return named


def _place(parts: Parts, level: int) -> int:
    return parts.exponent - 28 * level


@given(
    st.lists(st.tuples(_SCRIPTS, st.integers(0, 9)), min_size=1, max_size=6),
    st.integers(0, 60),
)
def test_sums_begin_when_nothing_is_left_of_the_last_script_without_them(
    history: list[tuple[tuple[str, ...], int]], instant: int
) -> None:
    """Scripts one after another, each with how far the stream went under it."""
    begins, reached = Begins(), 0
    scripts = [Script.of(plan_of(items)) for items, _ in history]
    lacking: dict[tuple[str, str | None, int], int] = {}
    for number, script in enumerate(scripts):
        if number:
            revision = Revision(scripts[number - 1], script)
            begins = begins.revised(revision, reached) if revision.moves else begins
        for key in {key for each in scripts for key in _sums(each)} - _sums(script):
            lacking[key] = reached + history[number][1]
        reached += history[number][1]
    now = scripts[-1]
    for number, text in enumerate(now.measures):
        for predicate in (None, *now.asked[number]):
            of = None if predicate is None else now.predicates[predicate]
            for degree in range(now.degrees[number] + 1):
                known = [lacking.get((text, p, d)) for p in (None, of) for d in range(degree + 1)]
                latest = max((one for one in known if one is not None), default=None)
                assert begins.begin(number, predicate, degree) == latest
                after = begins.after(instant).begin(number, predicate, degree)
                assert after == (latest if latest is not None and latest > instant else None)


def _sums(script: Script) -> set[tuple[str, str | None, int]]:
    """What a script keeps: a measure, a predicate, a degree each."""
    return {
        (text, None if predicate is None else script.predicates[predicate], degree)
        for number, text in enumerate(script.measures)
        for predicate in (None, *script.asked[number])
        for degree in range(script.degrees[number] + 1)
    }


def emits(folder: Path) -> pa.Table:
    """All parts of a directory, each with the columns it has."""
    parts = [pq.read_table(part) for part in sorted(folder.glob("part-*"))]
    return pa.concat_tables(parts, promote_options="default")


def whole_from(table: pa.Table, rows: int) -> int:
    """The first instant, µs, whose window has none of the first ``rows`` rows of the table."""
    last = pc.max(table.slice(0, rows)["event_time"].cast(pa.int64())).as_py()
    return int((-(-last // SLIDE) + WIDTH) * SLIDE)


def check(
    found: pa.Table, table: pa.Table, scripts: Sequence[tuple[int, tuple[str, ...]]], keys: str = ""
) -> None:
    """Emits have the bits of a batch over all rows, or NULL while a new column is not whole.

    ``scripts`` are the items from a row on; a column is whole if all rows of its window came while
    the script had it.
    """
    every = tuple(dict.fromkeys(item for _, items in scripts for item in items))
    batch = ids.sql(script(*every, keys=keys), events=table)
    names = [name for name in ("region", "emit_at") if name in found.column_names]
    order = [(name, "ascending") for name in reversed(names)]
    found = found.sort_by(order)
    batch = batch.filter(pc.is_in(batch["emit_at"], found["emit_at"])).sort_by(order)
    assert found["n"].equals(batch["n"])
    at = found["emit_at"].cast(pa.int64()).to_numpy()
    ends = [*(rows for rows, _ in scripts[1:]), table.num_rows]
    for item in every:
        column, delta = item.rpartition(" ")[2], "DELTA" in item
        lacking = [end for end, (_, items) in zip(ends, scripts, strict=True) if item not in items]
        begin = whole_from(table, max(lacking)) + delta * SLIDE if lacking else at.min()
        if item not in scripts[-1][1]:
            continue
        for name in (n for n in found.column_names if n == column or n.startswith(f"{column}_")):
            # a column that an earlier script had is told in its time, too
            now = at >= begin
            assert found[name].filter(pa.array(now)).equals(batch[name].filter(pa.array(now))), name
            if lacking and item not in scripts[0][1]:
                assert found[name].filter(pa.array(~now)).null_count == (~now).sum(), name
                assert (~now).any() and now.any(), name


def stream(
    spark: SparkSession,
    folder: Path,
    table: pa.Table,
    scripts: Sequence[tuple[int, tuple[str, ...]]],
    keys: str = "",
) -> pa.Table:
    """The emits of a stream that is started again with each of the scripts."""
    ends = [*(rows for rows, _ in scripts[1:]), table.num_rows]
    for number, (start, items) in enumerate(scripts):
        arrive(
            table.slice(start, ends[number] - start),
            folder / "in",
            [(ends[number] - start) // 2],
            2 * number,
        )
        run(spark, script(*items, keys=keys), folder / "in", output=f"{folder}/out/")
    return emits(folder / "out")


def test_new_items_begin_when_their_panes_are_whole_and_old_ones_go_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    first = ("SUM(latency) AS s", POOL[5], POOL[7])
    second = (POOL[3], POOL[8], *first, POOL[0], POOL[6])  # other numbers, and squares
    table = events(300, 50, 400)
    scripts = [(0, first), (120, second)]
    check(stream(spark, tmp_path, table, scripts), table, scripts)


@pytest.mark.slow
def test_an_item_that_comes_back_begins_anew(spark: SparkSession, tmp_path: Path) -> None:
    table = events(240, 51, 400)
    scripts = [(0, (POOL[3], POOL[4])), (90, (POOL[4],)), (120, (POOL[4], POOL[3]))]
    found = stream(spark, tmp_path, table, scripts, "PARTITION BY region")
    check(found, table, scripts, "PARTITION BY region")


@pytest.mark.slow
def test_other_names_and_places_change_no_number(spark: SparkSession, tmp_path: Path) -> None:
    table = events(160, 52, 200)
    arrive(table.slice(0, 80), tmp_path / "in", [40])
    run(spark, script(POOL[5], POOL[7]), tmp_path / "in", output=f"{tmp_path}/out/")
    arrive(table.slice(80), tmp_path / "in", [40], 2)
    renamed = (POOL[7], POOL[5].replace(" AS se", " AS share_of_eu"))
    run(spark, script(*renamed), tmp_path / "in", output=f"{tmp_path}/out/")
    found, batch = emits(tmp_path / "out"), ids.sql(script(*renamed), events=table)
    batch = batch.slice(0, found.num_rows)
    assert found["df"].equals(batch["df"])
    both = pc.coalesce(found["se"], found["share_of_eu"])
    assert both.equals(batch["share_of_eu"]) and both.null_count == 0
    assert 0 < found["se"].null_count < found.num_rows


@pytest.mark.parametrize("keys", [pytest.param("", marks=pytest.mark.slow), "PARTITION BY region"])
def test_rows_of_a_count_window_go_on_under_the_numbers_of_another_script(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: str
) -> None:
    monkeypatch.setattr(row_store, "_UNFOLDED", 40)  # so that there are tails, and a log
    monkeypatch.setattr(row_store, "_BUCKET_ROWS", 40)
    frame, table = "ROWS 12 PRECEDING SLIDE 3 ROWS", events(160, 56, 200)
    first = (POOL[6], POOL[7], POOL[8])
    second = (POOL[0], POOL[8], "AVG(latency) AS m", POOL[7])
    for start, items in ((0, first), (80, second)):
        arrive(table.slice(start, 80), tmp_path / "in", [40], start)
        asked = script(*items, keys=keys, frame=frame)
        run(spark, asked, tmp_path / "in", output=f"{tmp_path}/out/", lateness="10 seconds")
    found = emits(tmp_path / "out")
    batch = ids.sql(script(*first, *second[:1], second[2], keys=keys, frame=frame), events=table)
    batch = batch.slice(0, found.num_rows)
    begin = found.num_rows - found["c"].drop_null().length()
    assert 0 < begin < found.num_rows - 10
    for name in ("emit_at", "n", "df", "dl"):
        assert found[name].equals(batch[name]), name
    assert found["vf"].slice(0, begin).equals(batch["vf"].slice(0, begin))
    for name in ("c", "m"):
        assert found[name].slice(begin).equals(batch[name].slice(begin)), name


@pytest.mark.slow
def test_a_new_estimate_begins_when_its_rows_are_whole(spark: SparkSession, tmp_path: Path) -> None:
    sampled = (
        "SHAPLEY_ATTRIBUTE(SUM(latency), tier = 'free' APPROXIMATE USING RESERVOIR SAMPLE 20) AS a"
    )
    table = events(160, 53, 240)
    arrive(table.slice(0, 80), tmp_path / "in", [40])
    run(spark, script(POOL[0]), tmp_path / "in", output=f"{tmp_path}/out/")
    arrive(table.slice(80), tmp_path / "in", [40], 2)
    run(spark, script(POOL[0], sampled), tmp_path / "in", output=f"{tmp_path}/out/")
    found = emits(tmp_path / "out")
    batch = ids.sql(script(POOL[0], sampled), events=table).slice(0, found.num_rows)
    last = found["emit_at"].cast(pa.int64()).to_numpy() >= whole_from(table, 80)
    for name in ("a", "a_error", "a_mechanism"):
        now, then = (found[name].filter(pa.array(each)) for each in (last, ~last))
        assert now.equals(batch[name].filter(pa.array(last))) and len(now)
        assert then.null_count == len(then) > 0


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        (script(POOL[0], POOL[1], frame="RANGE INTERVAL '60' SECOND PRECEDING SLIDE INTERVAL "
                "'10' SECOND"), "with another window; use a new checkpoint"),
        (script(POOL[0], POOL[1], where="WHERE latency > 0"), "with another WHERE; use"),
        (script(POOL[0], POOL[1], keys="PARTITION BY tier"), "with another PARTITION BY; use"),
        (script(POOL[0], POOL[1], order="event_time, size"), "with another ORDER BY; use"),
        (script(POOL[0], "AVG(latency) AS s"), r"column 's' .* is SUM\(latency\), but the script "
                r"defines it as AVG\(latency\); use another alias"),
    ],
)  # fmt: skip
def test_a_change_that_a_checkpoint_cannot_take_is_refused_by_name(
    stopped: tuple[SparkSession, Path], changed: str, line: str
) -> None:
    spark, folder = stopped
    with pytest.raises(CheckpointError, match=line):
        run(spark, changed, folder / "in", output=f"{folder}/out/")


@pytest.fixture(scope="module")
def stopped(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[SparkSession, Path]:
    """A stream of two items that was stopped."""
    folder = tmp_path_factory.mktemp("stopped")
    arrive(events(40, 54, 60), folder / "in", [])
    run(spark, script(POOL[0], POOL[1]), folder / "in", output=f"{folder}/out/")
    return spark, folder


def test_a_column_of_another_type_is_refused(
    stopped: tuple[SparkSession, Path], tmp_path: Path
) -> None:
    spark, folder = stopped
    table = events(40, 54, 60)
    typed = table.set_column(3, "latency", pa.array(np.arange(40)))
    arrive(typed, tmp_path / "in", [])
    with pytest.raises(CheckpointError, match="'latency' is double, not bigint; use a new"):
        run(
            spark, script(POOL[0], POOL[1]), tmp_path / "in",
            checkpoint=folder / "ck", output=f"{folder}/out/",
        )  # fmt: skip


def test_a_file_that_grows_keeps_its_header(spark: SparkSession, tmp_path: Path) -> None:
    arrive(events(40, 55, 60), tmp_path / "in", [])
    for output, changes in (("o.csv", False), ("o.jsonl", True), ("d.csv/", True)):
        options = {"checkpoint": tmp_path / f"ck {output}", "output": f"{tmp_path}/{output}"}
        run(spark, script(POOL[0]), tmp_path / "in", **options)
        again = script(POOL[0], POOL[1])
        if changes:
            run(spark, again, tmp_path / "in", **options)
            continue
        with pytest.raises(CheckpointError, match=r"the header of .*/o\.csv cannot; use"):
            run(spark, again, tmp_path / "in", **options)
