"""``python -m capacity run`` measures, ``publish`` writes the tables of docs/scale.md.

Records go to ``capacity/records.jsonl``, a line for each load, contender and pass. A pass takes 50
minutes on two cores; what is recorded is left out, so that it can be stopped and begun again.
``--passes 2`` measures all loads twice, at different times. ``pairs --against SRC`` measures this
version and another one, by the ``src`` of its tree, alternately, ``--passes`` pairs of each load:
the two of a pair run one right after the other, and the first changes from pair to pair.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from capacity.driver import simulated
from capacity.load import Load
from capacity.page import published

RECORDS = Path(__file__).with_name("records.jsonl")
PAGE = Path(__file__).parents[1] / "docs/scale.md"

TABLE = [Load(keys, panes) for panes in (5, 60) for keys in (100, 10_000, 100_000, 1_000_000)]
OLD = [Load(keys, 5) for keys in (100, 100_000)]
PLAIN = [Load(keys, 5) for keys in (100, 10_000, 100_000)]
OTHERS = [
    Load(100, 5, rows=100_000),
    Load(100, 5, rows=1_600_000),
    Load(100, 5, predicates=4),
    Load(100_000, 5, predicates=4),
    Load(100_000, 5, rows=800_000),
    Load(10_000, 5, minutes=5),
]
HELD_OUT = [
    Load(30_000, 10, rows=300_000, predicates=2),
    Load(300_000, 5),
    Load(1_000, 5, rows=1_200_000, predicates=3),
    Load(100_000, 20, rows=200_000, predicates=2),
    Load(50_000, 5, predicates=3),
    Load(200_000, 12, rows=600_000, minutes=2),
]
DRIVER = [(60, 2), (60, 400), (1_440, 400)]


def _run(number: int) -> None:
    """Measure what has fewer than ``number`` records."""
    wanted: list[tuple[Load, str]] = []
    # long windows last; contenders of one load one after another, so that the machine is the same
    for load in sorted((*TABLE, *OTHERS, *HELD_OUT), key=lambda load: load.panes):
        wanted += [(load, "ids"), *([(load, "plain")] if load in PLAIN else [])]
    done = Counter((record["contender"], json.dumps(record["load"])) for record in _records())
    for load, contender in wanted:
        if done[contender, json.dumps(asdict(load))] < number:
            found = _measured(load, contender, None)
            _record({"contender": contender, "load": asdict(load)} | found)
    for panes, files in DRIVER:
        if not done["driver", json.dumps([panes, files])]:
            _record({"contender": "driver", "load": [panes, files]} | simulated(panes, files))


def _run_pairs(against: str, number: int) -> None:
    """Measure ``number`` pairs of each load, one of each in turn."""
    for turn in range(number):
        for load in OLD:
            both = ["ids", "old"] if turn % 2 == 0 else ["old", "ids"]
            found = {name: _measured(load, name, against) for name in both}
            _record({"contender": "pair", "load": asdict(load)} | found)


def _record(record: dict[str, Any]) -> None:
    with RECORDS.open("a") as file:
        file.write(json.dumps(record) + "\n")
    print(json.dumps(record), flush=True)


def _measured(load: Load, contender: str, against: str | None) -> dict[str, Any]:
    old = contender == "old"
    root = Path(__file__).parents[1]
    paths = [str(against) if old else str(root / "src"), str(root)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    with tempfile.TemporaryDirectory(prefix="capacity-") as directory:
        rows = Path(directory, "in")
        rows.mkdir()
        load.write(rows)
        name = "ids" if old else contender
        command = [sys.executable, "-m", "capacity.run", name, json.dumps(asdict(load)), directory]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def _records() -> list[dict[str, Any]]:
    lines = RECORDS.read_text().splitlines() if RECORDS.exists() else []
    return [json.loads(line) for line in lines]


def _main() -> None:
    parser = argparse.ArgumentParser(prog="capacity", description=__doc__)
    parser.add_argument("command", choices=["run", "pairs", "publish"])
    parser.add_argument("--against", metavar="SRC")
    parser.add_argument("--passes", type=int, default=1)
    chosen = parser.parse_args()
    if chosen.command == "run":
        for number in range(chosen.passes):
            _run(number + 1)
    elif chosen.command == "pairs":
        _run_pairs(chosen.against, chosen.passes)
    else:
        PAGE.write_text(published(PAGE.read_text(), _records(), HELD_OUT))


if __name__ == "__main__":
    _main()
