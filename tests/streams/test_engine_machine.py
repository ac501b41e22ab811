"""The whole engine against a list of rows, at every step of any history."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import ids
from ids.errors import IdsError, StateError
from tests.oracles import shapley
from tests.streams.comparing import everything, same_aggregates, same_answers, same_state
from tests.streams.model import Model, Row, attributed

POOL = {
    "eu": "region = 'EU'",
    "west": "region IN ('EU', 'US')",
    "nowhere": "region IS NULL",
    "big": "x > 10",
    "middling": "x BETWEEN 2 AND 1000",
    "odd": "k % 2 = 1",
    "never": "k < 0",
}
COMBINATIONS = ("{p} AND NOT {q}", "{p} OR {q}", "NOT ({p} AND {q})", "NOT {p}", "{p} OR TRUE")
SCANS = ("region = 'US' AND x < 5", "x >= 2 OR k IS NULL", "{p} AND x > 3", "x IS NULL", "k <> 1")

plain = st.sampled_from([0.0, -0.0, 1.0, 2.0, 3.0, 10.0, 11.0, -4.0, 0.1, 1e9 + 1e-3])
mixed = st.builds(
    lambda digits, power, sign: sign * digits * 10.0**power,
    st.floats(1.0, 10.0),
    st.integers(-6, 14),
    st.sampled_from([1, -1]),
)
whole = st.integers(-3, 12).map(float)
measures = st.one_of(st.none(), plain, whole, mixed)
regions = st.sampled_from(["EU", "US", "AP", "", None])
numbers = st.one_of(st.none(), st.integers(0, 3))


def rows(
    times: st.SearchStrategy[int], values: st.SearchStrategy[float | None]
) -> st.SearchStrategy[Row]:
    return st.builds(Row, times, values, regions, numbers)


def batches(values: st.SearchStrategy[float | None] = measures) -> st.SearchStrategy[list[Row]]:
    """0 to 20 rows, their times before and after now, some rows given twice."""
    some = st.lists(rows(st.integers(-7, 7), values), max_size=10)
    return st.one_of(some, some.map(lambda batch: batch + batch))


def as_table(batch: Sequence[Row], *, integers: bool = False) -> pa.Table:
    """Whole numbers may come as int64: the column is the same."""
    columns: list[Sequence[Any]] = [*zip(*batch, strict=True)] if batch else [[], [], [], []]
    t, x, region, k = columns
    every_whole = all(v is None or v.is_integer() for v in x)
    return pa.table(
        {
            "t": pa.array(t, pa.int64()),
            "x": pa.array(x, pa.float64()).cast(
                pa.int64() if integers and every_whole else pa.float64()
            ),
            "region": pa.array(region, pa.string()),
            "k": pa.array(k, pa.int64()),
        }
    )


@given(
    ys=st.lists(plain, max_size=8),
    chosen=st.sets(st.integers(0, 7)),
    game=st.sampled_from(shapley.CLOSED),
)
def test_the_model_plays_the_games_of_the_oracle(
    ys: list[float], chosen: set[int], game: str
) -> None:
    members = sorted(i for i in chosen if i < len(ys))
    everyone = list(range(len(ys)))
    found = attributed(game, ys, members)
    assert found.value == found.share + found.lift == shapley.closed_form(game, ys, members)
    assert found.worth == shapley.closed_form(game, ys, everyone)


class Machine(RuleBasedStateMachine):
    """Every rule does one thing to the engine and the same to the model."""

    engine: ids.Engine
    model: Model
    raw = True

    def begin(self) -> tuple[ids.Engine, Model]:
        raise AssertionError("each machine begins an engine of its own")

    @initialize(names=st.sets(st.sampled_from(sorted(POOL)), max_size=3))
    def start(self, names: set[str]) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.engine, self.model = self.begin()
        for name in sorted(names):
            self.register(name)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def now(self, batch: Sequence[Row]) -> list[Row]:
        return [row._replace(t=row.t + (self.model.newest or 100)) for row in batch]

    def register(self, name: str) -> None:
        self.engine.register(name, POOL[name])
        self.model.registered[name] = POOL[name]

    @rule(name=st.sampled_from(sorted(POOL)))
    def register_a_predicate(self, name: str) -> None:
        if name in self.model.registered:
            with pytest.raises(IdsError, match="already registered"):
                self.engine.register(name, POOL[name])
        elif self.model.rows and not self.raw:
            before = everything(self.engine)
            with pytest.raises(StateError, match="retain=True"):
                self.engine.register(name, POOL[name])
            assert everything(self.engine) == before
        else:
            self.register(name)

    @rule(choice=st.integers(0, 6))
    def drop_a_predicate(self, choice: int) -> None:
        names = sorted(self.model.registered)
        if names:
            name = names[choice % len(names)]
            self.engine.drop(name)
            del self.model.registered[name]

    @rule()
    def stop_and_go_on_from_a_checkpoint(self) -> None:
        before = everything(self.engine)
        path = self.folder / "engine.ids"
        self.engine.checkpoint(path)
        self.engine = ids.Engine.restore(path)
        assert everything(self.engine) == before
        assert [p.name for p in self.folder.iterdir()] == ["engine.ids"]

    def may_refuse(self) -> bool:
        """Whether magnitudes inside are such that no sum could be exact."""
        return False

    @rule(batch=batches(), chosen=st.lists(st.integers(0, 50), max_size=6), integers=st.booleans())
    def apply_a_changelog(self, batch: list[Row], chosen: list[int], integers: bool) -> None:
        inserts = self.now(batch)
        places = sorted({c % len(self.model.rows) for c in chosen}) if self.model.rows else []
        deletes = [self.model.rows[place] for place in places]
        before = everything(self.engine)
        try:
            self.engine.apply(
                inserts=as_table(inserts, integers=integers), deletes=as_table(deletes)
            )
        except StateError as error:
            assert "too far" in str(error)
            assert self.may_refuse()
            assert everything(self.engine) == before
            return
        self.model.delete(deletes)
        if inserts or deletes:
            self.model.ingest(inserts, None)

    @rule(chosen=st.integers(0, 50))
    def a_stranger_cannot_be_deleted(self, chosen: int) -> None:
        deletes = self.strangers(chosen)
        before, bytes_held = everything(self.engine), self.engine.memory().retained
        with pytest.raises(StateError, match="not in the window"):
            # no row that is deleted: one of the same call may be
            self.engine.apply(inserts=as_table([Row(0, 5.03, "EU", 1)]), deletes=as_table(deletes))
        assert everything(self.engine) == before
        assert self.engine.memory().retained == bytes_held

    def strangers(self, chosen: int) -> list[Row]:
        """A row inside once too often, behind one that is inside."""
        if not self.model.rows:
            return [Row(0, 1.0, "EU", 1)]
        row = self.model.rows[chosen % len(self.model.rows)]
        copies = self.model.rows.count(row)
        if chosen % 2:
            return [row, row._replace(region="nobody's", x=1e17)]
        return [row] * (copies + 1)

    @invariant()
    def the_state_is_a_recount(self) -> None:
        if hasattr(self, "engine"):
            same_state(self.engine, self.model)
            same_aggregates(self.engine, self.model)

    @rule(p=st.integers(0, 6), q=st.integers(0, 6), how=st.integers(0, 4))
    def answers_are_the_closed_forms(self, p: int, q: int, how: int) -> None:
        if self.engine._core is None:
            return
        names = sorted(self.model.registered)
        questions = [("marginal", name) for name in names]
        first, second = (names[c % len(names)] if names else "TRUE" for c in (p, q))
        questions.append(("compositional", COMBINATIONS[how].format(p=first, q=second)))
        if self.raw:
            questions.append(("scan", SCANS[how].format(p=first)))
        same_answers(self.engine, self.model, questions)


class Ingesting(Machine):
    @rule(batch=batches(), integers=st.booleans())
    def ingest(self, batch: list[Row], integers: bool) -> None:
        rows = self.now(batch)
        self.engine.ingest(as_table(rows, integers=integers))
        self.model.ingest(rows, self.model.lateness)

    @precondition(lambda self: not any(abs(row.x or 0) > 1e200 for row in self.model.rows))
    @rule(batch=batches(plain), place=st.integers(0, 10), sign=st.sampled_from([1, -1]))
    def ingest_a_value_far_beyond_the_others(self, batch: list[Row], place: int, sign: int) -> None:
        self.ingest([*batch[:place], Row(0, sign * 1e300, "EU", 1), *batch[place:]], False)


class CountMachine(Ingesting):
    def begin(self) -> tuple[ids.Engine, Model]:
        engine = ids.Engine(window=ids.CountWindow(7), value="x", order_by="t", lateness=4)
        return engine, Model(lambda rows, _: max(0, len(rows) - 7), lateness=4)


class TimeMachine(Ingesting):
    def begin(self) -> tuple[ids.Engine, Model]:
        def outside(rows: list[Row], newest: int | None) -> int:
            end = -(-(newest or 0) // 5) * 5
            return sum(row.t <= end - 15 for row in rows)

        engine = ids.Engine(
            window=ids.TimeWindow(15, slide=5), value="x", order_by="t", lateness=20
        )
        return engine, Model(outside, lateness=20)

    @rule(by=st.integers(0, 20))
    def let_time_pass(self, by: int) -> None:
        to = (self.model.newest or 100) + by
        self.engine.advance(to)
        self.model.newest = to
        self.model.slide()


class ChangelogMachine(Machine):
    """Tuples are retained."""

    def begin(self) -> tuple[ids.Engine, Model]:
        engine = ids.Engine(window=ids.Changelog(), value="x")
        return engine, Model(lambda _rows, _: 0, ordered=False)


class SummariesMachine(ChangelogMachine):
    """No tuple is retained: sums are all there is."""

    raw = False

    def begin(self) -> tuple[ids.Engine, Model]:
        engine = ids.Engine(window=ids.Changelog(), value="x", retain=False)
        return engine, Model(lambda _rows, _: 0, ordered=False)

    def may_refuse(self) -> bool:
        return any(row.x and not 1e-200 < abs(row.x) < 1e200 for row in self.model.rows)

    @invariant()
    def no_tuple_is_kept(self) -> None:
        if hasattr(self, "engine"):
            assert self.engine.memory().retained == 0

    @rule(value=st.sampled_from([1e300, -1e300, 1e-300]))
    def a_value_too_far_from_the_others_is_refused(self, value: float) -> None:
        row = Row(0, value, "EU", 1)
        before = everything(self.engine)
        try:
            self.engine.apply(inserts=as_table([row]))
        except StateError as error:
            assert "retain=True" in str(error)
            assert everything(self.engine) == before
            assert self.model.players()
        else:
            self.model.ingest([row], None)

    def strangers(self, chosen: int) -> list[Row]:
        """More rows of an atom than it has: without tuples nothing else can be told apart."""
        if not self.model.rows:
            return [Row(0, 1.0, "EU", 1)]
        row = self.model.rows[chosen % len(self.model.rows)]
        atom = [r for r in self.model.rows if self.model.signature(r) == self.model.signature(row)]
        return [*atom, row]


fewer = settings(max_examples=30, stateful_step_count=25)
TestCountWindow = CountMachine.TestCase
TestCountWindow.settings = fewer
TestTimeWindow = TimeMachine.TestCase
TestTimeWindow.settings = fewer
TestChangelog = ChangelogMachine.TestCase
TestChangelog.settings = fewer
TestSummariesOnly = SummariesMachine.TestCase
TestSummariesOnly.settings = fewer
