"""Kept rows survive crashes, readers at any moment, and harm: the right answer or a clear error."""

from __future__ import annotations

from pathlib import Path
from time import monotonic, sleep

import pytest
from pyspark.sql import SparkSession

import ids
from ids.errors import CheckpointError, IdsError, ScriptError, SourceError, StateError
from ids.spark.streaming import ask, start
from ids.spark.streaming.retained import keeping
from ids.spark.streaming.retained.current import steadily
from ids.spark.streaming.retained.folder import Folder
from ids.spark.streaming.retained.manifest import Manifest, Piece
from ids.spark.streaming.snapshots import Snapshots
from tests.spark.streams import arrive, events, run, source
from tests.spark.test_crash_points import Crash, dying_at
from tests.spark.test_retained import checked, inside_or_newer, kept, ordered, script


@pytest.mark.slow
def test_a_crash_at_any_write_leaves_the_rows_of_an_undisturbed_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "_TOGETHER", 2)
    table = events(120, 61, 50)
    arrive(table, tmp_path / "in", [30, 60, 90])
    crashes = 0
    for moment in range(1, 80):
        with dying_at(moment):
            try:
                wild = run(spark, script(), tmp_path / "in", retain=True)
                break
            except Crash:
                crashes += 1
    assert crashes >= 12
    manifest, rows = kept(tmp_path / "ck")
    assert any("-merged" in piece.name for piece in manifest.pieces)
    assert ordered(rows) == inside_or_newer(table, wild)
    checked(wild, table, "AVG(latency)", "slow OR tier IS NULL")


def test_a_stream_at_work_is_asked_while_it_writes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "_TOGETHER", 2)
    table = events(200, 62, 60)
    arrive(table, tmp_path / "in", list(range(25, 200, 25)))
    at_all_instants = {
        emit["emit_at"]: (emit["q"], emit["n"])
        for emit in ids.sql(
            script(items="SHAPLEY_ATTRIBUTE(AVG(latency), slow) AS q"), events=table
        ).to_pylist()
    }
    running = start(
        script(), checkpoint=tmp_path / "ck", retain=True, events=source(spark, tmp_path / "in")
    )
    try:
        until, answers = monotonic() + 300, 0
        while running.active and monotonic() < until and running.progress().batch != 7:
            try:
                before = running.window_end
                found = running.attribute("AVG(latency)", "slow")
            except StateError as error:
                assert "emitted nothing yet" in str(error)
                sleep(0.05)
                continue
            after = running.window_end
            possible = [v for at, v in at_all_instants.items() if before <= at <= after]
            assert isinstance(found, ids.Attribution)
            assert (found.value, found.n) in [*possible, (0.0, 0)]
            answers += 1
        assert answers and running.progress().batch == 7
    finally:
        running.stop()
    checked(running, table, "AVG(latency)", "slow")


def _made(root: Path, number: int, *files: str) -> Manifest:
    """A snapshot that names some files, which are there."""
    pieces = []
    for file in files:
        path = root / "retained" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"rows")
        pieces.append(Piece(file, 1, 4, 1, 9))
    manifest = Manifest({}, {}, 10, 3, None, 5, tuple(pieces))
    snapshots = Snapshots(root / "ids")
    manifest.save(snapshots.fresh(number))
    snapshots.commit(number, {})
    return manifest


def _on_disk(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "retained").iterdir() if path.is_dir())


def test_files_go_when_no_snapshot_names_them_and_nobody_reads(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.begin("")
    for number in range(4):
        _made(tmp_path, number, f"{number:08d}/0.parquet")
    (tmp_path / "retained/.00000009.tmp").mkdir()
    with folder.reading(), folder.reading():
        folder.sweep()
        assert len(_on_disk(tmp_path)) == 5
    folder.sweep()
    assert _on_disk(tmp_path) == ["00000001", "00000002", "00000003"]


def test_a_reader_whose_file_is_gone_looks_again(tmp_path: Path) -> None:
    Folder(tmp_path).begin("")
    _made(tmp_path, 0, "00000000/0.parquet")
    seen: list[str] = []

    def read(manifest: Manifest) -> str:
        (piece,) = manifest.pieces
        seen.append(piece.name)
        if len(seen) == 1:
            (tmp_path / "retained" / piece.name).unlink()
            _made(tmp_path, 1, "00000001/0.parquet")
            raise SourceError("gone")
        return piece.name

    assert steadily(tmp_path, read) == "00000001/0.parquet"
    assert seen == ["00000000/0.parquet", "00000001/0.parquet"]


def test_a_reader_gives_up_on_what_is_lost_and_on_what_is_wrong(tmp_path: Path) -> None:
    Folder(tmp_path).begin("")
    _made(tmp_path, 0, "00000000/0.parquet")
    tries = 0

    def read(_: Manifest) -> None:
        nonlocal tries
        tries += 1
        raise SourceError("cannot")

    with pytest.raises(SourceError):
        steadily(tmp_path, read)
    assert tries == 1
    (tmp_path / "retained/00000000/0.parquet").unlink()
    with pytest.raises(SourceError):
        steadily(tmp_path, read)
    assert 2 < tries < 10


def test_harmed_rows_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    arrive(events(60, 63, 40), tmp_path / "in", [])
    run(spark, script(), tmp_path / "in", retain=True)
    file = tmp_path / "ck/retained/00000000/0.parquet"
    content = file.read_bytes()
    at = content.index(b"premium") if b"premium" in content else 200
    flipped = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
    for harmed in (flipped, content[: len(content) // 2], None):
        file.unlink()
        if harmed is not None:
            file.write_bytes(harmed)
        with pytest.raises(IdsError) as refused:
            ask(tmp_path / "ck", "COUNT(*)", "tier = 'premium'", spark=spark)
        assert str(file) in str(refused.value) and "\n" not in str(refused.value)


def test_what_cannot_be_asked_is_said(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is no checkpoint; name the folder"):
        ask(tmp_path / "none", "AVG(latency)", "eu", spark=spark)
    arrive(events(20, 64, 5).slice(0, 2), tmp_path / "in", [])
    running = run(spark, script(slide="30"), tmp_path / "in", retain=True, lateness="5 minutes")
    with pytest.raises(StateError, match="emitted nothing yet"):
        running.attribute("AVG(latency)", "eu")
    with pytest.raises(StateError, match="emitted nothing yet"):
        _ = running.window_end
    rows = (
        script()
        .replace("RANGE INTERVAL '30' SECOND", "ROWS 5")
        .replace("SLIDE INTERVAL '10' SECOND", "")
    )
    with pytest.raises(ScriptError, match="ROWS has none; use RANGE"):
        run(spark, rows, tmp_path / "in", retain=True, checkpoint=tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_place_that_cannot_be_written_is_named(spark: SparkSession, tmp_path: Path) -> None:
    arrive(events(20, 65, 20), tmp_path / "in", [])
    (tmp_path / "ck").mkdir()
    (tmp_path / "ck/retained").write_text("in the way")
    with pytest.raises(CheckpointError, match=r"cannot keep rows in .*retained"):
        run(spark, script(), tmp_path / "in", retain=True)
    (tmp_path / "ck/retained").unlink()
    run(spark, script(), tmp_path / "in", retain=True)
