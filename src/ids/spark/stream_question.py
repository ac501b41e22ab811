"""A question to a stream's window, and its plan: the stream's SELECT with one item, at one instant.

It is put to the rows that the stream has kept after its last whole batch, while it goes on:

    CHECKPOINT/data/00000041-3f9c-retained/…   rows that batch 41 has accepted

Which pieces hold the window is part of every manifest, so a batch that is tried again ends with the
same rows. Whoever asks takes the newest manifest, in this process or in another, while the stream
runs or after it. Needs no pyspark until rows are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ids.errors import CheckpointError, ScriptError, StateError
from ids.games import GAMES, find
from ids.language import parse, parse_aggregate, parse_predicate
from ids.model import (
    Approximate,
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
from ids.spark.stream_store import Manifest, Piece, Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EMITTED = "spoken"  # in a manifest of format 2


@dataclass(frozen=True, slots=True)
class KeptRows:
    """What is kept after a micro-batch.

    columns        the table's, in the order of the files' own (``c0``, ``c1``, …)
    unsupported    columns that are not kept, and what they hold
    slide          µs
    width          of the window, in slides
    script         what the stream runs
    since          rows of panes up to this one may be missing: they came before rows were kept;
                   None if all are there
    begun          the batch from which on rows are kept; None: from the first
    emitted_until  instants up to this one (in slides) have had their emits; None: none has
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
        """Panes up to this one have left the window for good."""
        return None if self.emitted_until is None else self.emitted_until - self.width

    def pieces_of(self, manifest: Manifest | None, name: str) -> list[Piece]:
        """Those of a manifest that were written since rows have been kept with these columns."""
        pieces = [] if manifest is None else manifest.of(name)
        return [p for p in pieces if self.begun is None or p.batch >= self.begun]

    def inside(self, pieces: Sequence[Piece]) -> list[Piece]:
        """The pieces with panes of the window at ``emitted_until``."""
        if self.emitted_until is None or self.expired is None:
            return []
        return [p for p in pieces if p.last > self.expired and p.first <= self.emitted_until]

    def read(self, store: Store, pieces: Sequence[Piece]) -> DataFrame:
        """PANE, then a column ``c0``, ``c1``, … for each of the table's."""
        from pyspark.sql import types as T  # a question is checked before there is a pyspark

        from ids.spark.spark_prepare import PANE

        types = {
            "bigint": T.LongType(),
            "double": T.DoubleType(),
            "string": T.StringType(),
            "boolean": T.BooleanType(),
        }
        fields = [T.StructField(PANE, T.LongType())]
        fields += [T.StructField(t.text, types[t.type]) for t in self.columns.values()]
        return store.read(pieces, T.StructType(fields))

    def facts(self) -> dict[str, Any]:
        """As JSON has them."""
        columns = [
            [name, typed.kind and typed.kind.value, typed.whole]
            for name, typed in self.columns.items()
        ]
        kept = asdict(self)
        return kept | {"columns": columns, _EMITTED: kept.pop("emitted_until")}

    @classmethod
    def of(cls, facts: dict[str, Any]) -> KeptRows:
        """From what ``facts`` gave."""
        columns = {
            name: Typed(f"c{number}", kind and Kind(kind), whole)
            for number, (name, kind, whole) in enumerate(facts["columns"])
        }
        kept = facts | {"columns": columns}
        return cls(emitted_until=kept.pop(_EMITTED), **kept)


T = TypeVar("T")

_TRIES = 5
_NAME = "retained"


class Current(NamedTuple):
    """The rows of the window at the last emits."""

    store: Store
    kept: KeptRows
    pieces: list[Piece]


def steadily(
    checkpoint: str | Path, read: Callable[[Current], T], session: SparkSession | None = None
) -> T:
    """What ``read`` makes of the kept rows; once more, if they were taken away meanwhile."""
    store = Store(files_at(checkpoint, session), session)
    for left in reversed(range(_TRIES)):
        number = None
        try:
            number, current = _current(checkpoint, store)
            with store.blaming():
                return read(current)
        except OSError:  # as CheckpointError and SourceError are
            moved = number is None or number not in store.manifests()
            if not (left and moved):
                raise
    raise AssertionError("the last try returns or raises")


def _current(checkpoint: str | Path, store: Store) -> tuple[int, Current]:
    """What is kept after the last whole batch; a clear error where there is nothing to ask."""
    manifest = store.latest()
    if manifest is None:
        if not store.files.entries("ids"):
            raise CheckpointError(
                f"{checkpoint} is no checkpoint; name the directory that a stream was started with"
            )
        raise StateError("the stream has emitted nothing yet; ask again when it has")
    facts = manifest.facts["step"].get(_NAME)
    if facts is None:
        raise StateError(f"the stream of {checkpoint} retains no panes; start it with retain=True")
    kept = KeptRows.of(facts)
    if kept.emitted_until is None or kept.expired is None:
        raise StateError("the stream has emitted nothing yet; ask again when it has")
    if kept.since is not None and kept.expired < kept.since:
        raise StateError(
            "the window still holds rows that came before they were kept; ask again when a whole "
            "window has passed since the stream was started with retain"
        )
    return manifest.batch, Current(store, kept, kept.inside(manifest.of(_NAME)))


@dataclass(frozen=True, slots=True)
class InstantPlan(SelectPlan):
    """The plan of a window whose rows are known: all of them in one pane, at one instant.

    ORDER BY is a column beside the table's own that holds this instant.

    read  the columns that the query over all instants would read; samples are drawn by them
    """

    read: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read, each once."""
        return self.read


@dataclass(frozen=True, slots=True)
class StreamQuestion:
    """What is asked of a stream's window; an estimate from ``sample`` rows, where it is given."""

    aggregate: str
    predicate: str
    sample: int | None = None
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checked_seed(self.seed))

    def planned(self, kept: KeptRows) -> InstantPlan:
        """Bind it to the columns that are kept and to what the stream's script registers."""
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
                "where": None,  # what it refuses was not kept
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
            raise ScriptError(f"{asked.function} of which measure?", asked.at, hint)
        condition, parts = parse_predicate(self.predicate), ("SHARE", "LIFT")
        sampled = None if self.sample is None else Approximate(self.sample, self.confidence)
        return Item(ItemKind.ATTRIBUTE, asked, condition, parts, sampled, "answer")


def check(checkpoint: str | Path, question: StreamQuestion) -> None:
    """Refuse what cannot be asked, as far as that is known without Spark."""
    if not is_remote(checkpoint):
        steadily(checkpoint, lambda current: question.planned(current.kept))


def answer_names(plan: SelectPlan) -> list[str]:
    """The columns of an answer behind its keys."""
    spread = ["error", "standard_error"] if plan.sampled else []
    return ["emit_at", "n", "value", "share", "lift", *spread]


def _refuse_clashes(plan: SelectPlan) -> None:
    for name in plan.partition_by:
        if name.lower() in answer_names(plan):
            raise ScriptError(
                f"PARTITION BY {name!r} clashes with a column of the answer",
                hint="rename the column, and start the stream anew",
            )
