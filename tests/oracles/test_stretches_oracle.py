from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.oracles.shapley import CLOSED, attribution, closed_form
from tests.oracles.stretches import Stretches

FINE = Fraction(1, 10**100)
VALUES = np.random.default_rng(5).lognormal(3.0, 0.5, 500).tolist()
HELD = (np.random.default_rng(6).random(500) < 0.4).tolist()


@pytest.mark.parametrize("game", CLOSED)
def test_a_stretch_has_the_attribution_of_its_rows(game: str) -> None:
    stretches = Stretches(VALUES, {"p": HELD})
    for first, last in ((0, 0), (4, 5), (4, 6), (3, 10), (50, 450)):
        rows = VALUES[first:last]
        exact = attribution if len(rows) < 10 else closed_form
        members = [row for row, held in enumerate(HELD[first:last]) if held]
        share, lift = stretches.parts(game, "p", first, last)
        assert abs(share + lift - exact(game, rows, members)) < FINE
        assert stretches.attribution(game, "p", first, last) == share + lift
        whole = stretches.aggregate(game, first, last)
        assert abs(whole - exact(game, rows, range(len(rows)))) < FINE
        assert share * len(rows) == len(members) * whole
