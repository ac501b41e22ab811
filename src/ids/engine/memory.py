"""Memory by component, in exact bytes: the paper's own categories."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from ids.engine.core import Core

__all__ = ["Memory", "measure_memory"]


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of each component.

    summaries  the window's and the predicates' sums
    atoms      the atoms' sums and signatures
    retained   the rows inside (0 when summaries are all there is)
    index      inverted indexes over the rows inside
    sampler    sliding-window samples
    """

    summaries: int
    atoms: int
    retained: int
    index: int = 0
    sampler: int = 0

    @property
    def total(self) -> int:
        """All of it."""
        return sum(astuple(self))


def measure_memory(core: Core | None) -> Memory:
    """What an engine holds now, room to spare included."""
    if core is None:
        return Memory(0, 0, 0)
    summaries = sum(s.window.nbytes + s.marginals.nbytes for s in core.measures)
    atoms = sum(s.atoms.nbytes for s in core.measures) + core.membership.nbytes
    return Memory(
        summaries,
        atoms,
        0 if core.retained is None else core.retained.nbytes,
        0 if core.index is None else core.index.nbytes,
        0 if core.sampler is None else core.sampler.nbytes,
    )
