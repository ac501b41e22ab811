"""Answer ad hoc questions about a stream's current window (``ids.spark.ask``).

A question is answered from the rows that the stream has retained up to its last completed batch:

    CHECKPOINT/data/00000041-3f9c-retained/…   rows that batch 41 has accepted

    rows of the window at the last emitted instant ─▶ one pane ─▶ one answer per key

Each batch writes its rows to a piece (a directory of Parquet files). Its manifest, a small file,
lists all pieces that are still needed. A question reads the newest manifest, so it can be answered
in any process, while the stream is running or after it has stopped. Its plan is the stream's
SELECT with a single item, evaluated at a single instant. Questions are checked without pyspark,
which this module imports only to read rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pyarrow as pa

from ids.errors import DataError, ScriptError, StateError
from ids.games import GAMES, find
from ids.language import parse, parse_aggregate, parse_predicate
from ids.model import (
    Approximate,
    Attribution,
    Drop,
    Item,
    ItemKind,
    Kind,
    Register,
    Select,
    TimeWindow,
    checked_seed,
    is_remote,
    unused,
)
from ids.plan import Registry, SelectPlan, plan_select, unsupported_named
from ids.spark.expression_sql import Typed
from ids.spark.file_system import files_at
from ids.spark.preflight import refuse_beyond_panes
from ids.spark.stream_checkpoint import instant, not_a_checkpoint
from ids.spark.stream_store import Manifest, Piece, Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ids.spark.spark_prepare import Ready

RETAINED = "retained"

_EMITTED = "spoken"  # in a manifest of format 2
_TRIES = 5
_EXACT, _SAMPLED = "the retained rows are complete", "a sample was requested"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Describes the retained rows after a micro-batch.

    columns        the columns of the table, which are named ``c0``, ``c1``, … in the files
    unsupported    the columns that are not retained, with their types
    slide          µs
    width          the width of the window, in slides
    script         the stream's script
    since          panes up to this one may be incomplete, because some of their rows arrived
                   before rows were retained; None if all panes are complete
    begun          the first batch that retained rows; None: the stream's first batch
    emitted_until  instants up to this one (in slides) have been emitted; None: no instant has
    """

    columns: dict[str, Typed]
    unsupported: dict[str, str]
    slide: int
    width: int
    script: str
    since: int | None = None
    begun: int | None = None
    emitted_until: int | None = None

    @property
    def expired(self) -> int | None:
        """The last pane that has expired; None if nothing has been emitted."""
        return None if self.emitted_until is None else self.emitted_until - self.width

    def pieces_of(self, manifest: Manifest | None, name: str) -> list[Piece]:
        """Return the pieces in a manifest that contain these columns."""
        pieces = [] if manifest is None else manifest.of(name)
        return [p for p in pieces if self.begun is None or p.batch >= self.begun]

    def inside(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Return the pieces that contain panes of the window ending at ``emitted_until``."""
        if self.emitted_until is None or self.expired is None:
            return []
        return [p for p in pieces if p.last > self.expired and p.first <= self.emitted_until]

    def read(self, store: Store, pieces: Sequence[Piece]) -> DataFrame:
        """Read the PANE column and the columns ``c0``, ``c1``, …, one per column of the table."""
        from ids.spark.spark_prepare import PANE

        columns = [f"{typed.text} {typed.type}" for typed in self.columns.values()]
        return store.read(pieces, ", ".join([f"{PANE} bigint", *columns]))

    def facts(self) -> dict[str, Any]:
        """Return the attributes as JSON values, for a manifest."""
        columns = [
            [name, typed.kind and typed.kind.value, typed.whole]
            for name, typed in self.columns.items()
        ]
        kept = asdict(self)
        return kept | {"columns": columns, _EMITTED: kept.pop("emitted_until")}

    @classmethod
    def of(cls, facts: dict[str, Any]) -> KeptRows:
        """Restore the attributes from the values that ``facts`` returned."""
        columns = {
            name: Typed(f"c{number}", kind and Kind(kind), whole)
            for number, (name, kind, whole) in enumerate(facts["columns"])
        }
        kept = facts | {"columns": columns}
        return cls(emitted_until=kept.pop(_EMITTED), **kept)


class Current(NamedTuple):
    """The retained rows of the window at the last emitted instant."""

    store: Store
    kept: KeptRows
    pieces: list[Piece]


def steadily(
    checkpoint: str | Path, read: Callable[[Current], T], session: SparkSession | None = None
) -> T:
    """Call ``read`` with the retained rows; retry if the stream deletes them during the call."""
    store = Store(files_at(checkpoint, session), session)
    for left in reversed(range(_TRIES)):
        number = None
        try:
            number, current = _current(checkpoint, store)
            with store.faults_as_altered():
                return read(current)
        except OSError:  # as CheckpointError and SourceError are
            moved = number is None or number not in store.manifests()
            if not (left and moved):
                raise
    raise AssertionError("the last attempt returns or raises")


def _current(checkpoint: str | Path, store: Store) -> tuple[int, Current]:
    """Return the last batch's number and the retained rows; raise StateError if there are none."""
    manifest = store.latest()
    if manifest is None:
        if not store.files.entries("ids"):
            raise not_a_checkpoint(checkpoint)
        raise StateError("the stream has emitted nothing yet; ask again later")
    facts = manifest.facts["step"].get(RETAINED)
    if facts is None:
        raise StateError(f"the stream of {checkpoint} retains no rows; start it with retain=True")
    kept = KeptRows.of(facts)
    if kept.emitted_until is None or kept.expired is None:
        raise StateError("the stream has emitted nothing yet; ask again later")
    if kept.since is not None and kept.expired < kept.since:
        raise StateError(
            "the window contains rows that came before its columns were retained; ask again when "
            "these rows have expired"
        )
    return manifest.batch, Current(store, kept, kept.inside(manifest.of(RETAINED)))


@dataclass(frozen=True, slots=True)
class InstantPlan(SelectPlan):
    """The plan of a question, in which all rows of the window are in one pane, at one instant.

    It orders by an added column, which contains this instant in every row.

    read  the columns that the stream's SELECT would read with this item, on which samples depend
    """

    read: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read, without duplicates."""
        return self.read


@dataclass(frozen=True, slots=True)
class StreamQuestion:
    """A question about a stream's window, answered exactly or from ``sample`` rows if given."""

    aggregate: str
    predicate: str
    sample: int | None = None
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checked_seed(self.seed))

    def planned(self, kept: KeptRows) -> InstantPlan:
        """Return its plan, bound to the retained columns and the script's predicates."""
        item = self._item()
        registry, selects = Registry(), []
        for statement in parse(kept.script, tuple(GAMES)):
            match statement:
                case Register():
                    registry.register(statement)
                case Drop():
                    registry.drop(statement)
                case Select():
                    selects.append(statement)
        (select,) = selects
        kinds = {name: typed.kind for name, typed in kept.columns.items()}
        with unsupported_named(kept.unsupported):
            plan = plan_select(replace(select, items=(item,)), kinds, registry)
        refuse_beyond_panes(plan)
        _refuse_clashes(plan)
        return self._instant(plan, kept.slide, unused("now", kept.columns))

    def _instant(self, plan: SelectPlan, slide: int, now: str) -> InstantPlan:
        same = {field.name: getattr(plan, field.name) for field in fields(plan)}
        return InstantPlan(
            **same
            | {
                "items": tuple(replace(item, tells_spread=True) for item in plan.items),
                "where": None,  # rows that it excludes were not stored
                "order_by": (now,),
                "window": TimeWindow(slide, slide),
                "seed": self.seed,
                "read": plan.columns,
            }
        )

    def _item(self) -> Item:
        asked = parse_aggregate(self.aggregate, tuple(GAMES))
        if asked.argument is None and find(asked.function).degree:
            hint = f"write {asked.function}(column)"
            raise ScriptError(f"{asked.function} requires a measure", asked.at, hint)
        condition, parts = parse_predicate(self.predicate), ("SHARE", "LIFT")
        sampled = None if self.sample is None else Approximate(self.sample, self.confidence)
        return Item(ItemKind.ATTRIBUTE, asked, condition, parts, sampled, "answer")


