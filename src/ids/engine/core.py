"""The engine's heart: a delta comes in, summaries and the retained window follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from ids.engine.contents import contents
from ids.engine.incoming import Incoming, Schema
from ids.engine.sampling import STRATUM, Sampler
from ids.errors import StateError
from ids.model.expression import Expression
from ids.model.scale import MAX_ROWS, Scale
from ids.state.enumerated import Enumerated
from ids.state.index import Index
from ids.state.refined import Refined
from ids.state.retained import TAG, TIME, Retained
from ids.state.sample import SEQUENCE
from ids.state.sliding import Array
from ids.state.summaries import Summaries

if TYPE_CHECKING:
    from ids.engine.provisional import Provisional

__all__ = ["CONTENT", "Core", "Signed", "Words"]

Words = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# A hash of each row, where an upstream deletes rows by what they hold.
CONTENT = "content"

_EVERYONE = np.zeros(0, np.bool_)


class Signed:
    """Rows ready to be added or taken away: tags, and each measure's digits and players."""

    def __init__(self, tags: Array, digits: Sequence[Words], players: Sequence[Bools]) -> None:
        self.tags = tags
        self.digits = list(digits)
        self.players = list(players)

    def __len__(self) -> int:
        return len(self.tags)


class Core:
    """Summaries of every measure (the first counts rows), one membership, one retained window.

    ``retained`` is None for a changelog that keeps no tuple; it holds the raw columns only where
    ``raw`` asks for them. ``index`` and ``sampler`` follow the rows inside, where there are any to
    follow them, and so do the sums of ``provisional`` predicates, by name. ``rounded`` are the
    measures whose scale rounds some row inside, ``relieved`` those of which a row that needed the
    top digit has left. Where an upstream says what leaves (``changelog``) retained rows carry a
    hash of their contents, and stand in no order but that of their times, if they have any.
    """

    def __init__(
        self, schema: Schema, predicates: Mapping[str, Expression], *, retain: bool, raw: bool
    ) -> None:
        self.schema = schema
        self.predicates = dict(predicates)
        self.membership: Refined | Enumerated = Refined(predicates)
        self.retained = Retained(schema.kinds if raw else {}) if retain else None
        self.measures = [Summaries(Scale(0, 0, 0), len(predicates))]
        self.index: Index | None = None
        self.sampler: Sampler | None = None
        self.provisional: dict[str, Provisional] = {}
        self.rows = 0
        self.rounded: set[int] = set()
        self.relieved: set[int] = set()
        self.changelog = False

    @property
    def has_raw(self) -> bool:
        """Whether a condition nobody registered can still be put to the rows inside."""
        return self.retained is not None and bool(self.retained.kinds)

    def signed(self, incoming: Incoming) -> Signed:
        """Rows that come in, ready to be added."""
        digits = [_none(incoming.table.rows)]
        players = [_EVERYONE]
        for summaries, one in zip(self.measures[1:], incoming.measures, strict=True):
            digits.append(summaries.cut(one.values))
            players.append(_EVERYONE if one.players is None else one.players)
        return Signed(self.membership.assign(incoming.table), digits, players)

    def inside(self, rows: slice | npt.NDArray[np.int64] = slice(None)) -> Signed:
        """Rows of the retained window, ready to be taken away or counted again."""
        assert self.retained is not None
        tags = self.retained.rows[TAG][rows]
        each = [self.playing(m) for m in range(1, len(self.measures))]
        return Signed(
            tags,
            [_none(len(tags)), *(digits[rows] for digits, _ in each)],
            [_EVERYONE, *(players[rows] for _, players in each)],
        )

    def playing(self, measure: int) -> tuple[Words, Bools]:
        """The digits of one measure on every row inside, and which rows take part."""
        assert self.retained is not None
        if not measure:
            return _none(len(self.retained)), _EVERYONE
        kept = self.retained.rows
        digits, players = kept[f"digits {measure}"], kept[f"players {measure}"]
        return cast(Words, digits), cast(Bools, players)

    def deltas(self, signed: Signed, sign: int, into: list[Words] | None = None) -> list[Words]:
        """Signed rows as one delta a measure, added to ``into`` where given."""
        return [
            self.membership.tally(
                summaries, signed.tags, signed.digits[m], signed.players[m], sign,
                None if into is None else into[m],
            )
            for m, summaries in enumerate(self.measures)
        ]  # fmt: skip

    def block(self, incoming: Incoming, signed: Signed) -> dict[str, Array]:
        """Rows as the retained window will keep them, if there is one; may refuse them."""
        if self.retained is None:
            return {}
        block = self.retained.block(
            incoming.table, signed.tags, signed.digits, signed.players, incoming.times
        )
        if self.changelog:
            block[CONTENT] = contents(incoming.table, list(self.retained.kinds), 0)
        if self.sampler is not None:
            self.sampler.refuse(incoming)
        return block

    def enter(
        self, incoming: Incoming, signed: Signed, block: Mapping[str, Array],
        into: list[Words] | None = None,
    ) -> list[Words]:  # fmt: skip
        """Rows come in; returns their deltas, to be committed once expiry is known."""
        if self.sampler is not None:
            block = {**block, **self.sampler.columns(incoming.table)}
        if self.retained is not None:
            if TIME in block and len(self.retained):
                self._merge(self.retained, block)
            else:
                self.retained.rows.append(block)
        if self.sampler is not None:
            self.sampler.enter(incoming, block[SEQUENCE].view(np.int64))
        for provisional in self.provisional.values():
            provisional.add(self, incoming.table, signed, 1)
        self.rows += len(signed)
        return self.deltas(signed, 1, into)

    def _merge(self, retained: Retained, block: Mapping[str, Array]) -> None:
        """Rows with a time go where they belong; those behind them move."""
        if self.index is not None and len(block[TIME]):
            first = block[TIME].min()
            self.index.unsettle(int(np.searchsorted(retained.rows[TIME], first, side="right")))
        retained.rows.merge(block, TIME)

    def refuse_too_many(self, coming: int) -> None:
        """Before anything changes: so many rows more must still be summed exactly."""
        if self.rows + coming > MAX_ROWS:
            raise StateError(
                f"a window of more than {MAX_ROWS:,} rows cannot be summed exactly; "
                "choose a shorter window. Nothing changed"
            )

    def commit(self, deltas: list[Words] | None, expire: int = 0) -> None:
        """Take deltas in, together with the expiry of the oldest ``expire`` rows: one slide."""
        if expire:
            assert self.retained is not None
            deltas = self._leaving(slice(0, expire), deltas)
            self._drop_front(self.retained, expire)
            self.rows -= expire
        if deltas is not None:
            self.membership.commit(self.measures, deltas)
        if self.retained is None:
            return
        self.retained.forget()  # not before: codes of words hold for rows on their way in
        if self.index is not None:
            self.index.follow(self.retained)

    def _drop_front(self, retained: Retained, count: int) -> None:
        left = None if self.sampler is None else retained.rows[STRATUM][:count].copy()
        retained.rows.drop_front(count)
        if self.sampler is not None and left is not None:
            self.sampler.expire(retained, left)

    def _leaving(
        self, rows: slice | npt.NDArray[np.int64], into: list[Words] | None = None
    ) -> list[Words]:
        """Deltas of rows inside that leave."""
        gone = self.inside(rows)
        for provisional in self.provisional.values():
            assert self.retained is not None
            provisional.add(self, self.retained.table().take(rows), gone, -1)
        for number in self.rounded:
            if gone.digits[number][:, 0].any():
                self.relieved.add(number)
        return self.deltas(gone, -1, into)

    def leave(self, going: Incoming, places: npt.NDArray[np.int64] | None) -> list[Words]:
        """Deltas of the rows that an upstream deletes, which stood at these places."""
        self.rows -= going.table.rows
        if places is None:
            return self.deltas(self.signed(going), -1)
        assert self.retained is not None
        deltas = self._leaving(places)
        if self.changelog and TIME not in self.retained.rows:
            self.retained.rows.remove(places)
        else:
            keep = np.ones(len(self.retained), np.bool_)
            keep[places] = False
            self.retained.rows.keep(keep)
        if self.index is not None and len(places):
            self.index.unsettle(int(places.min()))
        if self.sampler is not None:
            self.sampler.redraw(self.retained)
        return deltas


def _none(rows: int) -> Words:
    """The digits of the first measure, which only counts rows."""
    return np.zeros((rows, 1), np.int64)
