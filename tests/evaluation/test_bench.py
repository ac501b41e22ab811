from __future__ import annotations

import pyarrow as pa

import ids
from evaluation.bench import filled, registered, registering

ROWS = pa.table({"region": ["EU", "US", "EU", "AP", "EU"], "y": [1.0, 2.0, 4.0, 8.0, 16.0]})
CONDITIONS = {"eu": "region = 'EU'", "us": "region = 'US'"}


def test_an_engine_filled_in_batches_has_taken_every_row_and_the_last_batch() -> None:
    engine = filled(registered(ids.Engine(ids.CountWindow(4), "y"), CONDITIONS), ROWS, 2)
    assert engine.rows == 4
    assert engine.attribute("SUM", "eu").value == 20.0
    assert engine.attribute("COUNT", "us").value == 1.0


def test_a_script_registers_what_an_engine_does() -> None:
    script = registering(CONDITIONS, "events") + (
        "SELECT SHAPLEY_ATTRIBUTE(SUM(y), eu) AS eu, SHAPLEY_ATTRIBUTE(SUM(y), us) AS us "
        "FROM events WINDOW w AS (ORDER BY y ROWS 4 PRECEDING) EMIT CHANGES"
    )
    last = ids.sql(script, events=ROWS).to_pylist()[-1]
    assert (last["eu"], last["us"]) == (20.0, 2.0)
