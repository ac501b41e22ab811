"""Engine: the incremental, embeddable runtime."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from threading import RLock

import numpy as np

from ids.engine.asking import Asking
from ids.engine.checkpointing import read_core, write_core
from ids.engine.conditions import (
    bind_conditions,
    bind_targets,
)
from ids.engine.core import Core, Words
from ids.engine.deletes import Deleted, find_deleted
from ids.engine.described import describe
from ids.engine.expiry import expiring
from ids.engine.first import first_core
from ids.engine.incoming import Incoming, read_batch
from ids.engine.memory import Memory, measure_memory
from ids.engine.promoting import Promoter
from ids.engine.questions import Questions
from ids.engine.registrations import Registrations
from ids.engine.rescaling import accommodate, ease
from ids.engine.settings import Settings, Window
from ids.errors import ScriptError, StateError, in_script
from ids.language import parse_predicate
from ids.model.promotion import Promotion
from ids.model.sampling import Sampling
from ids.model.table import Kind
from ids.model.window import CountWindow, Duration, TimeWindow, microseconds
from ids.predicates.binding import bind_measure
from ids.predicates.instants import Instant, to_microseconds
from ids.source import Source, open_table

__all__ = ["Engine"]

_INSTANTS = "give a datetime, a numpy.datetime64, or whole microseconds since 1970 UTC"


class Engine(Asking):
    """Exact attribution over a window that rows come into and go out of.

    window         CountWindow(n), TimeWindow(duration, slide), or Changelog()
    value          the measure, or several: columns or arithmetic of columns
    order_by       the column rows are ordered by (needed by TimeWindow); without it, arrival
    lateness       how far behind the newest row a row may come and still be placed
    retain         whether the raw rows inside are kept: they answer what nobody registered, and
                   tell whether a row that is deleted was ever there
    degree         the highest power sum kept: 2 serves SUM, COUNT, AVG and both variances
    atom_limit     when more atoms than this would live, only the registered predicates and
    intersections  (combinations of registered names) are kept
    index          columns that conditions nobody registered are looked up by
    sampling       an ``ids.Sampling``: a sample that answers where an estimate will do
    promotion      an ``ids.Promotion``: questions that keep coming are registered
    One writer, many readers: a question sees a whole slide or none of it.

    >>> engine = Engine(window=CountWindow(2), value="ms")
    >>> engine.register("eu", "region = 'EU'")
    >>> engine.ingest({"region": ["EU", "US", "EU"], "ms": [10.0, 20.0, 60.0]})
    >>> engine.attribute("SUM", "eu").value, engine.rows
    (60.0, 2)
    >>> engine
    <ids.Engine CountWindow(2), value ms, 2 rows inside, predicates eu>
    """

    def __init__(
        self,
        window: Window,
        value: str | Iterable[str] = (),
        *,
        order_by: str | None = None,
        lateness: Duration = 0,
        retain: bool = True,
        degree: int = 2,
        atom_limit: int = 2**16,
        intersections: str | Iterable[str] = (),
        index: str | Iterable[str] = (),
        sampling: Sampling | None = None,
        promotion: Promotion | None = None,
    ) -> None:
        self._begin(
            Settings(
                window, _texts(value), order_by, microseconds(lateness), retain, degree,
                atom_limit, _texts(intersections), _texts(index), sampling, promotion,
            )
        )  # fmt: skip

    def _begin(self, settings: Settings) -> None:
        self.window = settings.window
        self.late_rows = 0
        self._settings = settings
        self._measures = settings.measures()
        self._combinations = settings.combinations()
        self._core: Core | None = None
        self._newest: int | None = None
        self._questions = Questions(self._measures, self._combinations, settings)
        self._registered = Registrations(self._questions, self._combinations, settings.atom_limit)
        self._promoter: Promoter | None = None
        if settings.promotion is not None:
            self._promoter = Promoter(settings.promotion, self._registered, self.rebuild)
        self._writing = RLock()
        self._state = RLock()

    def __repr__(self) -> str:
        # no lock: a debugger may show an engine whose lock another, halted thread holds
        rows = 0 if self._core is None else self._core.rows
        return describe(self.window, self._settings.values, rows, self._registered.conditions)

    def register(self, name: str, condition: str) -> None:
        """Register a predicate; mid-stream the rows inside are divided by it, exactly."""
        parsed = parse_predicate(condition)
        with self._writing, self._state, in_script(condition):
            core = self._core
            if core is not None and not (core.rows or core.has_raw):
                core = None  # nothing inside: the next batch begins anew
            self._registered.admit(core, name, parsed)
            self._core = core

    def drop(self, name: str) -> None:
        """Drop a predicate; atoms that differed only in it become one."""
        with self._writing, self._state:
            exact = self._registered.dismiss(self._core, name)
            if self._promoter is not None:
                self._promoter.forget(exact)

    def rebuild(self) -> list[str]:
        """Count what is provisional exactly, now instead of in the background; returns names."""
        with self._writing, self._state:
            if self._promoter is None or self._core is None:
                return []
            return self._promoter.settle(self._core)

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
                incoming = incoming.take(slice(incoming.table.rows - self.window.size, None))
            with self._state:
                core.refuse_too_many(incoming.table.rows)
                self._accommodate(core, incoming)
                self._core = core
            signed = core.signed(incoming)
            with self._state:
                if self._registered.keep_to_the_limit(core):
                    signed = core.signed(incoming)
                deltas = core.enter(incoming, signed, core.block(incoming, signed))
                self.late_rows += incoming.late
                self._slide(core, deltas, incoming.newest)

    def apply(self, inserts: object = None, deletes: object = None) -> None:
        """A changelog's slide: rows that go and rows that come.

        A row is what the columns of the first batch say of it (NULL equals NULL, -0.0 equals 0.0).
        A delete takes back one equal row that is inside, the oldest, or one of these inserts. If
        there is none, an error names the row and nothing changes. With retain=False no rows are
        there to compare: deletes are trusted, and only those that leave impossible sums (a negative
        count or variance) are refused.
        """
        with self._writing:
            gone, came = (None if p is None else open_table(p, "batch") for p in (deletes, inserts))
            filled = [part for part in (gone, came) if part is not None and part.rows]
            if not filled:
                return
            core = self._core or self._begun_by(filled[-1])
            coming, deleted = None, None
            if came is not None and came.rows:
                coming = read_batch(came, core.schema, self._newest)
            with self._state:
                if gone is not None and gone.rows:
                    going = read_batch(gone, replace(core.schema, order_by=None))
                    deleted = find_deleted(core, going, coming, gone.where)
                self._exchange(core, deleted, coming)

    def _exchange(self, core: Core, deleted: Deleted | None, coming: Incoming | None) -> None:
        """Whatever is refused is refused before the first row moves."""
        deltas, newest = None, self._newest
        if coming is not None and deleted is not None:
            coming = coming.take(np.delete(np.arange(coming.table.rows), deleted.undone))
        if coming is not None:
            core.refuse_too_many(coming.table.rows)
            self._accommodate(core, coming)
            signed = core.signed(coming)
            if self._registered.keep_to_the_limit(core):
                signed = core.signed(coming)
            block = core.block(coming, signed)
        if deleted is not None and deleted.going.table.rows:
            deltas = core.leave(deleted.going, deleted.places)
        if coming is not None:
            newest = coming.newest
            deltas = core.enter(coming, signed, block, deltas)
        self._core = core
        self._slide(core, deltas, newest)

    def _slide(self, core: Core, deltas: list[Words] | None, newest: int | None) -> None:
        self._newest = newest
        core.commit(deltas, expiring(self.window, core, newest))
        ease(core)
        self._settle_misfits(core)
        if self._promoter is not None:
            self._promoter.catch_up(core)
        self._questions.slid()

    def advance(self, to: Instant) -> None:
        """Let time pass without rows: a TimeWindow's t becomes ``to``, if that is later.

        ``to`` is a datetime, a ``pandas.Timestamp`` or a ``numpy.datetime64`` (UTC, where it has
        no zone), or a whole number: microseconds since 1970 UTC, or what a column of numbers holds.
        """
        instant = to_microseconds(to)
        if instant is None:
            raise ScriptError(f"not an instant: {to!r}", hint=_INSTANTS)
        with self._writing, self._state:
            if not isinstance(self.window, TimeWindow):
                raise StateError("only a TimeWindow moves with time alone")
            order_by = self._settings.order_by
            known = None if self._core is None else self._core.schema.kinds.get(str(order_by))
            if known is Kind.NUMBER and isinstance(to, datetime | np.datetime64):
                raise ScriptError(
                    f"cannot advance to {to!r}: event time {order_by!r} holds numbers",
                    hint="give a whole number",
                )
            self._newest = instant if self._newest is None else max(self._newest, instant)
            if self._core is not None:
                self._slide(self._core, None, self._newest)

    def memory(self) -> Memory:
        """Bytes by component."""
        with self._state:
            return measure_memory(self._core)

    def checkpoint(self, path: str | Path) -> None:
        """Write the whole engine to one file: complete, or not at all."""
        with self._writing:
            self.rebuild()
            facts = {
                "settings": self._settings.facts(),
                "conditions": self.predicates,
                "newest": self._newest,
                "late_rows": self.late_rows,
                "promotion": None if self._promoter is None else self._promoter.facts(),
            }
            write_core(path, facts, self._core)

    @classmethod
    def restore(cls, path: str | Path) -> Engine:
        """The engine of a checkpoint: it goes on as if it had never stopped."""
        facts, build = read_core(path)
        engine = cls.__new__(cls)
        engine._begin(Settings.of(facts["settings"]))
        conditions = {n: parse_predicate(c) for n, c in facts["conditions"].items()}
        engine._registered.conditions = conditions
        engine._newest = facts["newest"]
        engine.late_rows = facts["late_rows"]
        if engine._promoter is not None:
            engine._promoter.adopt(facts["promotion"])
        engine._core = build(
            lambda kinds: bind_conditions(conditions, kinds),
            lambda kinds: tuple(bind_measure(m, kinds) for m in engine._measures.values()),
            lambda core: bind_targets(core, engine._combinations),
            engine._settings,
        )
        return engine

    def _begun_by(self, source: Source) -> Core:
        return first_core(source, self._settings, self._registered.conditions, self._measures)

    def _accommodate(self, core: Core, incoming: Incoming) -> None:
        """Room for the rows that come."""
        accommodate(core, incoming, self._settings.degree)
        self._settle_misfits(core)

    def _settle_misfits(self, core: Core) -> None:
        """Provisional sums in units that are no longer the core's are counted anew."""
        if self._promoter and not all(one.fits(core) for one in core.provisional.values()):
            self._promoter.settle(core)


def _texts(given: str | Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,)
    texts = tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(text, str) for text in texts):
        raise ScriptError(f"{given!r} names no columns", hint="give text, or a list of texts")
    return texts