def check(checkpoint: str | Path, question: StreamQuestion) -> None:
    """Raise an error if the question cannot be answered, where that is known without Spark."""
    if not is_remote(checkpoint):
        steadily(checkpoint, lambda current: question.planned(current.kept))


def answer_names(plan: SelectPlan) -> list[str]:
    """Return the names of an answer's columns, without the key columns."""
    spread = ["error", "standard_error"] if plan.sampled else []
    return ["emit_at", "n", "value", "share", "lift", *spread]


def _refuse_clashes(plan: SelectPlan) -> None:
    for name in plan.partition_by:
        if name.lower() in answer_names(plan):
            raise ScriptError(
                f"PARTITION BY {name!r} clashes with a column of the answer",
                hint="rename the column, and start a new stream",
            )


class Reply(NamedTuple):
    """The answer to a question.

    table       the keys, ``emit_at``, ``n``, ``value``, ``share``, ``lift`` (and, for a sample,
                ``error`` and ``standard_error``); one row per key, or one row without keys
    keys        the PARTITION BY columns
    window_end  the instant at which the window ends
    """

    question: StreamQuestion
    table: pa.Table
    keys: tuple[str, ...]
    window_end: datetime

    @property
    def mechanism(self) -> str:
        """The way in which the question was answered: ``scan`` or ``sample``."""
        return "scan" if self.question.sample is None else "sample"

    @property
    def answer(self) -> Attribution | pa.Table:
        """The table if the script has PARTITION BY; otherwise an Attribution."""
        if self.keys:
            return self.table
        (row,) = self.table.to_pylist()
        value, share, lift, n = (row[name] for name in ("value", "share", "lift", "n"))
        error = row.get("error", 0.0)
        found = Attribution(value, share, lift, self.mechanism, error, n, _EXACT, n, n)
        if self.question.sample is None:
            return found
        return found._replace(
            reason=_SAMPLED,
            confidence=self.question.confidence,
            standard_error=row["standard_error"],
            sample_size=self.question.sample,
            seed=self.question.seed,
        )


