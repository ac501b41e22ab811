"""Checkpoints of a running engine: whole or refused, and the engine goes on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import ids
from ids.errors import CheckpointError
from tests.streams.comparing import everything

START = datetime(2026, 1, 1, tzinfo=UTC)


def fed(**settings: object) -> ids.Engine:
    engine = ids.Engine(ids.CountWindow(50), "x", **settings)  # type: ignore[arg-type]
    engine.register("eu", "region = 'EU'")
    engine.register("odd name", "k % 2 = 1 AND NOT (x > 3.5)")
    rng = np.random.default_rng(2)
    engine.ingest(
        {
            "x": rng.normal(1e9, 1e-3, 80),
            "region": rng.choice(["EU", "Ünïted", ""], 80),
            "k": rng.integers(0, 9, 80),
            "when": [START + timedelta(seconds=i) for i in range(80)],
            "flag": rng.random(80) < 0.5,
        }
    )
    return engine


def test_every_twentieth_of_a_file_is_too_little(tmp_path: Path) -> None:
    engine = fed()
    path = tmp_path / "engine.ids"
    engine.checkpoint(path)
    whole = path.read_bytes()
    for part in range(20):
        path.write_bytes(whole[: len(whole) * part // 20])
        with pytest.raises(CheckpointError) as caught:
            ids.Engine.restore(path)
        assert "\n" not in str(caught.value)
        assert path.name in str(caught.value)
    path.write_bytes(whole)
    assert everything(ids.Engine.restore(path)) == everything(engine)


def test_a_flipped_byte_is_never_taken_for_state(tmp_path: Path) -> None:
    engine = fed()
    path = tmp_path / "engine.ids"
    engine.checkpoint(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(4)
    for place in rng.integers(0, len(whole), 60):
        altered = bytearray(whole)
        altered[place] ^= int(rng.integers(1, 256))
        path.write_bytes(altered)
        with pytest.raises(CheckpointError):
            ids.Engine.restore(path)


def test_a_failed_checkpoint_leaves_the_last_one_and_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = fed()
    path = tmp_path / "engine.ids"
    engine.checkpoint(path)
    before, state = path.read_bytes(), everything(engine)
    engine.ingest({"x": [1.0], "region": ["EU"], "k": [1], "when": [START], "flag": [True]})

    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken_disk:
        broken_disk.setattr("os.fsync", broken)
        with pytest.raises(CheckpointError, match="cannot write checkpoint"):
            engine.checkpoint(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    assert everything(ids.Engine.restore(path)) == state
    assert engine.rows == 50
    engine.checkpoint(path)
    assert everything(ids.Engine.restore(path)) == everything(engine)


def test_an_engine_before_its_first_row_restarts(tmp_path: Path) -> None:
    engine = ids.Engine(
        ids.TimeWindow("10 seconds", slide="5 seconds"), ["x", "x * 2"], order_by="t",
        lateness="3 seconds", atom_limit=7, intersections=["a AND b"], degree=3, retain=False,
    )  # fmt: skip
    engine.register("a", "x > 1")
    engine.advance(1_000_000)
    engine.checkpoint(tmp_path / "engine.ids")
    other = ids.Engine.restore(tmp_path / "engine.ids")
    assert other.window == engine.window
    assert other._settings == engine._settings
    assert other.predicates == {"a": "x > 1"}
    for one in (engine, other):
        one.ingest({"t": [500_000, 2_000_000], "x": [5.0, 6.0]})
    assert (other.rows, other.late_rows, other.atoms) == (2, 0, 1)
    assert other.attribute("SUM(x * 2)", "a") == engine.attribute("SUM(x * 2)", "a")


def test_every_kind_of_column_comes_back(tmp_path: Path) -> None:
    engine = fed()
    engine.checkpoint(tmp_path / "engine.ids")
    other = ids.Engine.restore(tmp_path / "engine.ids")
    for asked in (
        "region = 'Ünïted'", "flag", "k >= 4 AND x > 1000000000",
        "`when` > TIMESTAMP '2026-01-01 00:00:50'",
    ):  # fmt: skip
        for game in ("SUM", "VAR_SAMP"):
            assert other.attribute(game, asked) == engine.attribute(game, asked)
    assert other.attribute("SUM", "flag").mechanism == "scan"


def test_late_rows_stay_counted(tmp_path: Path) -> None:
    engine = ids.Engine(ids.CountWindow(5), "x", order_by="t")
    engine.ingest({"t": [5, 3, 6], "x": [1.0, 2.0, 3.0]})
    assert engine.late_rows == 1
    engine.checkpoint(tmp_path / "engine.ids")
    other = ids.Engine.restore(tmp_path / "engine.ids")
    other.ingest({"t": [5, 6], "x": [1.0, 2.0]})
    assert (other.late_rows, other.rows) == (2, 3)
