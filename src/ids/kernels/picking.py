"""Some rows of the retained window, summed: what a scan or an index has found."""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

import numpy as np

from ids.kernels.compiling import compiled
from ids.kernels.digits import accumulate
from ids.kernels.scatter import add_summary

__all__ = ["LANES", "tally_places"]

# A sum waits for the one before it; rows dealt to four of them in turn do not.
LANES = 4


@compiled()
def tally_places(summaries, places, digits, players, centre, layout, sign):
    """Add ``sign`` times the rows at ``places`` to the first summary, by way of the others.

    summaries  int64[LANES, words]  changed in place; all but the first are 0
    places     int64[m]
    digits     int64[n, max(1,D)]
    players    bool[n or 0]         whether a row takes part (empty: every row does)

    O(m) whatever n. Twin: ``Summaries.tally``.
    """
    scratch = np.zeros_like(centre)
    everyone = len(players) == 0
    for i in range(np.uint64(len(places))):
        place = np.uint64(places[i])
        if everyone or players[place]:
            accumulate(
                summaries, i % np.uint64(LANES), digits[place], centre, scratch, layout, sign
            )
    for lane in range(1, LANES):
        add_summary(summaries[0], summaries[lane], layout)
