"""Engine: the incremental, embeddable runtime."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from threading import RLock

import numpy as np
import numpy.typing as npt

from ids.engine.answering import residual, worth
from ids.engine.checkpointing import read_core, write_core
from ids.engine.core import Core
from ids.engine.incoming import Incoming, Schema, columns_needed, read_batch
from ids.engine.memory import Memory, measure_memory
from ids.engine.questions import Questions
from ids.engine.refining import drop, enumerate_targets, refine
from ids.engine.rescaling import accommodate
from ids.errors import ScriptError, StateError, UnknownNameError
from ids.language import parse_expression, parse_predicate
from ids.model.attribution import Attribution
from ids.model.expression import Expression, Name
from ids.model.rendering import render
from ids.model.table import Kind
from ids.model.window import Changelog, CountWindow, TimeWindow, microseconds
from ids.plan.question import over_names
from ids.predicates.binding import bind_measure, bind_predicate
from ids.source import Source, open_table
from ids.state.refined import Refined
from ids.state.retained import TIME

__all__ = ["Engine"]

Window = CountWindow | TimeWindow | Changelog


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
        if isinstance(window, TimeWindow) and order_by is None:
            raise ScriptError("a TimeWindow needs order_by, the column with the event time")
        values = [value] if isinstance(value, str) else list(value)
        self.window = window
        self.late_rows = 0
        self._values = {text: parse_expression(text) for text in values}
        self._order_by = order_by
        self._lateness = microseconds(lateness)
        self._retain = not isinstance(window, Changelog) if retain is None else retain
        self._degree = degree
        self._atom_limit = atom_limit
        self._intersections = {text: parse_predicate(text) for text in intersections}
        self._conditions: dict[str, Expression] = {}
        self._core: Core | None = None
        self._newest: int | None = None
        self._questions = Questions(self._values, self._intersections, degree)
        self._writing = RLock()
        self._state = RLock()

    @property
    def predicates(self) -> dict[str, str]:
        """The registered predicates and their conditions."""
        return {name: render(condition) for name, condition in self._conditions.items()}

    @property
    def rows(self) -> int:
        """The rows inside the window."""
        return 0 if self._core is None else self._core.rows

    @property
    def atoms(self) -> int:
        """The live atoms; 0 once they were given up at their limit."""
        membership = None if self._core is None else self._core.membership
        return len(membership.refinement.live()) if isinstance(membership, Refined) else 0

    def register(self, name: str, condition: str) -> None:
        """Register a predicate; mid-stream the rows inside are refined anew, exactly."""
        parsed = parse_predicate(condition)
        with self._writing, self._state:
            if name.lower() in {known.lower() for known in self._conditions}:
                raise ScriptError(f"predicate {name!r} is already registered", hint="drop it first")
            conditions = {**self._conditions, name: parsed}
            if self._core is not None:
                refine(self._core, _bound(conditions, self._core.schema.kinds))
            self._conditions = conditions
            self._keep_to_the_limit()
            self._questions.refined()

    def drop(self, name: str) -> None:
        """Drop a predicate; atoms that differed only in it become one."""
        with self._writing, self._state:
            exact = {n.lower(): n for n in self._conditions}.get(name.lower())
            if exact is None:
                raise UnknownNameError("predicate", name, self._conditions)
            conditions = {n: c for n, c in self._conditions.items() if n != exact}
            if self._core is not None:
                _bound(conditions, self._core.schema.kinds)  # others may be written with it
                drop(self._core, exact)
            self._conditions = conditions
            self._keep_to_the_limit()
            self._questions.refined()

    def ingest(self, batch: object) -> None:
        """Rows arrive; the window derives what expires. One call is one slide."""
        with self._writing:
            core, incoming = self._incoming(batch, self._lateness)
            if isinstance(self.window, CountWindow) and incoming.table.rows > self.window.size:
                # rows that would come and go within this one slide leave no trace
                incoming = incoming.tail(self.window.size)
            with self._state:
                core.refuse_too_many(incoming.table.rows)
                accommodate(core, incoming, self._degree)
            signed = core.signed(incoming)
            with self._state:
                if self._keep_to_the_limit():
                    signed = core.signed(incoming)
                self._newest = incoming.newest
                self.late_rows += incoming.late
                core.commit(core.slide(incoming, signed), self._expiring(core))
                self._questions.slid()

    def apply(self, inserts: object = None, deletes: object = None) -> None:
        """A changelog's slide: rows that go (they must be inside) and rows that come.

        A delete of a row that is not inside is refused, and nothing changes.
        """
        with self._writing:
            going = None if deletes is None else self._incoming(deletes, None)[1]
            coming = None if inserts is None else self._incoming(inserts, None)[1]
            core = self._core
            if core is None:
                return
            with self._state:
                for part in (going, coming):
                    if part is not None:
                        core.refuse_too_many(part.table.rows)
                        accommodate(core, part, self._degree)
                        core.membership.assign(part.table)
                self._keep_to_the_limit()
                if going is not None:
                    core.commit(core.take_out(going, core.signed(going)))
                if coming is not None:
                    self._newest = coming.newest
                    deltas = core.slide(coming, core.signed(coming))
                    core.commit(deltas, self._expiring(core))
                self._questions.slid()

    def advance(self, to: int) -> None:
        """Let time pass without rows: a TimeWindow's t becomes ``to`` (µs since 1970 UTC)."""
        with self._writing, self._state:
            if not isinstance(self.window, TimeWindow):
                raise StateError("only a TimeWindow moves with time alone")
            self._newest = to if self._newest is None else max(self._newest, to)
            if self._core is not None:
                self._core.commit(None, self._expiring(self._core))
                self._questions.slid()

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
                "window": _window_facts(self.window),
                "values": list(self._values),
                "order_by": self._order_by,
                "lateness": self._lateness,
                "retain": self._retain,
                "degree": self._degree,
                "atom_limit": self._atom_limit,
                "intersections": list(self._intersections),
                "conditions": self.predicates,
                "newest": self._newest,
                "late_rows": self.late_rows,
            }
            write_core(path, facts, self._core)

    @classmethod
    def restore(cls, path: str | Path) -> Engine:
        """The engine of a checkpoint: it goes on as if it had never stopped."""
        facts, build = read_core(path)
        engine = cls(
            _window(facts["window"]),
            facts["values"],
            order_by=facts["order_by"],
            lateness=facts["lateness"],
            retain=facts["retain"],
            degree=facts["degree"],
            atom_limit=facts["atom_limit"],
            intersections=facts["intersections"],
        )
        engine._conditions = {n: parse_predicate(c) for n, c in facts["conditions"].items()}
        engine._newest = facts["newest"]
        engine.late_rows = facts["late_rows"]
        engine._core = build(
            lambda kinds: _bound(engine._conditions, kinds),
            lambda kinds: tuple(bind_measure(m, kinds) for m in engine._values.values()),
            lambda core: engine._targets(core)[0],
        )
        return engine

    def _incoming(self, batch: object, lateness: int | None) -> tuple[Core, Incoming]:
        source = open_table(batch, "batch")
        core = self._core or self._first(source)
        incoming = read_batch(source, core.schema, self._newest, lateness)
        self._core = core
        return core, incoming

    def _first(self, source: Source) -> Core:
        """The first batch tells what the columns hold."""
        kinds = dict(source.schema)
        bound = _bound(self._conditions, kinds)
        measures = tuple(bind_measure(m, kinds) for m in self._values.values())
        if self._order_by is not None and self._order_by not in kinds:
            raise UnknownNameError("column", self._order_by, kinds)
        if not self._retain:
            needed = columns_needed([*bound.values(), *measures], self._order_by)
            kinds = {name: kinds[name] for name in needed}
        keeps = self._retain or not isinstance(self.window, Changelog)
        schema = Schema(kinds, measures, self._order_by)
        return Core(schema, bound, retain=keeps, raw=self._retain)

    def _expiring(self, core: Core) -> int:
        """How many of the oldest rows are outside now."""
        if isinstance(self.window, CountWindow):
            return max(0, core.rows - self.window.size)
        if isinstance(self.window, TimeWindow) and self._newest is not None and core.rows:
            assert core.retained is not None
            slide = self.window.slide
            now = self._newest if slide is None else -(-self._newest // slide) * slide
            times: npt.NDArray[np.int64] = core.retained.rows[TIME].view(np.int64)
            return int(np.searchsorted(times, now - self.window.duration, side="right"))
        return 0

    def _keep_to_the_limit(self) -> bool:
        """Give up the atoms when there are too many; True if that happened."""
        core = self._core
        if core is None or not isinstance(core.membership, Refined):
            return False
        if len(core.membership.refinement.live()) <= self._atom_limit:
            return False
        bound, named = self._targets(core)
        enumerate_targets(core, bound, named)
        self._questions.refined()
        return True

    def _targets(self, core: Core) -> tuple[dict[str, Expression], dict[str, Expression]]:
        """What stays when the atoms go: over columns, and over the registered names."""
        combined = {**{n: Name(n) for n in core.predicates}, **self._intersections}
        kinds = core.schema.kinds
        return (
            {k: bind_predicate(e, kinds, core.predicates) for k, e in combined.items()},
            {k: over_names(e, core.predicates) for k, e in combined.items()},
        )


def _bound(
    conditions: Mapping[str, Expression], kinds: Mapping[str, Kind]
) -> dict[str, Expression]:
    """Conditions over the columns; each may use those registered before it."""
    bound: dict[str, Expression] = {}
    for name, condition in conditions.items():
        bound[name] = bind_predicate(condition, kinds, bound, columns_first=True)
    return bound


def _window_facts(window: Window) -> list[int | str | None]:
    match window:
        case CountWindow(size, slide):
            return ["count", size, slide]
        case TimeWindow():
            return ["time", window.duration, window.slide]
        case _:
            return ["changelog"]


def _window(facts: list[int]) -> Window:
    kind, *rest = facts
    kinds = {"count": CountWindow, "time": TimeWindow, "changelog": Changelog}
    made: Window = kinds[str(kind)](*rest)
    return made
