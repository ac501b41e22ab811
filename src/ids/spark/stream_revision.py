"""A script that was changed since its stream was started: what may change, and what may not.

Items may come, go, change places and get other names. What a new item needs is kept from then on;
until a window holds nothing older, its columns are NULL. A column that stays keeps its meaning.
Needs no pyspark.

Which stream a checkpoint belongs to: what must be the same when it is taken up again.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from ids.errors import CheckpointError
from ids.model import CountWindow, TimeWindow, render, span
from ids.plan import PlannedItem, SelectPlan
from ids.sink import Files, LocalFiles, Readable
from ids.spark.stream_store import FORMAT, Manifests, altered, shown, unknown_format

if TYPE_CHECKING:
    from ids.spark.frame import Frame

_GO_ON = "give a new checkpoint directory, or go on with what it was made for"


@dataclass(frozen=True, slots=True)
class ScriptItem:
    """An item: the name of its column, what it asks for, and the columns beside it.

    measure    its measure, by number
    predicate  its predicate, by number
    """

    name: str
    asks: str
    beside: tuple[str, ...]
    measure: int
    predicate: int | None

    @classmethod
    def of(cls, item: PlannedItem, plan: SelectPlan) -> ScriptItem:
        """An item of a plan."""
        measure = plan.measures[item.measure]
        asks = f"{item.game.name}({'*' if measure is None else render(measure)})"
        if item.predicate is not None:
            sample, asked = "", item.approximate
            if asked is not None:
                sample = f" APPROXIMATE USING RESERVOIR SAMPLE {asked.size}"
                sample += f" CONFIDENCE {asked.confidence!r}"
            condition = render(plan.predicates[item.predicate])
            asks = f"{item.kind.value}({asks}, {condition}{sample})"
        beside = [part.lower() for part in item.parts]
        beside += ["error", "mechanism"] if item.approximate is not None else []
        return cls(item.name, asks, tuple(beside), item.measure, item.predicate)


@dataclass(frozen=True, slots=True)
class Script:
    """What of a stream's script may change; part of every manifest.

    measures    their texts, by number
    degrees     how high the sums of each go
    predicates  their texts, by number
    reads       the columns that are read, in the order in which samples are drawn by them
    types       of the columns that are, or were, read; empty where they are not known yet
    seed        of samples; None where none is drawn
    """

    items: tuple[ScriptItem, ...]
    measures: tuple[str, ...]
    degrees: tuple[int, ...]
    predicates: tuple[str, ...]
    reads: tuple[str, ...]
    types: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None

    @classmethod
    def of(cls, plan: SelectPlan, frame: Frame | None = None) -> Script:
        """That of a plan; without a ``frame`` (before Spark has started) without types."""
        return cls(
            tuple(ScriptItem.of(item, plan) for item in plan.items),
            tuple("*" if measure is None else render(measure) for measure in plan.measures),
            plan.degrees,
            tuple(map(render, plan.predicates)),
            plan.columns,
            {} if frame is None else {name: frame.columns[name].type for name in plan.columns},
            plan.seed if plan.sampled else None,
        )

    def facts(self) -> dict[str, Any]:
        """As JSON has them."""
        return asdict(self)

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Script:
        """From what ``facts`` gave."""
        items = [ScriptItem(**i | {"beside": tuple(i["beside"])}) for i in facts["items"]]
        names = ("measures", "degrees", "predicates", "reads")
        lists = {name: tuple(facts[name]) for name in names}
        return cls(tuple(items), **lists, types=facts["types"], seed=facts["seed"])

    @property
    def columns(self) -> dict[str, str]:
        """The columns of its emits, and what each means."""
        return {
            name: meaning
            for item in self.items
            for name, meaning in (
                (item.name, item.asks),
                *((f"{item.name}_{part}", f"{part} of {item.asks}") for part in item.beside),
            )
        }

    @property
    def asked(self) -> tuple[tuple[int, ...], ...]:
        """For every measure, the predicates that are asked of it."""
        return tuple(
            tuple(
                sorted(
                    {i.predicate for i in self.items if i.measure == n and i.predicate is not None}
                )
            )
            for n in range(len(self.measures))
        )


@dataclass(frozen=True, slots=True)
class Revision:
    """From one script to another of the same stream; numbers are those of the new one."""

    old: Script
    new: Script

    @property
    def moves(self) -> bool:
        """Whether sums that are kept have other numbers now, or are others."""
        return any(
            getattr(self.old, name) != getattr(self.new, name)
            for name in ("measures", "degrees", "predicates", "asked")
        )

    def measure(self, number: int) -> int | None:
        """The number that a measure had; None if it is new."""
        return _number(self.old.measures, self.new.measures[number])

    def predicate(self, number: int) -> int | None:
        """The number that a predicate had; None if it is new."""
        return _number(self.old.predicates, self.new.predicates[number])

    def source(
        self, number: int, predicate: int | None, degree: int
    ) -> tuple[int, int | None] | None:
        """Where sums up to a degree were kept: the old measure and predicate; None: nowhere."""
        measure = self.measure(number)
        if measure is None or self.old.degrees[measure] < degree:
            return None
        if predicate is None:
            return measure, None
        held = self.predicate(predicate)
        return (measure, held) if held in self.old.asked[measure] else None


class Begin(NamedTuple):
    """From which instant on (in slides) windows have sums whole that were not always kept."""

    measure: int
    predicate: int | None
    degree: int
    instant: int


class Begins(tuple[Begin, ...]):
    """Those of all sums that older scripts did not keep; other sums are whole at every instant."""

    __slots__ = ()

    @classmethod
    def of(cls, facts: Iterable[Sequence[Any]]) -> Begins:
        """As JSON has them."""
        return cls(Begin(*each) for each in facts)

    def begin(self, measure: int, predicate: int | None, degree: int) -> int | None:
        """From which instant on what takes these sums can be told; None: from the first."""
        found = [
            one.instant
            for one in self
            if one.measure == measure
            and one.predicate in (None, predicate)
            and one.degree <= degree
        ]
        return max(found, default=None)

    def after(self, instant: int) -> Begins:
        """Those that still lie ahead."""
        return Begins(one for one in self if one.instant > instant)

    def revised(self, revision: Revision, fresh: int | None) -> Begins:
        """For another script; ``fresh`` is from when on sums are whole that are kept from now on.

        None: there are no rows that such sums miss.
        """
        new, found = revision.new, []
        for number, degree in enumerate(new.degrees):
            for predicate, up_to in product((None, *new.asked[number]), range(degree + 1)):
                source = revision.source(number, predicate, up_to)
                begin = fresh if source is None else self.begin(*source, up_to)
                if begin is not None:
                    found.append(Begin(number, predicate, up_to, begin))
        return Begins(found)


def revised(files: Readable, now: Script, plan: SelectPlan, fixed: str | None) -> Script:
    """The script of a stream that is taken up again, or begun.

    One that the checkpoint cannot go on with is refused. ``fixed`` names an output whose columns
    cannot change.
    """
    manifest = Manifests(files).latest()
    if manifest is None:
        return now
    known, place = Script.read(manifest.facts["script"]), shown(files)
    for name, type_ in now.types.items():
        if known.types.get(name, type_) != type_:
            raise _refusal(place, f"a stream in which {name!r} is {known.types[name]}, not {type_}")
    if None not in (known.seed, now.seed) and known.seed != now.seed:
        raise _refusal(place, "a stream with another seed")
    before = known.columns
    for name, meaning in now.columns.items():
        if before.get(name, meaning) != meaning:
            raise CheckpointError(
                f"column {name!r} of checkpoint {place} is {before[name]}, the script makes it "
                f"{meaning}; give it another alias"
            )
    if fixed is not None and list(before) != list(now.columns):
        raise CheckpointError(
            f"the columns of the script have changed, the header of {fixed} cannot; go on with "
            "the items it was made for, or start anew with an output that is a directory"
        )
    if isinstance(plan.window, CountWindow):
        _refuse_rows(place, Revision(known, now))
    # what is read no more may be read again
    return replace(now, types={**known.types, **now.types})


def _refuse_rows(place: str, revision: Revision) -> None:
    """Refuse what the rows that a count window keeps do not tell."""
    new = revision.new
    lacking = [text for n, text in enumerate(new.predicates) if revision.predicate(n) is None]
    for number, text in enumerate(new.measures):
        known = revision.source(number, None, min(new.degrees[number], 1))
        if known is None and text != "*":  # to count rows takes nothing of them
            lacking.append(text)
    if new.seed is not None and (revision.old.seed, revision.old.reads) != (new.seed, new.reads):
        lacking.append("APPROXIMATE")
    if lacking:
        raise _refusal(
            place, f"a window of rows, which are kept without {lacking[0]}: it cannot be added"
        )


def _refusal(place: str, what: str) -> CheckpointError:
    return CheckpointError(f"checkpoint {place} belongs to {what}; {_GO_ON}")


def _number(texts: tuple[str, ...], text: str) -> int | None:
    return texts.index(text) if text in texts else None


_FOLDER = "ids"
_FILE = "stream"
_LOCK = "lock"


def identity(plan: SelectPlan, output: str) -> dict[str, object]:
    """What a stream is for all its life, part by part; the rest of its script may change."""
    where = None if plan.where is None else render(plan.where)
    return {
        "version": FORMAT,
        "table": plan.table,
        "window": window_text(plan.window),
        "WHERE": where,
        "PARTITION BY": list(plan.partition_by),
        "ORDER BY": list(plan.order_by),
        "output": output,
    }


def window_text(window: CountWindow | TimeWindow) -> str:
    """A window as the script writes it.

    >>> window_text(CountWindow(100, 10)), window_text(TimeWindow("1 minute", "10 seconds"))
    ('ROWS 100 PRECEDING SLIDE 10 ROWS', 'RANGE 1 minute PRECEDING SLIDE 10 seconds')
    """
    if isinstance(window, CountWindow):
        return f"ROWS {window.size} PRECEDING SLIDE {window.slide} ROWS"
    return f"RANGE {span(window.duration)} PRECEDING SLIDE {span(window.slide or 0)}"


def claimed(files: Files) -> bool:
    """Whether a checkpoint is a stream's already."""
    return any(entry.name == _FILE for entry in files.entries(_FOLDER))


