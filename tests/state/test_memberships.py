"""Membership by atom and by target: what a row belongs to, and when readers hear of it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from ids.language import parse_predicate
from ids.model import ColumnData, Expression, Kind, Scale, Table
from ids.predicates import bind_predicate
from ids.state import Enumerated, Refined, Summaries

KINDS = {"k": Kind.NUMBER}
EVERYONE = np.zeros(0, np.bool_)


def bound(**conditions: str) -> dict[str, Expression]:
    return {n: bind_predicate(parse_predicate(c), KINDS) for n, c in conditions.items()}


def over_names(condition: str, *names: str) -> Expression:
    return bind_predicate(parse_predicate(condition), dict.fromkeys(names, Kind.BOOLEAN))


def rows(*k: int | None) -> Table:
    values = np.array([0 if v is None else v for v in k], np.int64)
    valid = np.array([v is not None for v in k], np.bool_)
    return Table({"k": ColumnData(Kind.NUMBER, values, None if valid.all() else valid)}, len(k))


def come(
    membership: Refined | Enumerated, counts: Summaries, *k: int | None, sign: int = 1
) -> npt.NDArray[np.generic]:
    tags = membership.assign(rows(*k))
    digits = np.zeros((len(k), 1), np.int64)
    membership.commit([counts], [membership.tally(counts, tags, digits, EVERYONE, sign, None)])
    return tags


def test_an_atom_is_live_from_its_commit_to_its_last_row() -> None:
    refined = Refined(bound(small="k < 3", even="k % 2 = 0"))
    counts = Summaries(Scale(0, 0, 0), 2)
    come(refined, counts, 1, 2)
    condition = over_names("small AND NOT even", "small", "even")
    before = refined.live.tolist(), refined.holding(condition).tolist()
    assert [len(part) for part in before] == [2, 1]
    refined.assign(rows(7, 8, None))  # met, not committed: a slide half done, or refused
    assert (refined.live.tolist(), refined.holding(condition).tolist()) == before
    assert refined.holding(over_names("NOT small", "small", "even")).tolist() == []
    refined.reclaim(counts)
    assert (refined.live.tolist(), refined.holding(condition).tolist()) == before
    come(refined, counts, 7, 8)
    assert len(refined.live) == 4
    come(refined, counts, 1, 7, sign=-1)
    assert len(refined.live) == 2
    assert refined.holding(condition).tolist() == []


def test_a_number_given_back_is_asked_for_anew() -> None:
    """The same number, another signature: what was known of the old one must be forgotten."""
    refined = Refined(bound(small="k < 3"))
    counts = Summaries(Scale(0, 0, 0), 1)
    come(refined, counts, 1)
    condition = over_names("small", "small")
    assert len(refined.holding(condition)) == 1
    come(refined, counts, 1, sign=-1)
    assert len(refined.holding(condition)) == 0
    come(refined, counts, 1)
    assert len(refined.holding(condition)) == 1
    come(refined, counts, 1, sign=-1)
    come(refined, counts, 9)
    assert len(refined.holding(condition)) == 0


def test_null_holds_neither_way() -> None:
    refined = Refined(bound(small="k < 3"))
    counts = Summaries(Scale(0, 0, 0), 1)
    come(refined, counts, 1, None, 5)
    asked = {c: len(refined.holding(over_names(c, "small"))) for c in ("small", "NOT small")}
    assert asked == {"small": 1, "NOT small": 1}
    assert len(refined.live) == 3
    assert counts.marginals[:, 0].tolist() == [1]


@pytest.mark.parametrize("gone", ["small", "even", "never"])
def test_without_a_predicate_atoms_merge(gone: str) -> None:
    conditions = {"small": "k < 3", "even": "k % 2 = 0", "never": "k > 99"}
    refined = Refined(bound(**conditions))
    counts = Summaries(Scale(0, 0, 0), 3)
    tags = come(refined, counts, 1, 2, 3, 4, None)
    rest = {n: c for n, c in conditions.items() if n != gone}
    fresh, mapping = refined.without(gone, bound(**rest))
    moved = mapping[tags.view(np.uint32)]
    again = Refined(bound(**rest))
    other = come(again, Summaries(Scale(0, 0, 0), 2), 1, 2, 3, 4, None).view(np.uint32)
    assert len(set(moved.tolist())) == len(set(other.tolist())) == len(fresh.live)
    for tag, atom in zip(moved, other, strict=True):
        truths = fresh.refinement.truths[tag], again.refinement.truths[atom]
        assert truths[0].tolist() == truths[1].tolist()


def test_targets_are_packed_and_unpacked() -> None:
    targets = bound(**{f"t{i}": f"k % {i + 2} = 0" for i in range(11)})
    enumerated = Enumerated(targets)
    counts = Summaries(Scale(0, 0, 0), 11)
    tags = come(enumerated, counts, *range(30))
    held = enumerated.unpack(tags)
    assert held.shape == (30, 11)
    assert held.tolist() == [[k % (i + 2) == 0 for i in range(11)] for k in range(30)]
    assert counts.marginals[:, 0].tolist() == held.sum(axis=0).tolist()
    assert counts.window[0] == 30