def ask(
    checkpoint: str | Path,
    aggregate: str,
    predicate: str,
    *,
    sample: int | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    spark: SparkSession | None = None,
) -> Attribution | pa.Table:
    """Attribute an aggregate to any predicate, in the window of a stream's last emits.

    The stream must have been started with ``retain=True``. It may be running, in this process or
    another, or stopped. The answer equals that of ``ids.sql`` over the rows of the window, to the
    last bit.

    checkpoint  str or Path: the checkpoint directory of the stream
    aggregate   str: such as "AVG(latency)" or "COUNT(*)"
    predicate   str: a condition over registered predicates and any columns of the table
    sample      int: estimate from a reservoir sample of this many rows; None (default): exact
    confidence  float, default 0.95: the probability that the error bound of an estimate holds
    seed        int, default 0: determines which rows are sampled
    spark       SparkSession: by default the active one, or a new local one

    Returns an Attribution; for a script with PARTITION BY, a pyarrow.Table with one row per key.

    Raises CheckpointError if ``checkpoint`` is not a checkpoint, or was altered; StateError if the
    stream retains no rows, has emitted nothing yet, or has not retained a whole window yet;
    ScriptError if the aggregate or the predicate is wrong; DataError if the window contains a value
    that cannot be summed, such as NaN.

    >>> ids.spark.ask("ck", "AVG(latency)", "region = 'EU'").value  # doctest: +SKIP
    12.5
    """
    question = StreamQuestion(aggregate, predicate, sample, confidence, seed)
    return replied(checkpoint, question, spark).answer


def replied(
    checkpoint: str | Path, question: StreamQuestion, spark: SparkSession | None = None
) -> Reply:
    """Answer a question, and return the answer together with the end of the window."""
    from ids.spark.session import session_of

    def read(current: Current) -> Reply:
        plan = question.planned(current.kept)
        table = _answered(current, plan)
        return Reply(question, table, plan.partition_by, _end(current.kept))

    return steadily(checkpoint, read, session_of((), spark))


def window_end(checkpoint: str | Path, spark: SparkSession | None = None) -> datetime:
    """Return the end of the window over which a question would be answered now."""
    return steadily(checkpoint, lambda current: _end(current.kept), spark)


def _answered(current: Current, plan: InstantPlan) -> pa.Table:
    from ids.spark.failures import translated
    from ids.spark.frame import Frame
    from ids.spark.spark_prepare import PANE
    from ids.spark.time_windows import time_windows

    kept = current.kept
    assert kept.emitted_until is not None and kept.expired is not None
    rows = kept.read(current.store, current.pieces)
    rows = rows.filter(f"{PANE} BETWEEN {kept.expired + 1}L AND {kept.emitted_until}L")
    now = {plan.order_by[0]: Typed(f"{kept.emitted_until * kept.slide}L", Kind.TIME)}
    with translated():
        frame = Frame(rows, kept.columns | now, kept.unsupported)
        table = time_windows(plan, frame, _refuse).toArrow()
    named = [*plan.partition_by, *answer_names(plan)]
    table = table.select(range(len(named))).rename_columns(named)
    if table.num_rows or plan.partition_by:
        return table
    # an empty window has no emit, but its answer is 0
    nothing = [kept.emitted_until * kept.slide, *[0] * (len(named) - 1)]
    columns = [pa.array([v], f.type) for v, f in zip(nothing, table.schema, strict=True)]
    return pa.table(columns, schema=table.schema)


def _refuse(rows: Ready, faults: int) -> None:
    from ids.spark.spark_prepare import FAULT

    first = rows.data.filter(f"{FAULT} IS NOT NULL").select(FAULT).first()
    assert first is not None
    more = f" (and {faults - 1:,} more bad rows)" if faults > 1 else ""
    raise DataError(
        f"{first[0]} in the window{more}; ask for another measure, or exclude such rows with WHERE "
        "in the stream's script"
    )


def _end(kept: KeptRows) -> datetime:
    assert kept.emitted_until is not None
    end = instant(kept.emitted_until * kept.slide)
    assert end is not None
    return end