def claim(files: Files, stream: dict[str, object]) -> None:
    """Make the checkpoint this stream's own; refuse another's."""
    if claimed(files):
        refuse_another(files, stream)
        return
    try:
        files.write(f"{_FOLDER}/{_FILE}", json.dumps(stream, indent=1).encode())
    except OSError as error:
        fault = error.strerror or str(error)
        raise CheckpointError(f"cannot write checkpoint {shown(files)}: {fault}") from error


def stream_at(files: Readable) -> dict[str, Any] | None:
    """What the stream of a checkpoint is; None if it is no stream's yet."""
    name = f"{_FOLDER}/{_FILE}"
    try:
        known: dict[str, Any] = json.loads(files.read(name))
        format_ = known["version"]
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError):
        raise altered(files, name) from None
    if format_ != FORMAT:
        raise unknown_format(files, format_)
    return known


def refuse_another(files: Readable, stream: dict[str, object]) -> None:
    """Refuse the checkpoint of a stream that differs in one of these parts."""
    known = stream_at(files) or {}
    differing = [part for part, value in stream.items() if known.get(part) != value]
    if differing:
        raise CheckpointError(
            f"checkpoint {shown(files)} belongs to a stream with another "
            f"{' and '.join(differing)}; give a new checkpoint directory, or go on with what it "
            "was made for"
        )


def lock(files: Files) -> BinaryIO | None:
    """Keep other processes of this machine out for as long as the file that is returned is open.

    Elsewhere two streams meet in Spark's own log, which lets one of them go on.
    """
    if not isinstance(files, LocalFiles):
        return None
    file = (files.path / _FOLDER / _LOCK).open("wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise CheckpointError(
            f"checkpoint {shown(files)} is in use by another stream; stop that one first"
        ) from None
    return file
