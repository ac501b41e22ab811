"""Questions nobody registered: what each mechanism offers, and the one that is taken carried out.

Order of preference among equals: atoms, index, scan. All are exact, so all give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ids.engine.answering import answer
from ids.engine.core import Core
from ids.engine.estimating import estimate_drawn
from ids.engine.picking import held_sums, place_sums
from ids.engine.sampling import Sampler, draw_from
from ids.engine.settings import Settings
from ids.errors import StateError
from ids.kernels.scatter import add_rows
from ids.model.attribution import Attribution
from ids.model.expression import Expression, Name, columns_of
from ids.model.query import Approximate
from ids.model.sampling import Sampling
from ids.plan.mechanism import (
    Offer,
    choose_offer,
    index_offer,
    partial_offer,
    sample_offer,
    scan_offer,
)
from ids.plan.question import Question
from ids.plan.recognising import Related
from ids.predicates.deciding import decide
from ids.predicates.truth import holds
from ids.predicates.vector import Kleene
from ids.state.index import Access
from ids.state.refined import Refined
from ids.state.retained import TAG

__all__ = ["Way", "answer_from_rows", "ways"]

Words = npt.NDArray[np.int64]

# A part of the rows so small that whoever finds it need not be compared with a scan.
_FEW = 1 / 64
# An atom's truth (0 FALSE, 1 TRUE, -1 NULL) as Kleene's -1, 1, 0.
_KLEENE = np.array([-1, 1, 0], np.int8)


class Way(NamedTuple):
    """An offer, and how to carry it out."""

    offer: Offer
    carry: Callable[[], Attribution]


class _Found(NamedTuple):
    """A condition's summary, int64[1, words], and how many rows were looked at for it."""

    summary: Words
    touched: int


def answer_from_rows(core: Core, question: Question, settings: Settings) -> Attribution:
    """A question about a condition over columns, in the cheapest way there is."""
    few = _few(core, question)
    if few is not None:
        return few
    found = ways(core, question, settings, every=False)
    best = choose_offer([way.offer for way in found])
    return next(way for way in found if way.offer is best).carry()


def _few(core: Core, question: Question) -> Attribution | None:
    """By the index, where it leaves so few rows that no other way needs to be weighed."""
    if core.index is None or question.approximate is not None or question.path.related is not None:
        return None
    access = _access(core, question)
    if access is None or access.candidates >= _FEW * core.rows:
        return None
    found = _indexed(core, access, question.measure, question.game.degree)
    return _exact(core, question, index_offer(core.rows, access.candidates), found)


def ways(core: Core, question: Question, settings: Settings, *, every: bool = True) -> list[Way]:
    """Every way to the answer (or every exact one, if any); where a sample was asked for, that."""
    if question.approximate is not None:
        return [_sampled(core, question, question.approximate, settings)]
    found = _exact_ways(core, question)
    if core.sampler is not None and (every or not found):
        asked = Approximate(core.sampler.sampling.size)
        found.append(_sampled(core, question, asked, settings))
    return found


def _exact_ways(core: Core, question: Question) -> list[Way]:
    """Every exact way; none where the rows are not retained."""
    if not core.has_raw:
        return []
    assert core.retained is not None
    path = question.path
    assert path.condition is not None
    rows, condition = len(core.retained), path.condition

    def way(offer: Offer, find: Callable[[int, int], _Found]) -> Way:
        game, measure, _, _ = question
        return Way(offer, lambda: _exact(core, question, offer, find(measure, game.degree)))

    found = [way(scan_offer(rows), partial(_scan, core, condition))]
    access = _access(core, question)
    if access is not None:
        offer = index_offer(rows, access.candidates)
        found.append(way(offer, partial(_indexed, core, access)))
    if path.related is not None and isinstance(core.membership, Refined):
        sure, undecided = _verdict(core.membership, path.related)
        count = int(core.measures[0].atoms[undecided, 0].sum())
        rest = partial(_partial, core, condition, sure, undecided)
        found.append(way(partial_offer(rows, count), rest))
    return found


def _access(core: Core, question: Question) -> Access | None:
    if core.index is None:
        return None
    assert core.retained is not None
    assert question.path.condition is not None
    return core.index.access(question.path.condition, core.retained)


def _exact(core: Core, question: Question, offer: Offer, found: _Found) -> Attribution:
    value = answer(core.measures[question.measure], found.summary, 0, question.game)
    return Attribution(
        *value, offer.mechanism, 0.0, core.rows, offer.why, offer.touched, found.touched
    )


