"""The live engine, which is updated batch by batch and can be queried at any time."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from threading import RLock

import numpy as np

from ids.engine.core import Batch, Core, Deleted, Memory, Schema, Words, read_batch
from ids.engine.promotion import Promoter
from ids.engine.questions import Questions, Wording, explain_answer
from ids.engine.registrations import Registrations, bind_conditions
from ids.engine.settings import Settings, Window
from ids.errors import ArgumentError, ScriptError, StateError, UnknownNameError, in_script
from ids.language import parse_predicate
from ids.model import (
    Approximate,
    Attribution,
    CountWindow,
    Duration,
    Instant,
    Kind,
    Promotion,
    Sampling,
    TimeWindow,
    columns_of,
    microseconds,
    render,
    span,
    to_microseconds,
)
from ids.plan import choose_offer, unsupported_named
from ids.predicates import bind_measure
from ids.source import Source, open_table
from ids.state import Refined, load, save

_SHOWN = 8  # names per list in the repr
_INSTANTS = "give a datetime, a numpy.datetime64, or whole microseconds since 1970 UTC"


class Engine:
    """Exact attribution over a sliding window that is updated as rows arrive.

    Register predicates, ingest batches, and query how much of an aggregate is due to the rows that
    satisfy a predicate. Queries on registered predicates and their combinations take microseconds,
    regardless of the window size. For other conditions, the retained rows are read.

    An engine is thread-safe: one thread may write while others query. A query sees the window after
    a complete slide, never in the middle of one.

    Parameters
    ----------
    window : CountWindow, TimeWindow or Changelog
        The window: the last n rows, the last period of time, or the rows that an upstream system
        has inserted and not deleted.
    value : str or iterable of str, default ()
        The measures to aggregate: columns, or arithmetic expressions over columns. Without a
        measure, only COUNT(*) is available.
    order_by : str, optional
        The column that determines the order of rows, with timestamps or integers. Required for a
        TimeWindow. By default, rows are ordered by arrival.
    lateness : str, timedelta or int, default 0
        How far behind the newest event time a row may be, such as '10 seconds' (an int is a number
        of microseconds). Rows that are later than this are dropped and counted in ``late_rows``.
        Without ``order_by``, this has no effect.
    retain : bool, default True
        Whether to keep all columns of the rows in the window. Required for conditions that are not
        registered, for predicates registered after the first batch, and to check deletes.
    degree : int, default 2
        The highest power sum kept, 0 to 6. 2 is enough for SUM, COUNT, AVG and the variances; M3
        needs 3 and M4 needs 4.
    atom_limit : int, default 65536
        The maximum number of atoms (combinations of truth values that occur). If it is exceeded,
        sums are kept only for the registered predicates and ``intersections``.
    intersections : str or iterable of str, default ()
        Combinations of registered names, such as "eu AND premium", whose sums are kept even if
        ``atom_limit`` is exceeded.
    index : str or iterable of str, default ()
        Columns to index, so that conditions on them do not have to scan all rows. Requires
        ``retain``.
    sampling : Sampling, optional
        Keep a random sample of the window for estimates. By default, no sample is kept.
    promotion : Promotion, optional
        Register frequently queried conditions automatically. Requires ``retain``. Off by default.

    Attributes
    ----------
    window : CountWindow, TimeWindow or Changelog
        The window passed to the constructor.
    late_rows : int
        The number of late rows dropped so far.

    Raises
    ------
    ArgumentError
        If an argument is invalid, or the arguments contradict each other.
    ScriptError
        If a measure or an intersection cannot be parsed.

    Examples
    --------
    >>> import ids
    >>> engine = ids.Engine(window=ids.CountWindow(2), value="ms")
    >>> engine.register("eu", "region = 'EU'")
    >>> engine.ingest({"region": ["EU", "US", "EU"], "ms": [10.0, 20.0, 60.0]})
    >>> engine.attribute("SUM", "eu").value, engine.rows
    (60.0, 2)
    >>> engine
    <ids.Engine CountWindow(2), value ms, 2 rows, predicates eu>
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
        self._registered = Registrations(combinations, self._questions.refined)
        self._promoter: Promoter | None = None
        if settings.promotion is not None:
            self._promoter = Promoter(settings.promotion, self._registered, self.rebuild)
        # a writer acquires both locks, ``_writing`` first; a reader acquires only ``_state``
        self._writing = RLock()
        self._state = RLock()

    def __repr__(self) -> str:
        # no lock, because a debugger may call this while a halted thread holds the lock
        rows = 0 if self._core is None else self._core.rows
        return (
            f"<ids.Engine {_window_text(self.window)}, value {_names(self._settings.values)}, "
            f"{rows:,} row{'' if rows == 1 else 's'}, "
            f"predicates {_names(self._registered.conditions)}>"
        )

    # --- properties -------------------------------------------------------------------------------

    @property
    def predicates(self) -> dict[str, str]:
        """The registered predicates, including promoted ones, as a dict from name to condition."""
        return {name: render(c) for name, c in self._registered.conditions.items()}

    @property
    def promoted(self) -> dict[str, str]:
        """The promoted predicates, including provisional ones, as a dict from name to condition."""
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
        """The number of rows in the window."""
        with self._state:
            return 0 if self._core is None else self._core.rows

    @property
    def atoms(self) -> int:
        """The number of atoms that contain a row; 0 if ``atom_limit`` was exceeded."""
        with self._state:
            membership = None if self._core is None else self._core.membership
            return len(membership.live) if isinstance(membership, Refined) else 0

    def memory(self) -> Memory:
        """Return the allocated bytes by component.

        Returns
        -------
        Memory
            ``summaries``, ``atoms``, ``retained``, ``index``, ``sampler`` and ``total``, in bytes.

        Examples
        --------
        >>> import ids
        >>> ids.Engine(window=ids.CountWindow(2), value="ms").memory().total
        0
        """
        with self._state:
            return Memory(0, 0, 0) if self._core is None else self._core.memory()

    # --- predicates -------------------------------------------------------------------------------

    def register(self, name: str, condition: str) -> None:
        """Register a predicate, so that queries on it are computed from its sums.

        If rows have already arrived, the predicate is evaluated once on the rows in the window. The
        result is exact, as if the predicate had been registered from the start.

        Parameters
        ----------
        name : str
            The name to use in queries; case-insensitive.
        condition : str
            A SQL condition over columns and previously registered names.

        Raises
        ------
        ScriptError
            If the condition is invalid or the name is taken.
        StateError
            If rows have arrived and the engine has ``retain=False``.

        Examples
        --------
        >>> import ids
        >>> engine = ids.Engine(window=ids.CountWindow(1000), value="ms")
        >>> engine.register("slow_eu", "region = 'EU' AND ms > 100")
        >>> engine.predicates
        {'slow_eu': "region = 'EU' AND ms > 100"}
        """
        parsed = parse_predicate(condition)
        with self._writing, self._state, in_script(condition):
            core = self._core
            if core is not None and not (core.rows or core.has_raw):
                core = None  # the window is empty, and the next batch creates a new core
            self._registered.register(core, name, parsed)
            self._core = core

    def drop(self, name: str) -> None:
        """Drop a registered or promoted predicate.

        Parameters
        ----------
        name : str
            The predicate's name; case-insensitive.

        Raises
        ------
        UnknownNameError
            If there is no such predicate, or if another predicate uses it.

        Examples
        --------
        >>> import ids
        >>> engine = ids.Engine(window=ids.CountWindow(1000), value="ms")
        >>> engine.register("eu", "region = 'EU'")
        >>> engine.drop("EU")
        >>> engine.predicates
        {}
        """
        with self._writing, self._state:
            exact = self._registered.drop(self._core, name)
            if self._promoter is not None:
                self._promoter.forget(exact)

    def rebuild(self) -> list[str]:
        """Compute the sums of provisional predicates exactly now, not later in the background.

        Only needed with ``Promotion(bootstrap="sample")``, where a promoted predicate starts with
        an estimate.

        Returns
        -------
        list of str
            The names of the predicates that became exact.

        Examples
        --------
        >>> import ids
        >>> ids.Engine(window=ids.CountWindow(1000), value="ms").rebuild()
        []
        """
        with self._writing, self._state:
            if self._promoter is None or self._core is None:
                return []
            return self._promoter.rebuild(self._core)

    # --- rows arrive and leave --------------------------------------------------------------------

    def ingest(self, batch: object) -> None:
        """Add a batch of rows, and expire the rows that leave the window.

        Parameters
        ----------
        batch : table
            A pyarrow Table or RecordBatch, a pandas or Polars DataFrame, a dict of columns, or the
            path of a file. Later batches must have the columns of the first one.

        Raises
        ------
        DataError
            If a row has a NaN or infinite measure or a NULL event time, or the type of a column has
            changed. The window does not change.
        SourceError
            If the batch cannot be read.
        StateError
            If the rows cannot be summed exactly, because there are more than 2**26, or because
            their magnitudes differ too much for ``retain=False``. The window does not change.
        UnknownNameError
            If the first batch does not contain a column that the engine uses.

        Examples
        --------
        >>> import ids
        >>> engine = ids.Engine(window=ids.TimeWindow("10 seconds"), value="x", order_by="at")
        >>> engine.ingest({"at": [1_000_000, 12_000_000], "x": [1.0, 2.0]})
        >>> engine.rows
        1
        """
        with self._writing:
            source = open_table(batch, "batch")
            if not source.rows:
                return
            core = self._core or self._first_core(source)
            coming = read_batch(source, core.schema, self._newest, self._settings.lateness)
            if isinstance(self.window, CountWindow) and coming.table.rows > self.window.size:
                # older rows would be inserted and then expire within the same slide
                coming = coming.take(slice(coming.table.rows - self.window.size, None))
            with self._state:
                self._fit(core, coming)
                self._core = core
            rows = core.classify(coming)
            with self._state:
                if core.exceeds_limit:
                    self._registered.give_up_atoms(core)
                    rows = core.classify(coming)
                deltas = core.insert(coming, rows, core.block(coming, rows))
                self.late_rows += coming.late
                self._slide(core, deltas, coming.newest)

    def apply(self, inserts: object = None, deletes: object = None) -> None:
        """Apply one change of a changelog: delete rows, insert rows, or both.

        Rows are compared by the columns of the first batch (NULL equals NULL, -0.0 equals 0.0). A
        delete removes the oldest equal row in the window. If there is none, it cancels an equal
        insert of the same call. With ``retain=False`` there are no rows to compare, so deletes are
        accepted unless they lead to impossible sums (a negative count or variance).

        Parameters
        ----------
        inserts : table, optional
            The rows to insert; a table as in ``ingest``.
        deletes : table, optional
            The rows to delete.

        Raises
        ------
        DataError, SourceError, StateError, UnknownNameError
            As in ``ingest``; also StateError if a deleted row is not in the window. The window does
            not change.

        Examples
        --------
        >>> import ids
        >>> engine = ids.Engine(window=ids.Changelog(), value="x")
        >>> engine.apply(inserts={"k": ["a", "b"], "x": [1.0, 2.0]})
        >>> engine.apply(deletes={"k": ["a"], "x": [1.0]})
        >>> engine.aggregate("SUM")
        2.0
        """
        with self._writing:
            gone, came = (None if p is None else open_table(p, "batch") for p in (deletes, inserts))
            filled = [part for part in (gone, came) if part is not None and part.rows]
            if not filled:
                return
            core = self._core or self._first_core(filled[-1])
            coming, deleted = None, None
            if came is not None and came.rows:
                coming = read_batch(came, core.schema, self._newest)
            with self._state:
                if gone is not None and gone.rows:
                    going = read_batch(gone, replace(core.schema, order_by=None))
                    deleted = core.find_deleted(going, coming, gone.where)
                self._exchange(core, deleted, coming)

    def _exchange(self, core: Core, deleted: Deleted | None, coming: Batch | None) -> None:
        """Delete and insert rows, after checking everything that can fail."""
        deltas, newest = None, self._newest
        if coming is not None and deleted is not None:
            coming = coming.take(np.delete(np.arange(coming.table.rows), deleted.undone))
        if coming is not None:
            self._fit(core, coming)
            rows = core.classify(coming)
            if core.exceeds_limit:
                self._registered.give_up_atoms(core)
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
        core.commit(deltas, newest)
        self._rebuild_misfits(core)
        if self._promoter is not None:
            self._promoter.catch_up(core)

    def advance(self, to: Instant) -> None:
        """Move a TimeWindow forward without new rows, and expire the rows that leave it.

        Parameters
        ----------
        to : datetime, pandas.Timestamp, numpy.datetime64 or int
            The new end of the window; ignored if it is earlier than the current end. Times without
            a time zone are treated as UTC. An int is a number of microseconds since 1970 UTC, or a
            value of the ``order_by`` column if that column contains numbers.

        Raises
        ------
        ArgumentError
            If ``to`` is not an instant, or is a time although ``order_by`` contains numbers.
        StateError
            If the window is not a TimeWindow.

        Examples
        --------
        >>> import ids
        >>> engine = ids.Engine(window=ids.TimeWindow("10 seconds"), value="x", order_by="at")
        >>> engine.ingest({"at": [1_000_000, 5_000_000], "x": [1.0, 2.0]})
        >>> engine.advance(12_000_000)
        >>> engine.rows
        1
        """
        instant = to_microseconds(to)
        if instant is None:
            raise ArgumentError(f"not an instant: {to!r}", hint=_INSTANTS)
        with self._writing, self._state:
            if not isinstance(self.window, TimeWindow):
                raise StateError("only a TimeWindow can advance without rows; call ingest or apply")
            order_by = self._settings.order_by
            known = None if self._core is None else self._core.schema.kinds.get(str(order_by))
            if known is Kind.NUMBER and isinstance(to, datetime | np.datetime64):
                raise ArgumentError(
                    f"cannot advance to {to!r}: event time {order_by!r} has numbers",
                    hint="give a whole number",
                )
            self._newest = instant if self._newest is None else max(self._newest, instant)
            if self._core is not None:
                self._slide(self._core, None, self._newest)

    def _first_core(self, source: Source) -> Core:
        """Create an empty core with the schema of the first batch.

        If neither raw rows nor a sample are kept, the schema has only the columns that are used.
        """
        settings, order_by = self._settings, self._settings.order_by
        kinds = self._kinds(source)
        with unsupported_named(source.unsupported):
            predicates = bind_conditions(self._registered.conditions, kinds)
            bound = tuple(bind_measure(measure, kinds) for measure in self._measures.values())
            if order_by is not None and order_by not in kinds:
                raise UnknownNameError("column", order_by, kinds)
        if not settings.retain and settings.sampling is None:
            used = [name for each in (*predicates.values(), *bound) for name in columns_of(each)]
            needed = [*used, *([order_by] if order_by else [])]
            kinds = {name: kinds[name] for name in needed}
        return Core(Schema(kinds, bound, order_by), predicates, settings)

    def _kinds(self, source: Source) -> dict[str, Kind]:
        """Return the column types; an all-NULL column gets a type that the conditions accept."""

        def fits(name: str, kind: Kind) -> bool:
            tried = {**source.schema, **dict.fromkeys(source.untyped), name: kind}
            try:
                bind_conditions(self._registered.conditions, tried)
                for measure in self._measures.values():
                    bind_measure(measure, tried)
            except ScriptError:
                return False
            return True

        untyped = {
            name: next((kind for kind in Kind if fits(name, kind)), Kind.NUMBER)
            for name in source.untyped
        }
        return {**source.schema, **untyped}

    def _fit(self, core: Core, batch: Batch) -> None:
        """Widen the core so that it can sum a batch; raise before any change if it cannot."""
        core.refuse_too_many(batch.table.rows)
        core.fit(batch)
        self._rebuild_misfits(core)

    def _rebuild_misfits(self, core: Core) -> None:
        """Rebuild provisional predicates whose scale differs from the core's."""
        if self._promoter and not all(one.fits(core) for one in core.provisional.values()):
            self._promoter.rebuild(core)

    # --- queries ----------------------------------------------------------------------------------

    def attribute(
        self, aggregate: str, predicate: str, *, sample: int | None = None, confidence: float = 0.95
    ) -> Attribution:
        """Return how much of an aggregate is due to the rows that satisfy a predicate, as of now.

        Parameters
        ----------
        aggregate : str
            SUM, COUNT, AVG, VAR_POP, VAR_SAMP, M3 or M4. If the engine has one measure, its name
            can be omitted (``"AVG"``); otherwise include it, as in ``"AVG(latency)"``.
        predicate : str
            A registered name, a combination of names, or any condition over columns.
        sample : int, optional
            Estimate the result from a random sample of this many rows. By default the result is
            exact, unless the engine keeps nothing but a sample from which to compute it.
        confidence : float, default 0.95
            The confidence level of an estimate's error bound, between 0 and 1.

        Returns
        -------
        Attribution
            ``value`` = ``share`` + ``lift``, with ``mechanism``, ``error`` (0.0 if exact), ``n``
            (rows in the window) and how the result was computed.

        Raises
        ------
        ScriptError
            If the aggregate or the predicate is invalid.
        StateError
            If the engine does not keep the state that the query needs.

        Examples
        --------
        >>> import ids
        >>> engine = ids.Engine(window=ids.CountWindow(10), value="ms")
        >>> engine.register("eu", "region = 'EU'")
        >>> engine.ingest({"region": ["EU", "US"], "ms": [30.0, 10.0]})
        >>> engine.attribute("AVG", "eu")
        Attribution(value=20.0, share=10.0, lift=10.0, mechanism='marginal', n=2)
        >>> engine.attribute("SUM", "ms < 20").value
        10.0
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
        """Let the promoter count a query; a promotion is postponed while a slide is running."""
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
        """Return how a query is computed, why, and at what cost.

        The query is executed to measure its actual cost, but it does not count towards promotion.

        Parameters
        ----------
        aggregate, predicate, sample, confidence
            As in ``attribute``.

        Returns
        -------
        str
            Several lines: the mechanism, the reason, expected and actual rows read, and the
            alternatives with their costs.

        Raises
        ------
        ScriptError, StateError
            As in ``attribute``.

        Examples
        --------
        >>> import ids
        >>> engine = ids.Engine(window=ids.CountWindow(10), value="ms")
        >>> engine.register("eu", "region = 'EU'")
        >>> engine.ingest({"region": ["EU", "US"], "ms": [30.0, 10.0]})
        >>> print(engine.explain("AVG", "eu"))
        AVG of eu: marginal
          reason: ...
          rows read: 0 (expected 0)
        """
        approximate = None if sample is None else Approximate(sample, confidence)
        asked = (aggregate, predicate, approximate)
        with self._state:
            question = self._questions.plan(self._core, asked)
            offers = self._questions.offers(self._core, question)
            found = self._questions.attribute(self._core, asked)
        return explain_answer(aggregate, predicate, found, offers)

    def attribute_by_atoms(self, aggregate: str, predicate: str) -> Attribution:
        """Return the same result as ``attribute``, computed atom by atom as a cross-check.

        Parameters
        ----------
        aggregate : str
            As in ``attribute``.
        predicate : str
            A registered name or a combination of names.

        Returns
        -------
        Attribution
            The sum of the attributions of the atoms on which the predicate holds.

        Raises
        ------
        ScriptError
            If the aggregate or the predicate is invalid.
        StateError
            If ``atom_limit`` was exceeded.

        Examples
        --------
        >>> import ids
        >>> engine = ids.Engine(window=ids.CountWindow(10), value="ms")
        >>> engine.register("eu", "region = 'EU'")
        >>> engine.ingest({"region": ["EU", "US"], "ms": [30.0, 10.0]})
        >>> engine.attribute_by_atoms("AVG", "eu").value
        20.0
        """
        with self._state:
            if self._core is None:
                return self.attribute(aggregate, predicate)
            return self._questions.by_atoms(self._core, aggregate, predicate)

    def aggregate(self, aggregate: str) -> float | None:
        """Return the aggregate over all rows in the window.

        Parameters
        ----------
        aggregate : str
            As in ``attribute``.

        Returns
        -------
        float or None
            The value, or None if it is NULL in SQL (such as AVG over no rows).

        Raises
        ------
        ScriptError, StateError
            As in ``attribute``.

        Examples
        --------
        >>> import ids
        >>> engine = ids.Engine(window=ids.CountWindow(10), value="ms")
        >>> engine.ingest({"ms": [30.0, 10.0]})
        >>> engine.aggregate("AVG")
        20.0
        """
        with self._state:
            game, measure = self._questions.game(self._core, aggregate)
            if self._core is None or measure >= len(self._core.measures):
                return None if game.nulls else 0.0
            return self._core.worth(measure, game)

    def residual(self, aggregate: str) -> float:
        """Return the sum of the atoms' attributions minus the aggregate, which is 0 up to rounding.

        Parameters
        ----------
        aggregate : str
            As in ``attribute``.

        Returns
        -------
        float
            The difference. By the Efficiency axiom it is 0, so it checks the engine itself.

        Raises
        ------
        StateError
            If ``atom_limit`` was exceeded.

        Examples
        --------
        >>> import ids
        >>> engine = ids.Engine(window=ids.CountWindow(10), value="ms")
        >>> engine.ingest({"ms": [30.0, 10.0]})
        >>> engine.residual("AVG")
        0.0
        """
        with self._state:
            game, measure = self._questions.game(self._core, aggregate)
            if self._core is None or measure >= len(self._core.measures):
                return 0.0
            if not isinstance(self._core.membership, Refined):
                raise StateError("the atoms were given up at atom_limit; raise the limit")
            return self._core.measures[measure].residual(self._core.membership.live, game)

    # --- checkpoints ------------------------------------------------------------------------------

    def checkpoint(self, path: str | Path) -> None:
        """Write the engine's complete state to one file.

        The file is replaced atomically: after a failure, either the old or the new file is there.

        Parameters
        ----------
        path : str or Path
            The file to write.

        Raises
        ------
        CheckpointError
            If the file cannot be written.

        Examples
        --------
        >>> import ids, tempfile
        >>> engine = ids.Engine(window=ids.CountWindow(10), value="ms")
        >>> engine.ingest({"ms": [30.0, 10.0]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     engine.checkpoint(f"{folder}/engine.ids")
        ...     again = ids.Engine.restore(f"{folder}/engine.ids")
        >>> again.aggregate("AVG")
        20.0
        """
        with self._writing:
            self.rebuild()
            core = self._core
            facts = {
                "settings": self._settings.facts(),
                "conditions": self.predicates,
                "newest": self._newest,
                "late_rows": self.late_rows,
                "promotion": None if self._promoter is None else self._promoter.facts(),
                "core": None if core is None else core.facts(),
            }
            save(path, facts, {} if core is None else core.arrays())

    @classmethod
    def restore(cls, path: str | Path) -> Engine:
        """Restore an engine from a checkpoint; it continues as if it had never stopped.

        Parameters
        ----------
        path : str or Path
            A file written by ``checkpoint``, whose documentation has an example.

        Returns
        -------
        Engine
            A new engine with the same window, predicates and settings.

        Raises
        ------
        CheckpointError
            If the file is missing, truncated, altered, or has a different version.
        """
        facts, arrays = load(path)
        engine = cls.__new__(cls)
        engine._begin(Settings.of(facts["settings"]))
        conditions = {n: parse_predicate(c) for n, c in facts["conditions"].items()}
        engine._registered.restore(conditions)
        engine._newest = facts["newest"]
        engine.late_rows = facts["late_rows"]
        if engine._promoter is not None:
            engine._promoter.restore(facts["promotion"])
        about = facts["core"]
        if about is not None:
            kinds = {name: Kind(value) for name, value in about["kinds"].items()}
            bound = tuple(bind_measure(measure, kinds) for measure in engine._measures.values())
            predicates = bind_conditions(conditions, kinds)
            core = Core(Schema(kinds, bound, about["order_by"]), predicates, engine._settings)
            targets = {} if about["refined"] else engine._registered.bind_targets(core)
            core.restore(about, arrays, targets)
            engine._core = core
        return engine


def _names(names: Collection[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    shown = ", ".join(" ".join(name.split()) for name in islice(names, _SHOWN))
    return shown + more if names else "none"


def _window_text(window: Window) -> str:
    """Return the window as Python code."""
    match window:
        case CountWindow(size, slide):
            return f"CountWindow({size:_}{f', slide={slide:_}' if slide > 1 else ''})"
        case TimeWindow(duration=duration, slide=slide):
            spans = [span(one).replace(",", "") for one in (duration, slide) if one is not None]
            return "TimeWindow('" + "', slide='".join(spans) + "')"
    return "Changelog()"


def _texts(given: str | Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,)
    texts = tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(text, str) for text in texts):
        raise ArgumentError(f"{given!r} is not text", hint="give a string or a list of strings")
    return texts
