"""Checkpoint files: whole or refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from ids.errors import CheckpointError
from ids.state import checkpoint, load, save
from ids.state.checkpoint import VERSION

FACTS = {"window": ["count", 7], "names": ["äöü", "x"], "newest": None}
ARRAYS: dict[str, np.ndarray] = {
    "sums": np.arange(12).reshape(3, 4),
    "empty": np.zeros((0, 5), np.uint8),
    "row value a/b": np.array([0.5, np.nan]),
}


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    save(tmp_path / "c.ids", FACTS, ARRAYS)
    facts, arrays = load(tmp_path / "c.ids")
    assert facts == FACTS
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert np.array_equal(arrays[name], array, equal_nan=array.dtype.kind == "f")
    assert [p.name for p in tmp_path.iterdir()] == ["c.ids"]


def test_a_truncated_file_is_refused_wherever_it_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "c.ids"
    save(path, FACTS, ARRAYS)
    whole = path.read_bytes()
    cuts = sorted({len(whole) * k // 20 for k in range(20)} | set(range(64)) | {len(whole) - 1})
    for cut in cuts:
        path.write_bytes(whole[:cut])
        with pytest.raises(CheckpointError):
            load(path)
    path.write_bytes(whole + b"x")
    with pytest.raises(CheckpointError):
        load(path)


def test_a_single_flipped_bit_is_seen_wherever_it_is(tmp_path: Path) -> None:
    path = tmp_path / "c.ids"
    save(path, FACTS, ARRAYS)
    whole = path.read_bytes()
    for place in [*range(64), *range(64, len(whole), 13)]:
        altered = bytearray(whole)
        altered[place] ^= 1 << (place % 8)
        path.write_bytes(altered)
        with pytest.raises(CheckpointError):
            load(path)
    path.write_bytes(whole)
    load(path)


def test_another_version_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "VERSION", VERSION + 1)
    save(tmp_path / "c.ids", FACTS, ARRAYS)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match=f"has version {VERSION + 1}, this IDS reads"):
        load(tmp_path / "c.ids")


def test_a_half_written_file_is_never_seen_under_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.ids"
    save(path, FACTS, ARRAYS)
    before = path.read_bytes()

    def full(_: int) -> None:
        assert path.read_bytes() == before, "the name must still mean the old checkpoint"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match=r"cannot write checkpoint .*No space left"):
        save(path, {"other": 1}, ARRAYS)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["c.ids"]


def test_an_interrupted_save_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path / "c.ids", FACTS, ARRAYS)
    assert not list(tmp_path.iterdir())


def test_paths_that_cannot_be_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot read checkpoint"):
        load(tmp_path / "nowhere.ids")
    with pytest.raises(CheckpointError, match="cannot write checkpoint"):
        save(tmp_path / "no folder" / "c.ids", FACTS, ARRAYS)
    (tmp_path / "text.txt").write_text("hello, I am not a checkpoint" * 10)
    with pytest.raises(CheckpointError, match="is not an IDS checkpoint"):
        load(tmp_path / "text.txt")
    (tmp_path / "empty").touch()
    with pytest.raises(CheckpointError):
        load(tmp_path / "empty")
