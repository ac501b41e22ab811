"""docs/scale.md: its tables are those of the records, and the formula foretells measurements."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from capacity.__main__ import HELD_OUT, OLD, PAGE, PLAIN, RECORDS, TABLE
from capacity.load import Load
from capacity.model import Model
from capacity.page import measured, pair_ratios, predictions, published


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RECORDS.read_text().splitlines()]


def test_the_tables_are_those_of_the_records(records: list[dict[str, Any]]) -> None:
    assert PAGE.read_text() == published(PAGE.read_text(), records, HELD_OUT)


def test_loads_that_were_held_out_are_foretold_within_a_quarter(
    records: list[dict[str, Any]],
) -> None:
    found = predictions(records, HELD_OUT)
    assert len(found) >= 6
    for load, predicted, spent in found:
        assert abs(predicted / spent - 1) < 0.25, load


def test_what_the_page_claims_of_the_driver_and_of_others(records: list[dict[str, Any]]) -> None:
    ours = measured(records)
    memory = [ours[load]["driver_bytes"] for load in TABLE]
    assert max(memory) < 1.2 * min(memory)
    for name, loads, bar in (("old", OLD, 1.3), ("plain", PLAIN, 2.0)):
        others = measured(records, name)
        for load in loads:
            pairs = pair_ratios(records, load) if name == "old" else []
            ratio = ours[load]["trigger"] / others[load]["trigger"]
            assert (median(pairs) if pairs else ratio) <= bar, load


def test_pairs_are_published_one_by_one_with_their_median(records: list[dict[str, Any]]) -> None:
    load = asdict(Load(100, 5))
    sides = [({"trigger": 0.9}, {"trigger": 1.0}), ({"trigger": 0.5}, {"trigger": 1.0})]
    whole = measured(records)[Load(100, 5)]
    pairs = [
        {"contender": "pair", "load": load, "ids": whole | ours, "old": whole | theirs}
        for ours, theirs in sides
    ]
    others = [record for record in records if record["contender"] != "pair"]
    assert pair_ratios(pairs, Load(100, 5)) == [0.9, 0.5]
    page = published(PAGE.read_text(), [*others, *pairs], HELD_OUT)
    assert "| 100 † | 5 | 0.70 |" in page and "**0.70** (0.90, 0.50)" in page


def test_a_formula_is_found_again_in_what_it_made() -> None:
    loads = [*TABLE, *HELD_OUT]
    model = Model((0.5, 1e-6, 2e-7, 3e-8, 4e-8, 5e-7, 0.25))
    found = Model.fit(loads, [model.seconds(load) for load in loads])
    np.testing.assert_allclose(found.constants, model.constants, rtol=1e-6)


def test_a_load_brings_as_many_rows_keys_and_minutes_as_it_says(tmp_path: Path) -> None:
    load = Load(50, 3, rows=2_000, minutes=2)
    load.write(tmp_path)
    files = sorted(tmp_path.iterdir())
    assert len(files) == load.batches
    table = pq.read_table(files[1]).to_pandas()
    assert len(table) == load.rows
    minutes = table.event_time.dt.floor("min")
    assert (minutes.nunique(), table.k.nunique()) == (2, 50)
    pairs = len(set(zip(minutes, table.k, strict=True)))
    assert abs(pairs / load.pane_rows - 1) < 0.05
