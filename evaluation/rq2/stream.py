"""A stream as the slide loop takes it: each row's atom and digits, and the predicates behind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluation.subject import REGIONS
from ids.kernels.digits import cut
from ids.model.expression import Column, Comparison, Expression, Literal
from ids.model.scale import Scale
from ids.model.table import ColumnData, Kind, Table
from ids.predicates.refinement import Refinement
from ids.state.scaling import cut_column, fit_column

__all__ = ["PREDICATES", "Prepared", "Stream", "Test", "equals"]

Test = tuple[str, str]
"""An attribute and the value it must have."""

_SEEN: list[Test] = [("region", region) for region in REGIONS]
_SEEN += [("endpoint", "/search"), ("endpoint", "/feed")]


def _exclusive(count: int) -> list[Test]:
    """Values of two attributes, most of which the stream does not hold at the moment."""
    unseen = [("region", f"Edge-{k:02d}") for k in range(count - len(_SEEN))]
    return [*_SEEN, *unseen]


# As many live atoms as the paper has: 2, 6, 12 and 12.
PREDICATES: dict[int, list[Test]] = {
    1: [("region", "EU-West")],
    4: [("region", "EU-West"), ("region", "US-East"), ("tier", "premium"), ("tier", "basic")],
    16: _exclusive(16),
    64: _exclusive(64),
}


def equals(test: Test) -> Expression:
    """The predicate ``attribute = 'value'``."""
    return Comparison("=", Column(test[0]), Literal(test[1]))


@dataclass(frozen=True)
class Prepared:
    """What the slide loop reads.

    atoms   uint32[n]      each row's atom
    digits  int64[n, D]    each row's value, cut
    scale   how values are cut, and what is kept: degree 1 is (m, A), 2 is (m, A, B)
    holds   bool[live, K]  which predicates hold on which atom
    """

    atoms: npt.NDArray[np.uint32]
    digits: npt.NDArray[np.int64]
    scale: Scale
    holds: npt.NDArray[np.bool_]

    @property
    def live(self) -> int:
        """How many atoms there are."""
        return len(self.holds)

    @property
    def centre(self) -> npt.NDArray[np.int64]:
        """Nothing is subtracted: no power above the second is kept."""
        return np.zeros(self.scale.digits, np.int64)


class Stream:
    """The columns of an Arrow table that predicates test, and the measure ``value``."""

    def __init__(self, table: pa.Table, value: str) -> None:
        texts = [f.name for f in table.schema if pa.types.is_dictionary(f.type)]
        self.table = Table({name: _text(table[name]) for name in texts}, table.num_rows)
        self.value: npt.NDArray[np.float64] = table[value].to_numpy()

    def codes(self, attribute: str) -> npt.NDArray[np.int32]:
        """An attribute's dictionary codes."""
        return self.table.columns[attribute].values.astype(np.int32, copy=False)

    def code(self, test: Test) -> int:
        """The code of a value that the stream holds."""
        dictionary = self.table.columns[test[0]].dictionary
        assert dictionary is not None
        return int(np.flatnonzero(dictionary == test[1])[0])

    def prepared(self, predicates: list[Expression], degree: int = 2) -> Prepared:
        """Atoms and digits, found once for each row as in the engine."""
        refinement = Refinement(predicates)
        atoms = refinement.assign(self.table)
        holds = refinement.holds(np.arange(refinement.atoms))
        scale = self.scale(degree)
        return Prepared(atoms, cut_column(self.value, scale), scale, holds)

    def prepare(self, refinement: Refinement, into: Prepared) -> npt.NDArray[np.uint32]:
        """The same on the clock: atoms afresh, digits into the room there is, as in the engine."""
        atoms = refinement.assign(self.table)
        cut(self.value, 2.0**-into.scale.exponent, into.scale.layout, into.digits)
        return atoms

    def scale(self, degree: int) -> Scale:
        """A scale that holds every bit of every value."""
        scale = fit_column(self.value, *self._extremes, degree)
        assert scale is not None
        return scale

    @cached_property
    def _extremes(self) -> tuple[float, float]:
        magnitudes = np.abs(self.value)
        return float(magnitudes.max()), float(magnitudes[magnitudes > 0].min())


def _text(column: pa.ChunkedArray) -> ColumnData:
    joined = column.combine_chunks()
    names = np.array(joined.dictionary.to_pylist(), dtype=object)
    return ColumnData(Kind.TEXT, joined.indices.to_numpy(), None, names)
