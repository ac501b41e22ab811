"""An engine beside its model: the state integer for integer, the answers to a few ulps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ids import Engine
from ids.engine.core import Core
from ids.model import DIGIT_BITS, quoted
from ids.state import Refined, Summaries
from tests.oracles.recount import Recount, recount
from tests.streams.model import GAMES, Model, Row, attributed, close

__all__ = ["everything", "same_aggregates", "same_answers", "same_state"]

_TRUTH = {1: True, 0: False, -1: None}


def _decoded(summaries: Summaries, words: npt.NDArray[np.int64]) -> Recount:
    """A summary as (m, A, B) in the measure's own units."""
    m, sums = summaries.exact(words)
    unit = Fraction(2) ** summaries.scale.grid
    return Recount(m, sums[0] * unit, sums[1] * unit**2)


def _agrees(summaries: Summaries, words: npt.NDArray[np.int64], rows: Sequence[Row]) -> None:
    """Exactly, or within half a grid unit a row where the scale cannot hold every bit."""
    found = _decoded(summaries, words)
    exact = recount(rows, lambda _row: True, lambda row: row.x)
    values = [Fraction(row.x) for row in rows if row.x is not None]
    unit = Fraction(2) ** summaries.scale.grid
    if all((v / unit).denominator == 1 for v in values):
        assert found == exact
        return
    assert found.m == exact.m
    assert abs(found.A - exact.A) <= exact.m * unit / 2
    assert abs(found.B - exact.B) <= sum((abs(v) * unit + unit**2 for v in values), Fraction(0))


def _rounds_only_in_need(core: Core, rows: Sequence[Row]) -> None:
    scale = core.measures[1].scale
    largest = max((abs(Fraction(row.x)) for row in rows if row.x is not None), default=Fraction(0))
    if 1 in core.rounded:
        assert largest >= Fraction(2) ** (scale.exponent - DIGIT_BITS - 1)
    else:
        unit = Fraction(2) ** scale.grid
        assert all((Fraction(r.x) / unit).denominator == 1 for r in rows if r.x is not None)


def same_state(engine: Engine, model: Model) -> None:
    """N, A, B of the window, of every marginal and of every atom are a recount of the rows."""
    assert engine.rows == len(model.rows)
    assert engine.late_rows == model.late
    core = engine._core
    if core is None:
        assert not model.rows
        return
    counts, values = core.measures[0], core.measures[1] if len(core.measures) > 1 else None
    parts: list[tuple[str, npt.NDArray[np.int64] | int, list[Row]]] = []
    for k, name in enumerate(core.membership.names):
        parts.append(("marginals", k, [model.rows[i] for i in model.members(name, model.rows)]))
    if isinstance(core.membership, Refined):
        by_signature = defaultdict(list)
        for row in model.rows:
            by_signature[model.signature(row)].append(row)
        assert engine.atoms == len(by_signature)
        for atom in core.membership.live:
            truths = core.membership.refinement.truths[atom]
            rows = by_signature.pop(tuple(_TRUTH[int(t)] for t in truths))
            parts.append(("atoms", int(atom), rows))
        assert not by_signature
    assert counts.window[0] == len(model.rows)
    for what, place, rows in parts:
        assert getattr(counts, what)[place, 0] == len(rows)
    if values is not None:
        _rounds_only_in_need(core, model.rows)
        _agrees(values, values.window, model.rows)
        for what, place, rows in parts:
            _agrees(values, getattr(values, what)[place], rows)


def same_answers(engine: Engine, model: Model, questions: Iterable[tuple[str, str]]) -> None:
    """Each (mechanism, condition): value, share and lift are the closed form's.

    Where a condition means what is registered, or that decides every live atom, a scan is spared,
    unless the sums round: then every answer is worked out of the rows.
    """
    core = engine._core
    refined = core is not None and isinstance(core.membership, Refined)
    rounded = core is not None and bool(core.rounded)
    for mechanism, condition in questions:
        for game in GAMES:
            found = engine.attribute(game, condition)
            exact = model.attribute(game, condition)
            assert (found.n, found.error) == (len(model.rows), 0.0)
            spared = mechanism == "scan" and found.mechanism in ("marginal", "compositional")
            assert found.mechanism == mechanism or (spared and (rounded or not found.rows_read))
            for part in ("value", "share", "lift"):
                assert close(getattr(found, part), getattr(exact, part), exact.size), (game, part)
            if mechanism != "scan" and refined:
                summed = engine.attribute_by_atoms(game, condition).value
                assert close(summed, exact.value, exact.size + abs(exact.worth))


def same_aggregates(engine: Engine, model: Model) -> None:
    """The aggregates are the window's, and the atoms' attributions add up to them."""
    core = engine._core
    for game in GAMES:
        exact = model.attribute(game, "TRUE")
        whole = engine.aggregate(game)
        players = len(model.rows if game == "COUNT" else model.players())
        assert (whole is None) == (players < {"COUNT": 0, "VAR_SAMP": 2}.get(game, 1))
        size = abs(exact.worth)
        if core is not None and 1 in core.rounded:
            power = 2 if game.startswith("VAR") else 1
            size += sum(abs(Fraction(r.x or 0)) for r in model.rows) ** power / 2**100
        assert whole is None or close(whole, exact.worth, size)
        if core is not None and isinstance(core.membership, Refined):
            largest = size + _by_atoms(model, game)
            if largest < 2**1000:
                assert close(engine.residual(game), Fraction(0), largest)


def _by_atoms(model: Model, game: str) -> Fraction:
    """Σ (|share| + |lift|) over the atoms, for the size of what their values add up from."""
    rows = model.rows if game == "COUNT" else model.players()
    atoms = defaultdict(list)
    for i, row in enumerate(rows):
        atoms[model.signature(row)].append(i)
    ys = [row.x or 0.0 for row in rows]
    return sum((attributed(game, ys, members).size for members in atoms.values()), Fraction(0))


def everything(engine: Engine) -> list[object]:
    """What a refused call, or a restart, must leave as it was: rows, sums, answers."""
    core = engine._core
    found: list[object] = [engine.rows, engine.late_rows, engine.predicates, engine.atoms]
    if core is None:
        return found
    for summaries in core.measures:
        found.append(summaries.exact(summaries.window))
        found.append([summaries.exact(row) for row in summaries.marginals])
        if isinstance(core.membership, Refined):
            found.append([summaries.exact(summaries.atoms[a]) for a in core.membership.live])
    names = [quoted(name) for name in engine.predicates]
    found += [engine.attribute(game, name) for game in GAMES for name in names]
    return found
