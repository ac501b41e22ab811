"""What a stream of time windows remembers: no more than windows to come need, and in few files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import ids
from ids.spark.file_system import files_at
from ids.spark.stream_store import Manifest, Store
from tests.spark.streams import PAPER, UTC, arrive, events, expected, run

SECOND = 1_000_000
KEYED = PAPER.replace("(ORDER BY", "(PARTITION BY region ORDER BY")


def newest(checkpoint: Path) -> Manifest:
    manifest = Store(files_at(checkpoint)).latest()
    assert manifest is not None
    return manifest


def held(checkpoint: Path, kind: str) -> list[dict[str, Any]]:
    """All rows in the pieces of the newest manifest."""
    pieces = newest(checkpoint).of(kind)
    tables = [pq.read_table(checkpoint / piece.name, partitioning=None) for piece in pieces]
    return [row for table in tables for row in table.to_pylist()]


@pytest.mark.parametrize(
    "stand",
    [pytest.param(False, marks=pytest.mark.slow), True],
    ids=["panes alone", "windows that stand"],
)
def test_idle_keys_and_panes_that_no_window_needs_leave(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stand: bool
) -> None:
    if stand:
        for limit in ("_MANY", "_FAR"):
            monkeypatch.setattr(f"ids.spark.stream_time.{limit}", 1)
    batches, keys = 7, 5
    # in each stretch of 10 seconds there are keys that never come again
    times = (
        np.repeat(np.arange(batches), keys) * 10 * SECOND + 1 + np.tile(np.arange(keys), batches)
    )
    names = [f"{batch} {key}" for batch in range(batches) for key in range(keys)]
    table = events(batches * keys, 81).set_column(0, "event_time", pa.array(times, UTC))
    table = table.set_column(1, "region", pa.array(names))
    arrive(table, tmp_path / "in", list(range(keys, batches * keys, keys)))
    seen = []

    def look(_: object) -> None:
        facts, found = newest(tmp_path / "ck").facts["step"], {}
        for kind in ("panes", "windows"):
            found[kind] = {int(row["ids_k0"].split()[0]) for row in held(tmp_path / "ck", kind)}
        seen.append((facts["spoken"], facts["stands"], found["panes"], found["windows"]))

    running = run(spark, KEYED, tmp_path / "in", on_progress=look)
    assert running.table().equals(expected(KEYED, table))
    # keys of stretch b are in pane b + 1, and after batch b all instants up to b have had emits
    assert seen == [
        (
            batch if batch else None,
            batch if batch and stand else None,
            set(range(max(0, batch - 3), batch + 1)),
            set(range(max(0, batch - 3), batch)) if stand else set(),
        )
        for batch in range(batches)
    ]
    rows = keys * (4 + 3 * stand)
    assert running.last_progress.state_rows == rows


@pytest.mark.slow
def test_forty_tiny_batches_lie_in_few_files(spark: SparkSession, tmp_path: Path) -> None:
    table = events(120, 82, 300)
    arrive(table, tmp_path / "in", list(range(3, 120, 3)))
    script = KEYED.replace("'30' SECOND", "'600' SECOND")
    places, pieces = [], []

    def look(_: object) -> None:
        manifest = newest(tmp_path / "ck")
        places.append(len([*(tmp_path / "ck/data").iterdir()]))
        pieces.append({kind: len(some) for kind, some in manifest.pieces.items()})

    running = run(spark, script, tmp_path / "in", retain=True, on_progress=look)
    assert running.table().equals(expected(script, table))
    assert len(places) == 40
    for kind, most in (("panes", 17), ("retained", 17), ("windows", 1)):
        assert max(each.get(kind, 0) for each in pieces) <= most, kind
        assert min(each.get(kind, 0) for each in pieces[20:]) >= 1, kind
    # what two manifests before it name is there, too
    assert max(places) <= 2 * (17 + 16) + 3


_DRIVER = """
import json, resource, sys
from pathlib import Path
from ids.spark import sql
from ids.spark.session import local_session
from ids.spark.spark_write import write
from tests.spark.streams import run

folder, script = Path(sys.argv[1]), Path(sys.argv[2]).read_text()
settings = {"spark.driver.memory": "512m", "spark.driver.maxResultSize": "2m"}
spark = local_session("local[2]", **settings)
heap = spark._jvm.java.lang.Runtime.getRuntime().maxMemory()
peaks = []
look = lambda _=None: peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
running = run(spark, script, folder / "in", output=f"{folder}/out/", on_progress=look)
emits = [running.last_progress.totals.emits]
for target in ("batch/", "batch.parquet"):
    emits.append(write(sql(script, spark=spark, events=folder / "in"), f"{folder}/{target}"))
look()
print(json.dumps({"heap": heap, "peaks": peaks, "emits": emits}))
spark.stop()
"""


@pytest.mark.slow
def test_the_driver_sees_numbers_alone(tmp_path: Path) -> None:
    """300,000 keys, while all that comes to the driver may take 2 MB, and its heap 512."""
    keys, minute = 300_000, 60 * SECOND
    rng = np.random.default_rng(83)
    each = [keys, keys // 10, keys // 10]
    rows, batches = sum(each), len(each)
    times = np.repeat(np.arange(batches), each) * minute + rng.integers(1, minute, rows)
    table = pa.table(
        {
            "event_time": pa.array(np.sort(times), UTC),
            "region": pa.array(np.concatenate([rng.permutation(keys)[:some] for some in each])),
            "tier": pa.array(rng.choice(["premium", "free"], rows)),
            "latency": pa.array(rng.normal(50, 20, rows)),
        }
    )
    arrive(table, tmp_path / "in", np.cumsum(each)[:-1].tolist())
    script = KEYED.replace("region = 'EU'", "latency > 50").replace("'10' SECOND", "'1' MINUTE")
    script = script.replace("'30' SECOND", "'5' MINUTE")
    (tmp_path / "script.sql").write_text(script)
    told = subprocess.run(
        [sys.executable, "-c", _DRIVER, str(tmp_path), str(tmp_path / "script.sql")],
        check=False,
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stderr[-3000:]
    seen = json.loads(told.stdout.splitlines()[-1])
    assert seen["heap"] <= 512 * 2**20
    assert len(seen["peaks"]) == batches + 1 and seen["peaks"][-2] < 1.2 * seen["peaks"][0]
    order = [("emit_at", "ascending"), ("region", "ascending")]
    whole, due = ids.sql(script, events=table), expected(script, table)
    assert seen["emits"] == [due.num_rows, whole.num_rows, whole.num_rows]
    assert due.num_rows > keys and whole.num_rows > 2 * keys
    assert pq.read_table(tmp_path / "out").sort_by(order).equals(due.sort_by(order))
    for name in ("batch", "batch.parquet"):
        assert pq.read_table(tmp_path / name).cast(whole.schema).equals(whole), name
