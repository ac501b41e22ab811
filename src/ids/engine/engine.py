"""Engine: exact attribution over a live window, in process; rows come batch by batch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from threading import RLock

import numpy as np

from ids.engine.batches import (
    Batch,
    Deleted,
    Schema,
    columns_needed,
    find_deleted,
    read_batch,
)
from ids.engine.core import Core, Memory, Registrations, Words, bind_conditions, count_expired
from ids.engine.engine_checkpoint import restore_core, write_engine
from ids.engine.promotion import Promoter
from ids.engine.questions import Questions, Wording, explain_answer
from ids.engine.settings import Settings, Window
from ids.errors import ScriptError, StateError, UnknownNameError, in_script
from ids.language import parse_predicate
from ids.model import (
    Approximate,
    Attribution,
    CountWindow,
    Duration,
    Expression,
    Instant,
    Kind,
    Promotion,
    Sampling,
    TimeWindow,
    microseconds,
    render,
    span,
    to_microseconds,
)
from ids.plan import choose_offer, unsupported_named
from ids.predicates import bind_measure
from ids.source import Source, open_table
from ids.state import Refined, load, residual


class _Reader:
    """The reading half of an engine: a question sees a whole slide or none of it.

    Two locks: a writer takes both in turn, ``_writing`` first; a reader takes ``_state``.
    """

    _core: Core | None
    _questions: Questions
    _registered: Registrations
    _promoter: Promoter | None
    _writing: RLock
    _state: RLock

    @property
    def predicates(self) -> dict[str, str]:
        """The registered predicates and their conditions, those promoted included."""
        return {name: render(c) for name, c in self._registered.conditions.items()}

    @property
    def promoted(self) -> dict[str, str]:
        """The promoted conditions by the names they were given, provisional ones included."""
        with self._state:
            provisional = {} if self._core is None else self._core.provisional
            named = {} if self._promoter is None else self._promoter.names
            known = self._registered.conditions
            return {
                name: render(provisional[name].condition if name in provisional else known[name])
                for name in named.values()
            }

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

    def attribute(
        self, aggregate: str, predicate: str, *, sample: int | None = None, confidence: float = 0.95
    ) -> Attribution:
        """How much of the aggregate the predicate's rows account for, now.

        ``aggregate`` is ``"AVG"`` where there is one measure, else ``"AVG(latency)"``. With a
        ``sample`` of so many rows the answer is an estimate, its error bound at ``confidence``.
        """
        approximate = None if sample is None else Approximate(sample, confidence)
        asked = (aggregate, predicate, approximate)
        with self._state:
            rebuilt = self._promote(asked)
            found = self._questions.attribute(self._core, asked)
        if not rebuilt:
            return found
        return found._replace(
            reason="this question promoted it", rows_expected=rebuilt, rows_read=rebuilt
        )

    def _promote(self, asked: Wording) -> int:
        """Let the promoter count a question; what follows waits while a slide is on its way."""
        promoter, core = self._promoter, self._core
        if promoter is None or core is None or asked[2] is not None:
            return 0
        question = self._questions.plan(core, asked)
        offers = self._questions.offers(core, question)
        touched = choose_offer(offers).rows if offers else 0
        free = self._writing.acquire(blocking=False)
        try:
            return promoter.ask(core, question, touched, may_change=free)
        finally:
            if free:
                self._writing.release()

    def explain(
        self, aggregate: str, predicate: str, *, sample: int | None = None, confidence: float = 0.95
    ) -> str:
        """Which mechanism answers, why, at what estimated and what actual cost; and the others.

        The question is answered to tell, but counts for no promotion.
        """
        approximate = None if sample is None else Approximate(sample, confidence)
        asked = (aggregate, predicate, approximate)
        with self._state:
            question = self._questions.plan(self._core, asked)
            offers = self._questions.offers(self._core, question)
            found = self._questions.attribute(self._core, asked)
        return explain_answer(aggregate, predicate, found, offers)

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
            return self._core.worth(measure, game)

    def residual(self, aggregate: str) -> float:
        """The Efficiency probe: what the live atoms' attributions miss of the aggregate."""
        with self._state:
            game, measure = self._questions.game(self._core, aggregate)
            if self._core is None or measure >= len(self._core.measures):
                return 0.0
            if not isinstance(self._core.membership, Refined):
                raise StateError(
                    "the atoms were given up at their limit: there is no partition to probe"
                )
            return residual(self._core.measures[measure], self._core.membership.live, game)


