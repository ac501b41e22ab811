from __future__ import annotations

import numpy as np

from tests.oracles.domination import undominated


def test_a_row_stays_while_few_newer_ones_are_as_high() -> None:
    priority = np.array([0.9, 0.1, 0.5, 0.5])
    assert undominated(priority, 1) == [True, False, False, True]
    assert undominated(priority, 2) == [True, False, True, True]
    assert undominated(priority, 0) == [False] * 4
