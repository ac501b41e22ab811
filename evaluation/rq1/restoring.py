"""A process of its own that restores an engine, gives it the remaining rows, and is asked.

    python -m evaluation.rq1.restoring CHECKPOINT ROWS

The rows come in larger batches than before the checkpoint: that must not change a bit either.
"""

from __future__ import annotations

import json
import sys

import pyarrow as pa

import ids
from evaluation.engines import filled
from evaluation.rq1.enumeration import GAMES
from evaluation.rq1.stream import COMBINATIONS, NAMES, ask

__all__ = ["go_on"]

_BATCH = 1_000


def go_on(checkpoint: str, rows: str) -> list[tuple[str, str, float]]:
    """Game, predicate and attribution after the last row."""
    with pa.ipc.open_file(rows) as file:
        engine = filled(ids.Engine.restore(checkpoint), file.read_all(), _BATCH)
    answers = ask(engine, GAMES, (*NAMES, *COMBINATIONS))
    return [(game, predicate, value) for (game, predicate), value in answers.items()]


if __name__ == "__main__":
    print(json.dumps(go_on(*sys.argv[1:])))
