"""The sample of a sliding window: rows come in, rows leave, a sample is drawn at any moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ids.errors import ScriptError, StateError
from ids.model.sampling import Sampling, extremes_of
from ids.model.table import Kind, Table
from ids.model.window import CountWindow, TimeWindow
from ids.state.retained import TAG
from ids.state.sample.candidates import Candidates
from ids.state.sample.chained import Chains
from ids.state.sample.drawing import Drawing
from ids.state.sample.marking import (
    ByChains,
    ByCopies,
    ByPriority,
    Columns,
    Extremes,
    Independent,
    Marking,
)
from ids.state.sample.picking import Picking
from ids.state.sample.strata import Strata
from ids.state.sliding import Array

__all__ = ["WindowSample"]

Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


class WindowSample:
    """Candidates for a uniform sample of the window, and its rows of extreme values.

    Measure 0 is COUNT(*); ``values[m - 1]`` and ``players[m - 1]`` are those of measure m. Window
    order is (time, sequence). What is drawn depends on the seed and on the rows inside alone, not
    on how they were cut into batches; with replacement from a count window also on those before.

    O(1) amortised a row, whatever the size r; r + r ln(N / r) rows are kept of N, times a constant
    (values that only fall or only rise keep more: each is then the largest of those yet to leave).
    """

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        measures: int,
        sampling: Sampling,
        window: CountWindow | TimeWindow,
    ) -> None:
        self.sampling, self.window = sampling, window
        self._measures = measures
        whole = sampling.taken_whole if measures else 0
        self._strata = Strata(sampling.strata, kinds)
        self._rows = Candidates(kinds)
        self._extremes = Extremes(measures, max(1, whole))  # one of each is the window's range
        self._chains: Chains | None = None
        self._marking: Marking
        self._copies: Independent | None = None
        if not sampling.replacement:
            kept = sampling.size + 2 * whole
            self._marking = ByPriority(kept, sampling.seed, self._strata)
        elif isinstance(window, CountWindow):
            self._chains = Chains(sampling.size, window.size, sampling.seed)
            self._marking = self._copies = ByChains(self._chains)
        else:
            self._marking = self._copies = ByCopies(sampling.size, sampling.seed)
        self._newest: int | None = None
        self._given: tuple[Table, Codes] | None = None
        self._drawn: dict[tuple[int, int], Drawing] = {}

    def strata_of(self, table: Table) -> Codes:
        """The stratum of each row as a code, all 0 without strata; to be entered before others."""
        codes = self._strata.codes(table)
        self._given = (table, codes)
        return codes

    def refuse(self, table: Table, times: npt.NDArray[np.int64] | None) -> None:
        """Before anything changes: rows out of order, or of types that do not go together."""
        if times is not None and len(times) and self._chains is not None:
            self._in_order(times)
        self._rows.agree(table)

    def enter(
        self,
        table: Table,
        values: Sequence[npt.NDArray[np.float64]],
        players: Sequence[Mask | None],
        times: npt.NDArray[np.int64] | None,
        sequence: npt.NDArray[np.int64],
    ) -> None:
        """Rows came in: ascending in window order, though perhaps older than some inside."""
        if not table.rows:
            return
        self._drawn.clear()
        if times is not None and self._chains is not None:
            self._in_order(times)
            self._newest = int(times[-1])
        known = self._given is not None and self._given[0] is table
        stratum = self._given[1] if known and self._given else self._strata.codes(table)
        self._given = None
        columns = {
            TAG: stratum,
            **self._marking.columns(sequence),
            **self._extremes.columns(values, players),
        }
        places = self._early(columns)
        self._strata.enter(stratum)
        if places is not None:
            table = table.take(places)
            times = None if times is None else times[places]
            columns = {name: column[places] for name, column in columns.items()}
        if table.rows:
            self._rows.add(table, times, columns)
        if self._rows.crowded:
            self._rows.sweep(self._mark(self._rows.rows.__getitem__))

    def _in_order(self, times: npt.NDArray[np.int64]) -> None:
        """Chains know the order of arrival alone: refuse any other."""
        if self._newest is not None and times[0] < self._newest:
            raise StateError(
                "rows out of order: a sample with replacement of a count window takes them as "
                "they arrive; leave replacement out. Nothing changed"
            )

    def _early(self, columns: Mapping[str, Array]) -> npt.NDArray[np.intp] | None:
        """The rows of a large batch that outlive its end; None: all of them may as well be kept.

        Chains say at once which rows they take, so there the rest is never kept.
        """
        if len(columns[TAG]) <= self._rows.limit and self._chains is None:
            return None
        return np.flatnonzero(self._mark(columns.__getitem__))

    def _mark(self, rows: Columns) -> Mask:
        keep = self._marking.mark(rows)
        self._extremes.mark(rows, keep)
        return keep

    def expire(self, oldest: tuple[int, int] | None, left: Codes) -> None:
        """Rows before ``oldest`` = (time or 0, sequence) left, of these strata; None: all did."""
        self._drawn.clear()
        if oldest is None:
            self._strata.empty()
            self._rows.empty()
            if self._chains is not None:
                self._chains.begin()
            return
        self._strata.leave(left)
        self._rows.cut(*oldest)

    def clear(self) -> None:
        """Let go of everything; the rows inside may be entered again, in window order."""
        self.expire(None, np.zeros(0, np.int32))
        self._newest = None

    def drawn(self, measure: int, size: int | None = None) -> Drawing:
        """A sample for questions about a measure: ``size`` rows, or as many as are kept."""
        kept = self.sampling.size
        asked = kept if size is None else size
        if not 1 <= asked <= kept:
            raise ScriptError(
                f"a sample of {asked:,} rows; {kept:,} are kept",
                hint=f"ask for 1 to {kept:,}, or keep more with Sampling(size=…)",
            )
        found = self._drawn.get((measure, asked))
        if found is None:
            picking = Picking(self._rows, self._strata, measure)
            if self._copies is not None:
                heads = self._copies.heads(self._rows.rows.__getitem__, len(self._rows))
                found = picking.independent(heads[:asked])
            else:
                found = picking.by_priority(asked, self._whole(measure, asked))
            self._drawn[measure, asked] = found
        return found

    def _whole(self, measure: int, size: int) -> int:
        if measure == 0:
            return 0
        declared = self.sampling.extremes
        return extremes_of(size) if declared is None else declared

    @property
    def parts(self) -> int:
        """How many strata have rows inside; 1 where there are none."""
        return int(np.count_nonzero(self._strata.population)) if self._strata.columns else 1

    @property
    def nbytes(self) -> int:
        """Bytes held: rows, their text, counts of strata, chains."""
        chains = 0 if self._chains is None else self._chains.nbytes
        return self._rows.nbytes + self._strata.nbytes + chains

    def facts(self) -> dict[str, Any]:
        """What a checkpoint says besides arrays."""
        return {
            "dictionaries": self._rows.dictionaries(),
            "limit": self._rows.limit,
            "newest": self._newest,
            "strata": self._strata.facts(),
            "chains": None if self._chains is None else self._chains.facts(),
        }

    def arrays(self) -> dict[str, Array]:
        """What a checkpoint keeps."""
        rows = {f"row {name}": self._rows.rows[name] for name in self._rows.rows.names}
        chains = {} if self._chains is None else self._chains.arrays()
        return {**rows, **chains, "population": self._strata.population}

    def adopt(self, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Take the place of a sample that was written to a checkpoint, and go on as it would."""
        rows = {n.removeprefix("row "): a for n, a in arrays.items() if n.startswith("row ")}
        self._rows.adopt(facts["dictionaries"], rows)
        self._rows.limit = int(facts["limit"])
        self._newest = facts["newest"]
        self._strata.adopt(facts["strata"], arrays["population"].view(np.int64))
        if self._chains is not None:
            self._chains.adopt(facts["chains"], arrays)
        self._drawn.clear()
