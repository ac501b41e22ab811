"""Kept rows survive crashes, readers at any moment, and harm: the right answer or a clear error."""

from __future__ import annotations

from pathlib import Path
from time import monotonic, sleep

import pytest
from pyspark.sql import SparkSession

import ids
from ids.errors import CheckpointError, IdsError, ScriptError, SourceError, StateError
from ids.spark import start
from ids.spark.file_system import files_at
from ids.spark.stream_question import Current, KeptRows, ask, steadily
from ids.spark.stream_store import Manifest, Piece, Store
from tests.spark.streams import arrive, events, run, source
from tests.spark.test_crash_points import Crash, dying_at
from tests.spark.test_retained import checked, inside_or_newer, kept, ordered, script


@pytest.mark.slow
def test_a_crash_at_any_write_leaves_the_rows_of_an_undisturbed_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ids.spark.stream_store._TOGETHER", 2)
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
    _, pieces, rows = kept(tmp_path / "ck")
    assert any("-merged" in piece.name for piece in pieces)
    assert ordered(rows) == inside_or_newer(table, wild)
    checked(wild, table, "AVG(latency)", "slow OR tier IS NULL")


@pytest.mark.slow
def test_a_stream_at_work_is_asked_while_it_writes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ids.spark.stream_store._TOGETHER", 2)
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
        while running.is_active and monotonic() < until and running.last_progress.batch != 7:
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
        assert answers and running.last_progress.batch == 7
    finally:
        running.stop()
    checked(running, table, "AVG(latency)", "slow")


def _made(store: Store, number: int) -> None:
    """A batch that keeps what it and the one before it wrote."""
    store.files.make(f"data/{number:08d}-a-retained")
    store.files.write(f"data/{number:08d}-a-retained/part-0.parquet", b"rows")
    pieces = [Piece(f"data/{n:08d}-a-retained", 1, 4, 1, 1, 1, 9) for n in (number, number - 1)]
    facts = {"step": {"retained": KeptRows({}, {}, 10, 3, "", emitted_until=5).facts()}}
    store.commit(Manifest(number, facts, {"retained": pieces[: number + 1]}))


def _store(root: Path) -> Store:
    store = Store(files_at(root))
    store.files.make("ids")
    return store


def _on_disk(root: Path) -> list[int]:
    return sorted(int(path.parent.name[:8]) for path in (root / "data").glob("*/part-*"))


def test_files_go_when_no_manifest_names_them(tmp_path: Path) -> None:
    store = _store(tmp_path)
    for number in range(6):
        _made(store, number)
        assert store.manifests() == [n for n in (number - 2, number - 1, number) if n >= 0]
        assert _on_disk(tmp_path) == [n for n in range(number - 3, number + 1) if n >= 0]
    again = Store(files_at(tmp_path))
    store.files.make("data/00000006-b-retained")
    store.files.write("data/00000006-b-retained/part-0.parquet", b"of a batch that died")
    latest = again.begin()
    assert latest is not None and latest.batch == 5
    assert _on_disk(tmp_path) == [2, 3, 4, 5]
    _made(again, 6)
    assert _on_disk(tmp_path) == [3, 4, 5, 6]


def test_a_reader_whose_rows_are_gone_looks_again(tmp_path: Path) -> None:
    store = _store(tmp_path)
    _made(store, 0)
    seen: list[int] = []

    def read(current: Current) -> int:
        seen.append(current.pieces[0].batch)
        if len(seen) == 1:
            for number in (1, 2, 3):
                _made(store, number)
            raise SourceError("gone")
        return seen[-1]

    assert steadily(tmp_path, read) == 3
    assert seen == [0, 3]


def test_a_reader_gives_up_on_what_is_lost_and_on_what_is_wrong(tmp_path: Path) -> None:
    store, tries = _store(tmp_path), 0
    _made(store, 0)

    def read(_: Current, more: int = 0) -> None:
        nonlocal tries
        for number in range(1 + more * tries, 1 + more * (tries + 1)):
            _made(store, number)
        tries += 1
        raise SourceError("cannot")

    with pytest.raises(SourceError, match="cannot"):
        steadily(tmp_path, read)
    assert tries == 1
    tries = 0
    with pytest.raises(SourceError, match="cannot"):
        steadily(tmp_path, lambda current: read(current, 3))
    assert 2 < tries < 10


def test_harmed_rows_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    arrive(events(60, 63, 40), tmp_path / "in", [])
    run(spark, script(), tmp_path / "in", retain=True)
    (file,) = (tmp_path / "ck/data").glob("00000000-*-retained/part-*.parquet")
    content = file.read_bytes()
    at = content.index(b"premium")
    flipped = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
    half = content[: len(content) // 2]
    for harmed, by_hadoop in ((flipped, True), (flipped, False), (half, False), (None, False)):
        file.unlink()
        if harmed is not None:
            file.write_bytes(harmed)
        if not by_hadoop:  # then the checksums of Parquet's pages tell
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        with pytest.raises(IdsError) as refused:
            ask(tmp_path / "ck", "COUNT(*)", "tier = 'premium'", spark=spark)
        told = str(refused.value)
        assert str(file.parent) in told and "\n" not in told, told
        assert "restore the whole checkpoint" in told, told


def test_what_cannot_be_asked_is_said(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is not a checkpoint; give the checkpoint directory"):
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
    with pytest.raises(ScriptError, match="this window is ROWS; use RANGE"):
        run(spark, rows, tmp_path / "in", retain=True, checkpoint=tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_place_that_cannot_be_written_is_named(spark: SparkSession, tmp_path: Path) -> None:
    arrive(events(20, 65, 20), tmp_path / "in", [])
    (tmp_path / "ck").mkdir()
    (tmp_path / "ck/data").write_text("in the way")
    with pytest.raises(CheckpointError, match=r"cannot write checkpoint .*/ck/data/0.*: Not a dir"):
        run(spark, script(), tmp_path / "in", retain=True)
    (tmp_path / "ck/data").unlink()
    run(spark, script(), tmp_path / "in", retain=True)
