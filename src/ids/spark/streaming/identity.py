"""Which stream a checkpoint belongs to: what must be the same when it is taken up again."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ids.errors import CheckpointError
from ids.model.rendering import render
from ids.plan import PlannedItem, SelectPlan
from ids.sink.writing import whole

if TYPE_CHECKING:
    from ids.spark.frames import Frame

__all__ = ["checkpoint_root", "claim", "claimed", "identity", "lock", "refuse_another"]

_VERSION = 1
_FILE = "stream"
_LOCK = "lock"


def identity(plan: SelectPlan, output: str, frame: Frame | None = None) -> dict[str, object]:
    """What a stream is, part by part; lateness and the like may change over its life.

    Without a ``frame`` (before Spark has started) the types of the columns are left out.
    """
    items = [
        [i.kind.value, i.game.name, i.measure, i.predicate, i.name, list(i.parts), *_sample(i)]
        for i in plan.items
    ]
    measures = ["*" if m is None else render(m) for m in plan.measures]
    script = [items, measures, [render(p) for p in plan.predicates]]
    where = None if plan.where is None else render(plan.where)
    types = frame and {name: frame.columns[name].type for name in sorted(plan.columns)}
    return {
        "version": _VERSION,
        "table": plan.table,
        "script": [*script, where, list(plan.partition_by), list(plan.order_by)],
        "window": repr(plan.window),
        "output": output,
        **({} if types is None else {"schema": types}),
        **({"seed": plan.seed} if plan.sampled else {}),
    }


def _sample(item: PlannedItem) -> list[float]:
    """What an item is sampled by; nothing of one that is not."""
    asked = item.approximate
    return [] if asked is None else [asked.size, asked.confidence]


def checkpoint_root(place: str | Path) -> Path:
    """The folder of a checkpoint; what is no folder is refused."""
    if "://" in str(place):
        raise CheckpointError(f"checkpoint {place} is no folder; name one the driver can write to")
    return Path(place).expanduser().absolute()


def claimed(root: Path) -> bool:
    """Whether a checkpoint is a stream's already."""
    return (root / _FILE).exists()


def claim(root: Path, stream: dict[str, object]) -> None:
    """Make the checkpoint this stream's own; refuse another's."""
    if claimed(root):
        refuse_another(root, stream)
        return
    place = root / _FILE
    try:
        with whole(place) as file:
            file.write(json.dumps(stream, indent=1).encode())
    except OSError as error:
        raise CheckpointError(f"cannot write checkpoint {place}: {error.strerror}") from error


def refuse_another(root: Path, stream: dict[str, object]) -> None:
    """Refuse the checkpoint of a stream that differs in one of these parts."""
    place = root / _FILE
    try:
        known = json.loads(place.read_bytes())
    except ValueError:
        raise CheckpointError(f"checkpoint {place} was altered; start anew elsewhere") from None
    # through JSON and back, as what is kept went
    differing = [
        part for part, value in json.loads(json.dumps(stream)).items() if known.get(part) != value
    ]
    if differing:
        raise CheckpointError(
            f"checkpoint {root.parent} belongs to a stream with another {' and '.join(differing)}; "
            "give a new checkpoint directory, or go on with what it was made for"
        )


def lock(root: Path) -> BinaryIO:
    """Keep other processes out for as long as the file that is returned is open."""
    file = (root / _LOCK).open("wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise CheckpointError(
            f"checkpoint {root.parent} is in use by another stream; stop that one first"
        ) from None
    return file