_SHOWN = 8  # names of a kind


def _describe(
    window: Window, values: Collection[str], rows: int, predicates: Collection[str]
) -> str:
    """The window, the measures, the rows inside and the predicates; of many names, the first."""
    return (
        f"<ids.Engine {_called(window)}, value {_some(values)}, "
        f"{rows:,} row{'' if rows == 1 else 's'} inside, predicates {_some(predicates)}>"
    )


def _some(names: Collection[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    shown = ", ".join(" ".join(name.split()) for name in islice(names, _SHOWN))
    return shown + more if names else "none"


def _called(window: Window) -> str:
    """The window as it may be typed."""
    match window:
        case CountWindow(size, slide):
            return f"CountWindow({size:_}{f', slide={slide:_}' if slide > 1 else ''})"
        case TimeWindow(duration=duration, slide=slide):
            spans = [span(one).replace(",", "") for one in (duration, slide) if one is not None]
            return "TimeWindow('" + "', slide='".join(spans) + "')"
    return "Changelog()"


def _first_core(
    source: Source,
    settings: Settings,
    conditions: Mapping[str, Expression],
    measures: Mapping[str, Expression],
) -> Core:
    """An empty core for batches like this one; a clear error where a name is not among its columns.

    Without raw rows and without a sample, later batches need only the columns someone reads.
    """
    kinds = _kinds(source, conditions, measures)
    order_by = settings.order_by
    with unsupported_named(source.unsupported):
        predicates = bind_conditions(conditions, kinds)
        bound = tuple(bind_measure(measure, kinds) for measure in measures.values())
        if order_by is not None and order_by not in kinds:
            raise UnknownNameError("column", order_by, kinds)
    if not settings.retain and settings.sampling is None:
        needed = columns_needed([*predicates.values(), *bound], order_by)
        kinds = {name: kinds[name] for name in needed}
    return Core(Schema(kinds, bound, order_by), predicates, settings)


def _kinds(
    source: Source, conditions: Mapping[str, Expression], measures: Mapping[str, Expression]
) -> dict[str, Kind]:
    """What the columns hold; one that is all NULL holds what the conditions take it for."""

    def fits(name: str, kind: Kind) -> bool:
        tried = {**source.schema, **dict.fromkeys(source.untyped), name: kind}
        try:
            bind_conditions(conditions, tried)
            for measure in measures.values():
                bind_measure(measure, tried)
        except ScriptError:
            return False
        return True

    untyped = {
        name: next((kind for kind in Kind if fits(name, kind)), Kind.NUMBER)
        for name in source.untyped
    }
    return {**source.schema, **untyped}


_INSTANTS = "give a datetime, a numpy.datetime64, or whole microseconds since 1970 UTC"


class Engine(_Reader):
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
        self._core: Core | None = None
        self._newest: int | None = None
        combinations = settings.combinations()
        self._questions = Questions(self._measures, combinations, settings)
        changed = self._questions.refined
        self._registered = Registrations(combinations, settings.atom_limit, changed)
        self._promoter: Promoter | None = None
        if settings.promotion is not None:
            self._promoter = Promoter(settings.promotion, self._registered, self.rebuild)
        self._writing = RLock()
        self._state = RLock()

    def __repr__(self) -> str:
        # no lock: a debugger may show an engine whose lock another, halted thread holds
        rows = 0 if self._core is None else self._core.rows
        return _describe(self.window, self._settings.values, rows, self._registered.conditions)

    def register(self, name: str, condition: str) -> None:
        """Register a predicate; mid-stream the rows inside are divided by it, exactly."""
        parsed = parse_predicate(condition)
        with self._writing, self._state, in_script(condition):
            core = self._core
            if core is not None and not (core.rows or core.has_raw):
                core = None  # nothing inside: the next batch begins anew
            self._registered.register(core, name, parsed)
            self._core = core

    def drop(self, name: str) -> None:
        """Drop a predicate; atoms that differed only in it become one."""
        with self._writing, self._state:
            exact = self._registered.drop(self._core, name)
            if self._promoter is not None:
                self._promoter.forget(exact)

    def rebuild(self) -> list[str]:
        """Count what is provisional exactly, now instead of in the background; returns names."""
        with self._writing, self._state:
            if self._promoter is None or self._core is None:
                return []
            return self._promoter.rebuild(self._core)

    def ingest(self, batch: object) -> None:
        """Rows arrive; the window derives what expires. One call is one slide."""
        with self._writing:
            source = open_table(batch, "batch")
            if not source.rows:
                return
            core = self._core or self._begun_by(source)
            coming = read_batch(source, core.schema, self._newest, self._settings.lateness)
            if isinstance(self.window, CountWindow) and coming.table.rows > self.window.size:
                # rows that would come and go within this one slide leave no trace
                coming = coming.take(slice(coming.table.rows - self.window.size, None))
            with self._state:
                core.refuse_too_many(coming.table.rows)
                self._fit(core, coming)
                self._core = core
            rows = core.classify(coming)
            with self._state:
                if self._registered.keep_to_limit(core):
                    rows = core.classify(coming)
                deltas = core.insert(coming, rows, core.block(coming, rows))
                self.late_rows += coming.late
                self._slide(core, deltas, coming.newest)

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

    def _exchange(self, core: Core, deleted: Deleted | None, coming: Batch | None) -> None:
        """Whatever is refused is refused before the first row moves."""
        deltas, newest = None, self._newest
        if coming is not None and deleted is not None:
            coming = coming.take(np.delete(np.arange(coming.table.rows), deleted.undone))
        if coming is not None:
            core.refuse_too_many(coming.table.rows)
            self._fit(core, coming)
            rows = core.classify(coming)
            if self._registered.keep_to_limit(core):
                rows = core.classify(coming)
            block = core.block(coming, rows)
        if deleted is not None and deleted.going.table.rows:
            deltas = core.delete(deleted.going, deleted.places)
        if coming is not None:
            newest = coming.newest
            deltas = core.insert(coming, rows, block, deltas)
        self._core = core
        self._slide(core, deltas, newest)

    def _slide(self, core: Core, deltas: list[Words] | None, newest: int | None) -> None:
        self._newest = newest
        core.commit(deltas, count_expired(self.window, core, newest))
        self._rebuild_misfits(core)
        if self._promoter is not None:
            self._promoter.catch_up(core)

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
            return Memory(0, 0, 0) if self._core is None else self._core.memory()

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
            write_engine(path, facts, self._core)

    @classmethod
    def restore(cls, path: str | Path) -> Engine:
        """The engine of a checkpoint: it goes on as if it had never stopped."""
        facts, arrays = load(path)
        engine = cls.__new__(cls)
        engine._begin(Settings.of(facts["settings"]))
        conditions = {n: parse_predicate(c) for n, c in facts["conditions"].items()}
        engine._registered.restore(conditions)
        engine._newest = facts["newest"]
        engine.late_rows = facts["late_rows"]
        if engine._promoter is not None:
            engine._promoter.restore(facts["promotion"])
        if facts["core"] is not None:
            engine._core = restore_core(
                facts["core"], arrays, engine._settings, engine._measures, engine._registered
            )
        return engine

    def _begun_by(self, source: Source) -> Core:
        return _first_core(source, self._settings, self._registered.conditions, self._measures)

    def _fit(self, core: Core, batch: Batch) -> None:
        """Room for the rows that come."""
        core.fit(batch, self._settings.degree)
        self._rebuild_misfits(core)

    def _rebuild_misfits(self, core: Core) -> None:
        """Provisional sums in units that are no longer the core's are counted anew."""
        if self._promoter and not all(one.fits(core) for one in core.provisional.values()):
            self._promoter.rebuild(core)


def _texts(given: str | Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,)
    texts = tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(text, str) for text in texts):
        raise ScriptError(f"{given!r} names no columns", hint="give text, or a list of texts")
    return texts
