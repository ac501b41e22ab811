"""Engine: the incremental, embeddable runtime."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from threading import RLock

from ids.engine.answering import residual, worth
from ids.engine.checkpointing import read_core, write_core
from ids.engine.conditions import (
    bind_conditions,
    bind_targets,
    keep_to_the_limit,
    targets_of,
)
from ids.engine.core import Core, Words
from ids.engine.expiry import expiring
from ids.engine.first import first_core
from ids.engine.incoming import Incoming, read_batch
from ids.engine.memory import Memory, measure_memory
from ids.engine.questions import Questions
from ids.engine.refining import drop, refine, refuse_unless_raw
from ids.engine.rescaling import accommodate, ease
from ids.engine.settings import Settings, Window
from ids.errors import ScriptError, StateError, UnknownNameError
from ids.language import parse_predicate
from ids.model.attribution import Attribution
from ids.model.expression import Expression
from ids.model.rendering import render
from ids.model.window import Changelog, CountWindow, TimeWindow, microseconds
from ids.predicates.binding import bind_measure
from ids.source import Source, open_table
from ids.state.refined import Refined

__all__ = ["Engine"]


class Engine:
    """Exact attribution over a window that rows come into and go out of.

    window         CountWindow(n), TimeWindow(duration, slide), or Changelog()
    value          the measure, or several: columns or arithmetic of columns
    order_by       the column rows are ordered by (needed by TimeWindow); without it, arrival
    lateness       how far behind the newest row a row may come and still be placed
    retain         whether the raw rows inside are kept (they answer what nobody registered);
                   by default yes, except for a changelog
    degree         the highest power sum kept: 2 serves SUM, COUNT, AVG and both variances
    atom_limit     when more atoms than this would live, only the registered predicates and
    intersections  (combinations of registered names) are kept
    One writer, many readers: a question sees a whole slide or none of it.

    >>> engine = Engine(window=CountWindow(2), value="ms")
    >>> engine.register("eu", "region = 'EU'")
    >>> engine.ingest({"region": ["EU", "US", "EU"], "ms": [10.0, 20.0, 60.0]})
    >>> engine.attribute("SUM", "eu").value, engine.rows
    (60.0, 2)
    """

    def __init__(
        self,
        window: Window,
        value: str | Iterable[str] = (),
        *,
        order_by: str | None = None,
        lateness: str | timedelta | int = 0,
        retain: bool | None = None,
        degree: int = 2,
        atom_limit: int = 2**16,
        intersections: Iterable[str] = (),
    ) -> None:
        values = [value] if isinstance(value, str) else value
        retains = not isinstance(window, Changelog) if retain is None else retain
        self._begin(
            Settings(
                window, tuple(values), order_by, microseconds(lateness), retains, degree,
                atom_limit, tuple(intersections),
            )
        )  # fmt: skip

    def _begin(self, settings: Settings) -> None:
        self.window = settings.window
        self.late_rows = 0
        self._settings = settings
        self._measures = settings.measures()
        self._combinations = settings.combinations()
        self._conditions: dict[str, Expression] = {}
        self._core: Core | None = None
        self._newest: int | None = None
        self._questions = Questions(self._measures, self._combinations, settings.degree)
        self._writing = RLock()
        self._state = RLock()

    @property
    def predicates(self) -> dict[str, str]:
        """The registered predicates and their conditions."""
        return {name: render(condition) for name, condition in self._conditions.items()}

    @property
    def rows(self) -> int:
        """The rows inside the window."""
        with self._state:
            return 0 if self._core is None else self._core.rows

    @property
    def atoms(self) -> int:
        """The live atoms; 0 once they were given up at their limit."""
        with self._state:
            membership = None if self._core is None else self._core.membership
            return len(membership.live) if isinstance(membership, Refined) else 0

    def register(self, name: str, condition: str) -> None:
        """Register a predicate; mid-stream the rows inside are refined anew, exactly."""
        parsed = parse_predicate(condition)
        with self._writing, self._state:
            if name.lower() in {known.lower() for known in self._conditions}:
                raise ScriptError(f"predicate {name!r} is already registered", hint="drop it first")
            conditions = {**self._conditions, name: parsed}
            if self._core is not None and not (self._core.rows or self._core.has_raw):
                self._core = None  # nothing inside: the next batch begins anew
            if self._core is not None:
                refuse_unless_raw(self._core)
                refine(self._core, bind_conditions(conditions, self._core.schema.kinds))
            self._conditions = conditions
            self._keep_to_the_limit(self._core)
            self._questions.refined()

    def drop(self, name: str) -> None:
        """Drop a predicate; atoms that differed only in it become one."""
        with self._writing, self._state:
            exact = {n.lower(): n for n in self._conditions}.get(name.lower())
            if exact is None:
                raise UnknownNameError("predicate", name, self._conditions)
            conditions = {n: c for n, c in self._conditions.items() if n != exact}
            if self._core is not None:
                # others may be written with it
                bind_conditions(conditions, self._core.schema.kinds)
                drop(self._core, exact, targets_of(conditions, self._combinations))
            self._conditions = conditions
            self._keep_to_the_limit(self._core)
            self._questions.refined()

    def ingest(self, batch: object) -> None:
        """Rows arrive; the window derives what expires. One call is one slide."""
        with self._writing:
            source = open_table(batch, "batch")
            if not source.rows:
                return
            core = self._core or self._begun_by(source)
            incoming = read_batch(source, core.schema, self._newest, self._settings.lateness)
            if isinstance(self.window, CountWindow) and incoming.table.rows > self.window.size:
                # rows that would come and go within this one slide leave no trace
                incoming = incoming.tail(self.window.size)
            with self._state:
                core.refuse_too_many(incoming.table.rows)
                accommodate(core, incoming, self._settings.degree)
                self._core = core
            signed = core.signed(incoming)
            with self._state:
                if self._keep_to_the_limit(core):
                    signed = core.signed(incoming)
                deltas = core.enter(signed, core.block(incoming, signed))
                self.late_rows += incoming.late
                self._slide(core, deltas, incoming.newest)

    def apply(self, inserts: object = None, deletes: object = None) -> None:
        """A changelog's slide: rows that go (they must be inside) and rows that come.

        A delete of a row that is not inside is refused, and nothing changes.
        """
        with self._writing:
            parts = [None if p is None else open_table(p, "batch") for p in (deletes, inserts)]
            filled = [part for part in parts if part is not None and part.rows]
            if not filled:
                return
            core = self._core or self._begun_by(filled[-1])
            going, coming = (
                None if part is None or not part.rows else read_batch(part, core.schema, newest)
                for part, newest in zip(parts, (None, self._newest), strict=True)
            )
            with self._state:
                self._exchange(core, going, coming)

    def _exchange(self, core: Core, going: Incoming | None, coming: Incoming | None) -> None:
        """Whatever is refused is refused before the first row moves."""
        places = None if going is None else core.places(going)
        deltas, newest = None, self._newest
        if coming is not None:
            core.refuse_too_many(coming.table.rows)
            accommodate(core, coming, self._settings.degree)
            signed = core.signed(coming)
            if self._keep_to_the_limit(core):
                signed = core.signed(coming)
            block = core.block(coming, signed)
        if going is not None:
            deltas = core.leave(going, places)
        if coming is not None:
            newest = coming.newest
            deltas = core.enter(signed, block, deltas)
        self._core = core
        self._slide(core, deltas, newest)

    def _slide(self, core: Core, deltas: list[Words] | None, newest: int | None) -> None:
        self._newest = newest
        core.commit(deltas, expiring(self.window, core, newest))
        ease(core)
        self._questions.slid()

    def advance(self, to: int) -> None:
        """Let time pass without rows: a TimeWindow's t becomes ``to`` (µs since 1970 UTC)."""
        with self._writing, self._state:
            if not isinstance(self.window, TimeWindow):
                raise StateError("only a TimeWindow moves with time alone")
            self._newest = to if self._newest is None else max(self._newest, to)
            if self._core is not None:
                self._slide(self._core, None, self._newest)

    def attribute(self, aggregate: str, predicate: str) -> Attribution:
        """How much of the aggregate the predicate's rows account for, now.

        ``aggregate`` is ``"AVG"`` where there is one measure, else ``"AVG(latency)"``.
        """
        with self._state:
            return self._questions.attribute(self._core, aggregate, predicate)

    def attribute_by_atoms(self, aggregate: str, predicate: str) -> Attribution:
        """The cross-check of a combination: every atom evaluated by itself, then added up."""
        with self._state:
            if self._core is None:
                return self.attribute(aggregate, predicate)
            return self._questions.by_atoms(self._core, aggregate, predicate)

    def aggregate(self, aggregate: str) -> float | None:
        """The aggregate itself; None where SQL says NULL."""
        with self._state:
            game, measure = self._questions.game(self._core, aggregate)
            if self._core is None or measure >= len(self._core.measures):
                return None if game.nulls else 0.0
            return worth(self._core.measures[measure], game)

    def residual(self, aggregate: str) -> float:
        """The Efficiency probe: what the live atoms' attributions miss of the aggregate."""
        with self._state:
            game, measure = self._questions.game(self._core, aggregate)
            if self._core is None or measure >= len(self._core.measures):
                return 0.0
            return residual(self._core, self._core.measures[measure], game)

    def memory(self) -> Memory:
        """Bytes by component."""
        with self._state:
            return measure_memory(self._core)

    def checkpoint(self, path: str | Path) -> None:
        """Write the whole engine to one file: complete, or not at all."""
        with self._writing:
            facts = {
                "settings": self._settings.facts(),
                "conditions": self.predicates,
                "newest": self._newest,
                "late_rows": self.late_rows,
            }
            write_core(path, facts, self._core)

    @classmethod
    def restore(cls, path: str | Path) -> Engine:
        """The engine of a checkpoint: it goes on as if it had never stopped."""
        facts, build = read_core(path)
        engine = cls.__new__(cls)
        engine._begin(Settings.of(facts["settings"]))
        engine._conditions = {n: parse_predicate(c) for n, c in facts["conditions"].items()}
        engine._newest = facts["newest"]
        engine.late_rows = facts["late_rows"]
        engine._core = build(
            lambda kinds: bind_conditions(engine._conditions, kinds),
            lambda kinds: tuple(bind_measure(m, kinds) for m in engine._measures.values()),
            lambda core: bind_targets(core, engine._combinations),
        )
        return engine

    def _begun_by(self, source: Source) -> Core:
        return first_core(source, self._settings, self._conditions, self._measures)

    def _keep_to_the_limit(self, core: Core | None) -> bool:
        limit = self._settings.atom_limit
        if core is None or not keep_to_the_limit(core, limit, self._combinations):
            return False
        self._questions.refined()
        return True
