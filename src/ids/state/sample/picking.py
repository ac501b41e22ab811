"""From kept rows to a drawing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ids.model.table import ColumnData, Kind, Table
from ids.state.sample.candidates import PRIORITY, Candidates
from ids.state.sample.drawing import Drawing
from ids.state.sample.selecting import extremes, sampled, sampled_by_stratum
from ids.state.sample.strata import Strata

__all__ = ["Picking"]

Places = npt.NDArray[np.int64]

_NONE = np.zeros(0, np.int64)
_EMPTY = {Kind.NUMBER: np.float64, Kind.TEXT: np.int32, Kind.BOOLEAN: np.bool_, Kind.TIME: np.int64}


class Picking:
    """The kept rows of a window, looked at for the sake of one measure."""

    def __init__(self, rows: Candidates, strata: Strata, measure: int) -> None:
        self._rows = rows
        self._strata = strata
        self._inside = int(strata.population.sum())
        count = len(rows)
        self._value = np.zeros(count, np.float64)
        self._plays = np.ones(count, np.bool_)
        if measure and count:
            self._value, self._plays = rows.measure(measure)

    def by_priority(self, size: int, whole: int) -> Drawing:
        """Without replacement: ``whole`` rows of either extreme, ``size`` of the rest."""
        stratum, population = self._rows.stratum, self._strata.population
        if not len(population) or int(population.max()) <= size + 2 * whole:
            return self._complete()
        held = extremes(self._value, self._plays, whole)
        priority = self._rows.rows[PRIORITY].view(np.float64)
        if self._strata.columns:
            drawn = sampled_by_stratum(priority, stratum, len(population), held.mask, size)
        else:
            drawn = sampled(priority, held.mask, size)
        rest = population - np.bincount(stratum[held.mask], minlength=len(population))
        parts = np.flatnonzero(rest)
        counts = np.bincount(stratum[drawn], minlength=len(population))[parts]
        starts = np.concatenate([[0], np.cumsum(counts)])
        first = np.flatnonzero(held.mask)
        return self._drawing(
            np.concatenate([first, drawn]), len(first), starts, parts, rest[parts], held.low,
            held.high,
        )  # fmt: skip

    def independent(self, places: Places) -> Drawing:
        """With replacement: these rows, some perhaps twice."""
        if not self._inside:
            return self._complete(replacement=True)
        held = extremes(self._value, self._plays, 0)
        return self._drawing(
            places, 0, np.array([0, len(places)]), np.zeros(1, np.int64),
            np.array([self._inside]), held.low, held.high, replacement=True,
        )  # fmt: skip

    def _complete(self, *, replacement: bool = False) -> Drawing:
        """Every row of the window."""
        everyone = np.arange(len(self._rows))
        assert len(everyone) == self._inside
        return self._drawing(
            everyone, len(everyone), np.zeros(1, np.int64), _NONE, _NONE, 0.0, 0.0, complete=True,
            replacement=replacement,
        )  # fmt: skip

    def _drawing(
        self,
        places: Places,
        whole: int,
        starts: Places,
        parts: Places,
        population: Places,
        low: float,
        high: float,
        *,
        complete: bool = False,
        replacement: bool = False,
    ) -> Drawing:
        return Drawing(
            rows=self._table().take(places),
            whole=whole,
            starts=starts,
            population=population,
            value=self._value[places],
            plays=self._plays[places],
            low=low,
            high=high,
            complete=complete,
            replacement=replacement,
            strata=self._strata.table(parts),
        )

    def _table(self) -> Table:
        """The kept rows' columns; columns without a row before the first came."""
        if len(self._rows):
            return self._rows.table()
        word = np.array([""], dtype=object)
        columns = {
            name: ColumnData(
                kind, np.zeros(0, _EMPTY[kind]), None, word if kind is Kind.TEXT else None
            )
            for name, kind in self._rows.kinds.items()
        }
        return Table(columns, 0)
