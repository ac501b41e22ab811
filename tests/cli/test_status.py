"""``ids status`` over checkpoints that are written here, by the store itself; no Spark runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import fs

import ids
from ids.errors import CheckpointError
from ids.spark.file_system import files_at
from ids.spark.stream_checkpoint import Script, ScriptItem, Totals, claim
from ids.spark.stream_store import FORMAT, Manifest, Piece, Store, encoded, manifest_name
from tests.cli.conftest import Outcome

Call = Callable[..., Outcome]

STREAM = {
    "version": FORMAT,
    "table": "events",
    "window": "RANGE 30 seconds PRECEDING SLIDE 10 seconds",
    "WHERE": None,
    "PARTITION BY": [],
    "ORDER BY": ["at"],
    "output": "/data/out",
}
SCRIPT = Script(
    (
        ScriptItem("c", "COUNT(*)", (), 0, None),
        ScriptItem("eu", "SHAPLEY_ATTRIBUTE(COUNT(*), region = 'EU')", ("share",), 0, 0),
    ),
    ("*",),
    (0,),
    ("region = 'EU'",),
    ("at", "region"),
)
DAY = 86_400_000_000
NEVER = dict.fromkeys(("batch", "ended", "watermark", "written_by"))


TOTALS = Totals(1_234, 5, 2, 1, 88)


def manifest(batch: int = 3, totals: Totals = TOTALS, **facts: Any) -> Manifest:
    """One as a batch leaves it."""
    known = {
        "totals": asdict(totals),
        "rows": 600,
        "seconds": 1.5,
        "watermark": 20_000 * DAY,
        "waiting": 0,
        "at": time(),
        "script": SCRIPT.facts(),
        "step": {},
        "output": {},
    }
    panes = [Piece(f"data/0000000{n}-aa-panes", 2, 3_000 * n, 40 * n) for n in (1, 2)]
    windows = [Piece("data/00000002-aa-windows", 1, 1_000, 9)]
    return Manifest(batch, known | facts, {"panes": panes, "windows": windows})


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return written(tmp_path / "ck", manifest())


def written(place: Path, *manifests: Manifest) -> Path:
    files = files_at(place)
    files.make("ids")
    claim(files, STREAM)
    for each in manifests:
        Store(files).commit(each)
    return place


def test_a_table_tells_what_the_newest_manifest_holds(checkpoint: Path, call: Call) -> None:
    code, out, err = call("status", checkpoint)
    assert (code, err) == (0, "")
    told = {line[:10].strip(): line[10:].strip() for line in out.splitlines()}
    assert told["stream"] == "events, RANGE 30 seconds PRECEDING SLIDE 10 seconds"
    assert told["output"] == "/data/out"
    assert told["items"] == "c = COUNT(*)"
    assert told[""] == "eu = SHAPLEY_ATTRIBUTE(COUNT(*), region = 'EU')"
    assert told["rows"] == "1,234: 5 late, 2 ahead, 1 bad"
    assert told["emits"] == "88"
    assert told["watermark"].startswith("2024-10-04 00:00:00, ")
    assert told["watermark"].endswith(" days behind the clock")
    assert told["last batch"] == "number 3, 0 seconds ago: 600 rows in 1.5 s, 400 rows/s"
    assert told["state"] == "129 rows, 9.8 KB in 5 files"
    assert told["written by"] == f"IDS {ids.__version__}, format 2"


@settings(suppress_health_check=list(HealthCheck), max_examples=30)
@given(
    st.builds(Totals, *[st.integers(0, 10**15)] * 5),
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 10**12), st.integers(0, 10**9))),
    st.none() | st.integers(-DAY * 10_000, DAY * 30_000),
    st.integers(0, 10**9),
)
def test_json_and_python_tell_the_same_of_any_manifest(
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    totals: Totals,
    pieces: list[tuple[int, int, int]],
    watermark: int | None,
    batch: int,
) -> None:
    from ids.cli.app import invoke

    place = tmp_path_factory.mktemp("any") / "ck"
    held = [Piece("data/00000000-aa-panes", *each) for each in pieces]
    facts = manifest(totals=totals, watermark=watermark).facts
    written(place, Manifest(batch, facts, {"panes": held[1:], "windows": held[:1]}))
    assert invoke(["status", str(place), "--json"]) == 0
    told, found = json.loads(capsys.readouterr().out), ids.spark.status(place)
    assert told["totals"] == asdict(totals) == asdict(found.totals)
    assert (told["batch"], told["rows"], told["seconds"]) == (batch, 600, 1.5)
    for number, name in enumerate(("state_files", "state_bytes", "state_rows")):
        assert told[name] == getattr(found, name) == sum(piece[number] for piece in pieces)
    assert told["written_by"] == ids.__version__ and told["format"] == FORMAT
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    expected = None if watermark is None else epoch + timedelta(microseconds=watermark)
    assert found.watermark == expected
    assert told["watermark"] == (expected and expected.isoformat())
    if expected is None:
        assert told["lag_seconds"] is None is found.lag
    else:
        asked = datetime.fromisoformat(told["asked"])
        assert told["lag_seconds"] == (asked - expected).total_seconds()
    assert 0 <= told["idle_seconds"] < 60
    assert set(told["items"]) == {"c", "eu"}


def test_a_stream_without_a_batch_yet_has_nothing_to_tell(tmp_path: Path, call: Call) -> None:
    place = written(tmp_path / "ck")
    code, out, _ = call("status", place)
    assert code == 0 and out.splitlines()[-1].split() == ["last", "batch", "none", "yet"]
    told = json.loads(call("status", place, "--json").out)
    assert NEVER.items() <= told.items()
    assert (told["items"], told["totals"]) == ({}, asdict(Totals()))


def test_a_manifest_that_was_cut_short_leaves_the_one_before_it(
    checkpoint: Path, call: Call
) -> None:
    whole = encoded(manifest(4))
    for length in (0, 1, len(whole) // 2, len(whole) - 2):
        (checkpoint / manifest_name(4)).write_bytes(whole[:length])
        assert json.loads(call("status", checkpoint, "--json").out)["batch"] == 3
    (checkpoint / manifest_name(4)).write_bytes(whole)
    assert json.loads(call("status", checkpoint, "--json").out)["batch"] == 4


def refused(place: object, call: Call) -> str:
    """The one line that a place is refused with."""
    code, out, err = call("status", place)
    assert (code, out) == (1, "") and err.startswith("error: ") and err.count("\n") == 1
    return err


def test_what_is_no_checkpoint_is_refused_in_one_line(tmp_path: Path, call: Call) -> None:
    assert "none does not exist; give the checkpoint directory of a stream" in refused(
        tmp_path / "none", call
    )
    (tmp_path / "file").touch()
    assert "file is a file; give the checkpoint directory of a stream" in refused(
        tmp_path / "file", call
    )
    (tmp_path / "empty").mkdir()
    assert "empty is not a checkpoint; give the checkpoint directory" in refused(
        tmp_path / "empty", call
    )


@pytest.mark.parametrize("at", range(0, 1_000, 97))
def test_a_manifest_with_a_changed_bit_is_refused(checkpoint: Path, call: Call, at: int) -> None:
    path = checkpoint / manifest_name(3)
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    assert "00000003.json is missing or was altered; restore the whole checkpoint" in refused(
        checkpoint, call
    )


def test_a_checkpoint_of_another_format_is_refused_by_its_version(
    checkpoint: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = ids.__version__
    with monkeypatch.context() as later:
        later.setattr("ids.spark.stream_store.FORMAT", 3)
        later.setattr("ids.spark.stream_store._version", lambda: "9.1")
        (checkpoint / manifest_name(4)).write_bytes(encoded(manifest(4)))
    line = refused(checkpoint, call)
    assert f"has format 3, written by IDS 9.1, but IDS {ours} reads format 2; use the" in line


def test_a_checkpoint_of_the_first_format_is_refused(tmp_path: Path, call: Call) -> None:
    snapshot = tmp_path / "ck" / "ids" / "00000041"
    snapshot.mkdir(parents=True)
    (snapshot / "ids-snapshot").write_bytes(b"IDS-CHECKPOINT\n")
    (snapshot.parent / "stream").write_text('{"version": 1, "script": []}')
    assert f"has format 1, but IDS {ids.__version__} reads format 2; use" in refused(
        tmp_path / "ck", call
    )


def test_neither_java_nor_pyspark_is_needed(checkpoint: Path) -> None:
    program = "import sys; sys.modules['pyspark'] = None; from ids.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "status", str(checkpoint), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["batch"] == 3


def reached(system: object, root: str, asked: list[str] | None = None) -> SimpleNamespace:
    """Stands for pyarrow.fs where every URI leads to one place."""

    def from_uri(uri: str) -> tuple[object, str]:
        if asked is not None:
            asked.append(uri)
        return system, root

    opened = SimpleNamespace(from_uri=from_uri)
    return SimpleNamespace(FileSystem=opened, FileSelector=fs.FileSelector, FileType=fs.FileType)


def test_an_object_store_is_read_through_pyarrow(
    checkpoint: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    bucket = fs.SubTreeFileSystem(str(checkpoint.parent), fs.LocalFileSystem())
    monkeypatch.setattr("ids.spark.file_system.fs", reached(bucket, "ck/", asked))
    told = json.loads(call("status", "s3a://bucket/ck/", "--json").out)
    assert told["batch"] == 3 and told["checkpoint"] == "s3a://bucket/ck"
    assert set(asked) == {"s3://bucket/ck"}
    monkeypatch.setattr("ids.spark.file_system.fs", reached(bucket, "other"))
    assert "s3a://bucket/other is not a checkpoint" in refused("s3a://bucket/other", call)


def test_a_store_that_cannot_be_read_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_: str) -> None:
        raise OSError("access denied\nat some place")

    monkeypatch.setattr(
        "ids.spark.file_system.fs", reached(SimpleNamespace(open_input_stream=denied), "ck")
    )
    with pytest.raises(CheckpointError, match=r"cannot read checkpoint gs://b/ck: access denied$"):
        ids.spark.status("gs://b/ck")