def _sampled(core: Core, question: Question, asked: Approximate, settings: Settings) -> Way:
    """The rows drawn; drawn on the spot where no sample of that size is kept."""
    kept = core.sampler
    if kept is not None and asked.size > kept.sampling.size:
        kept = None
    if kept is None and not core.has_raw:
        raise _too_large(asked, core.sampler)
    looked_at = core.rows if kept is None else min(core.rows, kept.looks_at(asked.size))
    stratified = kept is not None and bool(kept.sampling.strata)
    forced = question.approximate is not None
    offer = sample_offer(core.rows, looked_at, stratified=stratified, asked=forced)

    def carry() -> Attribution:
        if kept is not None:
            sampling = kept.sampling
            drawing = kept.sample.drawn(question.measure, asked.size)
        else:
            sampling = replace(settings.sampling or Sampling(), size=asked.size)
            assert core.retained is not None
            drawing = draw_from(core.retained, core.schema, sampling, question.measure)
        found = estimate_drawn(core, question, drawing, asked, sampling)
        value, share, lift, error, standard_error = (float(each[0]) for each in found)
        touched = core.rows if kept is None else len(drawing.value)
        return Attribution(
            value, share, lift, offer.mechanism, error, core.rows, offer.why, offer.touched,
            touched, asked.confidence, standard_error,
            len(drawing.value) - (0 if drawing.complete else drawing.whole), sampling.seed,
        )  # fmt: skip

    return Way(offer, carry)


def _too_large(asked: Approximate, sampler: Sampler | None) -> StateError:
    fact = f"a sample of {asked.size:,} rows was asked for"
    if sampler is None:
        return StateError(
            f"{fact}, and this engine keeps neither rows nor a sample; make it with "
            "sampling=ids.Sampling() or with retain=True"
        )
    return StateError(
        f"{fact}, and this engine keeps one of {sampler.sampling.size:,}; ask for no more than "
        "that, or make the engine with a larger one"
    )


def _scan(core: Core, condition: Expression, measure: int, degree: int) -> _Found:
    """One look at every row inside, on the columns the condition reads."""
    assert core.retained is not None
    table = core.retained.table(set(columns_of(condition)))
    if not table.rows:
        return _Found(place_sums(core, measure, np.zeros(0, np.int64), degree), 0)
    return _Found(held_sums(core, measure, holds(condition, table), degree), table.rows)


def _indexed(core: Core, access: Access, measure: int, degree: int) -> _Found:
    """The rows that the index has found."""
    assert core.retained is not None
    places = access.places(core.retained)
    return _Found(place_sums(core, measure, places, degree), access.candidates)


def _verdict(atoms: Refined, related: Related) -> tuple[Words, Words]:
    """The live atoms all of whose rows the condition surely holds on, and those left open."""
    live = atoms.live
    truths = {n: atoms.refinement.truths[live, k] for k, n in enumerate(atoms.names)}

    def known(node: Expression) -> Kleene | None:
        return _KLEENE[truths[node.name]] if isinstance(node, Name) else None

    low, high = (np.broadcast_to(each, len(live)) for each in decide(related.mixed, known))
    sure, possible = low == 1, high == 1
    for name in related.implying:
        sure = sure | (truths[name] == 1)
    for name in related.implied:
        possible = possible & (truths[name] == 1)
    for name in related.excluded:
        possible = possible & (truths[name] != 1)
    if related.covered:
        possible = sure
    return live[sure], live[possible & ~sure]


def _partial(
    core: Core, condition: Expression, sure: Words, undecided: Words, measure: int, degree: int
) -> _Found:
    """The sure atoms' own sums, and those rows of the undecided ones that the condition takes."""
    assert core.retained is not None
    assert isinstance(core.membership, Refined)
    summaries = core.measures[measure]
    total = summaries.merged(sure).reshape(1, -1)
    if not len(undecided):
        return _Found(total, 0)
    is_open = np.zeros(core.membership.width, np.bool_)
    is_open[undecided] = True
    places = np.flatnonzero(is_open[core.retained.rows[TAG].view(np.uint32)])
    table = core.retained.table(set(columns_of(condition))).take(places)
    taken = place_sums(core, measure, places[holds(condition, table)], degree)
    add_rows(total, taken, summaries.scale.layout)
    return _Found(total, len(places))
