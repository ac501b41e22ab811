"""Compiled loops over arrays. Only this subpackage imports Numba.

Every loop is tested against a slow and obvious reference implementation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ids.lazy import lazy

if TYPE_CHECKING:
    from ids.kernels.atom_lookup import add_coded, add_ranged, intern, link, look_up, reseat, unlink
    from ids.kernels.chain_sample import begin_chains, head_arrivals, mark_links, run_chains
    from ids.kernels.closed_form import Centred, ask, centre_block
    from ids.kernels.compiler import THREADS, side_by_side
    from ids.kernels.error_bound import estimate_windows
    from ids.kernels.every_row import BLOCK, DENSE_ITEMS, DENSE_ROWS, Forms, dense
    from ids.kernels.index_blocks import (
        COMMON,
        HIGHEST,
        LOWEST,
        build_block,
        emit_bits,
        emit_slices,
        find_slices,
        keep_within,
        mark_places,
        mark_slices,
    )
    from ids.kernels.priority_sample import (
        Keys,
        Taken,
        draw,
        highest,
        highest_by_stratum,
        highest_of_copies,
        likely_highest,
        likely_survivors,
        mix,
        survivors,
        survivors_by_stratum,
        survivors_of_copies,
    )
    from ids.kernels.slide import (
        LANES,
        Bounds,
        Cut,
        Lists,
        Rows,
        add_delta,
        add_rows,
        apply_signed,
        ascending,
        cut,
        merge_summaries,
        replay,
        survey,
        tally_places,
        touched_rows,
    )
    from ids.kernels.xxh64 import START, hash_texts, hash_words, ordinals, places_among

__all__ = [
    "BLOCK",
    "COMMON",
    "DENSE_ITEMS",
    "DENSE_ROWS",
    "HIGHEST",
    "LANES",
    "LOWEST",
    "START",
    "THREADS",
    "Bounds",
    "Centred",
    "Cut",
    "Forms",
    "Keys",
    "Lists",
    "Rows",
    "Taken",
    "add_coded",
    "add_delta",
    "add_ranged",
    "add_rows",
    "apply_signed",
    "ascending",
    "ask",
    "begin_chains",
    "build_block",
    "centre_block",
    "cut",
    "dense",
    "draw",
    "emit_bits",
    "emit_slices",
    "estimate_windows",
    "find_slices",
    "hash_texts",
    "hash_words",
    "head_arrivals",
    "highest",
    "highest_by_stratum",
    "highest_of_copies",
    "intern",
    "keep_within",
    "likely_highest",
    "likely_survivors",
    "link",
    "look_up",
    "mark_links",
    "mark_places",
    "mark_slices",
    "merge_summaries",
    "mix",
    "ordinals",
    "places_among",
    "replay",
    "reseat",
    "run_chains",
    "side_by_side",
    "survey",
    "survivors",
    "survivors_by_stratum",
    "survivors_of_copies",
    "tally_places",
    "touched_rows",
    "unlink",
]

# Numba is imported when a kernel is first used.
__getattr__, __dir__ = lazy(__name__)
