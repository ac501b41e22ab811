"""What is asked of a workload's window: conditions from common to rare, on any subject."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluation.rq4.window import Window
from evaluation.subject import Subject
from evaluation.values import equality, frequent, plain, where

__all__ = ["aligned", "conditions", "window_of"]

Booleans = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

# The share of rows that equalities should hold on, about: the nearest there is, each one once.
SHARES = (0.5, 0.2, 0.1, 0.05, 0.01, 0.002)
MOST = 300  # values looked at of an attribute that has thousands: rarer ones are much alike
LEAST = 20  # rows: of fewer, most samples hold none, and nothing is learnt
RARE = 0.022  # of which (1 - RARE)**100 = 10.5 % of the samples of 100 rows hold none: the paper's


def window_of(events: pa.Table, subject: Subject) -> Window:
    """The window of all these events; its strata are those of the subject's first attribute."""
    value = events[subject.value].to_numpy().astype(np.float64)
    return Window.of(value, conditions(events, subject), _codes(events, subject.attributes[0]))


def conditions(events: pa.Table, subject: Subject) -> dict[str, Booleans]:
    """Equalities from common to rare, then ranges of the measure; each as SQL would say it."""
    found = dict(_equalities(events, subject))
    chosen: dict[str, Booleans] = {}
    for share in SHARES:
        left = (name for name in found if name not in chosen)
        name = min(left, key=lambda each: abs(np.log(found[each].mean() / share)))
        chosen[name] = found[name]
    common = sorted(chosen, key=lambda each: -chosen[each].mean())
    return {name: chosen[name] for name in common} | _ranges(events, subject)


def aligned(events: pa.Table, subject: Subject) -> tuple[str, Booleans]:
    """A rare condition along the strata: part of a rare stratum, by what another attribute is.

    Rare is a stratum that has less than its even part of the rows. Of all such the one whose share
    is nearest to the paper's; a whole stratum is none: COUNT would be exact.
    """
    first, *others = subject.attributes
    found: dict[str, Booleans] = {}
    strata = len(np.unique(_codes(events, first)))
    for stratum, rows in _values(events, first):
        if rows.mean() * strata >= 1.0:
            continue
        for other in others:
            for name, holds in _values(events, other):
                both = rows & holds
                if 0 < both.sum() < rows.sum():
                    found[f"{stratum} AND {name}"] = both
    name = min(found, key=lambda each: abs(found[each].mean() - RARE))
    return name, found[name]


def _equalities(events: pa.Table, subject: Subject) -> Iterator[tuple[str, Booleans]]:
    for attribute in subject.attributes:
        yield from _values(events, attribute)


def _values(events: pa.Table, attribute: str) -> Iterator[tuple[str, Booleans]]:
    """The conditions ``attribute = value`` of the values that enough rows have, common first."""
    column = plain(events[attribute])
    for value, rows in frequent(events, attribute)[:MOST]:
        if rows >= LEAST:
            yield equality(attribute, value), where(column, value)


def _ranges(events: pa.Table, subject: Subject) -> dict[str, Booleans]:
    """Conditions on the measure itself: its upper end, its middle, its lower end."""
    y, name = events[subject.value].to_numpy(), subject.value
    low, middle, median, high = (np.quantile(y, q, method="lower") for q in (0.1, 0.25, 0.5, 0.95))
    return {
        f"{name} > {high}": y > high,
        f"{name} BETWEEN {middle} AND {median}": (y >= middle) & (y <= median),
        f"{name} < {low}": y < low,
    }


def _codes(events: pa.Table, attribute: str) -> Integers:
    """A number for each value, and one for NULL: every row is in a stratum."""
    encoded = plain(events[attribute]).dictionary_encode(null_encoding="encode")
    codes: Integers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes
