"""Deletes: which rows an upstream takes back, and a refusal where they were never there.

A row is what its columns say. One that is deleted is a row inside, the oldest of several alike, or
else one that was inserted by the same call: of a changelog's batch the net change counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ids.engine.contents import contents
from ids.engine.core import CONTENT, Core, Words
from ids.engine.incoming import Incoming
from ids.errors import StateError
from ids.kernels.hashing import places_among
from ids.kernels.scatter import add_rows, touched_rows
from ids.model.table import ColumnData, Kind, Table
from ids.state.refined import Refined
from ids.state.retained import Retained
from ids.state.scaling import within
from ids.state.summaries import Summaries

__all__ = ["Deleted", "find_deleted"]

Places = npt.NDArray[np.int64]

_SHOWN = 6  # columns of a row that an error names it by
_NONE = np.zeros(0, np.int64)


class Deleted(NamedTuple):
    """What becomes of the rows that an upstream deletes.

    going   those that were inside
    places  where these stand; None where no row is kept
    undone  which rows of the same call they take back instead
    """

    going: Incoming
    places: Places | None
    undone: Places


def find_deleted(
    core: Core, going: Incoming, coming: Incoming | None, where: Callable[[int], str]
) -> Deleted:
    """Find each row, inside or in the same call; a clear error where there is none.

    ``where`` names a row of the deletes. Nothing changes.
    """
    if core.retained is None:
        return _trusted(core, going, coming)
    if not core.has_raw:
        raise StateError(
            "this engine does not retain its rows, so it cannot tell which one a delete means; "
            "make it with retain=True"
        )
    places = _find(core.retained, going.table)
    missing = np.flatnonzero(places < 0)
    undone = _NONE
    if len(missing):
        undone = _find_among(core, going.table.take(missing), coming)
        if (undone < 0).any():
            row = int(missing[np.flatnonzero(undone < 0)[0]])
            raise StateError(
                f"deleted {where(row)} ({_shown(going.table, row)}) is not inside the window; "
                "the batch was refused, nothing changed"
            )
    inside = places >= 0
    return Deleted(going.take(np.flatnonzero(inside)), places[inside], undone)


def _find(retained: Retained, table: Table) -> Places:
    """Where these rows stand inside; -1 where they do not."""
    found = np.full(table.rows, -1, np.int64)
    if not len(retained):
        return found
    wanted, held = retained.typed(table)
    wanted = wanted.take(held)
    names = list(retained.kinds)
    if CONTENT in retained.rows:
        hashes = retained.rows[CONTENT].view(np.int64)
    else:
        hashes = contents(retained.table(), names, 0)
    found[held] = retained.find(wanted, places_among(hashes, contents(wanted, names, 0)))
    return found


def _find_among(core: Core, table: Table, coming: Incoming | None) -> Places:
    """Which rows that the same call inserts equal these."""
    if coming is None or not coming.table.rows:
        return np.full(table.rows, -1, np.int64)
    scratch = Retained(core.schema.kinds)
    tags = np.zeros(coming.table.rows, np.uint32)
    scratch.rows.append(scratch.block(coming.table, tags, (), (), None))
    return _find(scratch, table)


def _trusted(core: Core, going: Incoming, coming: Incoming | None) -> Deleted:
    """Without rows to look at, deletes that leave possible sums are taken for rows inside."""
    if _leaves_possible_sums(core, going):
        return Deleted(going, None, _NONE)
    undone = _find_among(core, going.table, coming)
    rest = going.take(np.flatnonzero(undone < 0))
    if rest.table.rows == going.table.rows or not _leaves_possible_sums(core, rest):
        raise StateError(
            "the deletes hold a row that is not inside the window (which one, this engine cannot "
            "say: it keeps no rows); the batch was refused, nothing changed"
        )
    return Deleted(rest, None, undone[undone >= 0])


def _leaves_possible_sums(core: Core, going: Incoming) -> bool:
    """Whether the sums without these rows are still those of some rows.

    A row that was never there may show as a value that no scale has had to hold, or as sums that no
    rows have.
    """
    if not going.table.rows:
        return True
    if going.table.rows > core.rows:
        return False
    for summaries, one in zip(core.measures[1:], going.measures, strict=True):
        scale = summaries.scale
        if scale.digits and not within(one.values, one.largest, scale):
            return False
    deltas = core.deltas(core.signed(going), -1)
    after = [_after(core, s, delta) for s, delta in zip(core.measures, deltas, strict=True)]
    if isinstance(core.membership, Refined):
        core.membership.reclaim(core.measures[0])  # atoms that only strangers would be in
        touched = touched_rows(deltas[0])
        after = [sums[touched] for sums in after]
    return all(
        _possible(s, sums, after[0][:, 0]) for s, sums in zip(core.measures, after, strict=True)
    )


def _after(core: Core, summaries: Summaries, delta: Words) -> Words:
    """The sums as they would be: of each atom, or of the window and of each predicate."""
    if isinstance(core.membership, Refined):
        summaries.reserve(len(delta))
        after = summaries.atoms[: len(delta)].copy()
    else:
        after = np.concatenate([summaries.window.reshape(1, -1), summaries.marginals])
    add_rows(after, delta, summaries.scale.layout)
    return after


def _possible(summaries: Summaries, after: Words, rows: Words) -> bool:
    """Whether each of these could be the sums of so many players among so many rows."""
    players = after[:, 0]
    if (players < 0).any() or (players > rows).any():
        return False
    return all(_has_a_spread(*summaries.exact(one)) for one in after)


def _has_a_spread(count: int, sums: Sequence[int]) -> bool:
    """No rows have no sums, and (Σ q)² is at most m · Σ q² (Cauchy and Schwarz)."""
    if not count:
        return not any(sums)
    return len(sums) < 2 or sums[0] ** 2 <= count * sums[1]


def _shown(table: Table, row: int) -> str:
    """A row by its columns, or the first of them."""
    names = list(table.columns)
    shown = [f"{name} = {_value(table.columns[name], row)}" for name in names[:_SHOWN]]
    return ", ".join([*shown, "…"] if len(names) > _SHOWN else shown)


def _value(column: ColumnData, row: int) -> str:
    if column.valid is not None and not column.valid[row]:
        return "NULL"
    value = column.values[row].item()
    if column.dictionary is not None:
        return repr(column.dictionary[value])
    return str(np.datetime64(value, "us")) if column.kind is Kind.TIME else str(value)
