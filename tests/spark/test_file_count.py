"""A checkpoint does not fill with small files, however many batches a stream has taken."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from ids.spark.file_system import files_at
from ids.spark.stream_store import Manifest, Piece, Store, alike
from tests.spark.streams import PAPER, arrive, events, run

TOGETHER, SMALL = 16, 2**16  # so many small pieces become one; from so many rows on none is small
CLASSES = 4  # of sizes below SMALL


class Rows:
    """Numbers that are written as Spark writes rows: a directory with a file, and a checksum."""

    def __init__(self) -> None:
        self.write = self

    def mode(self, _: str) -> Rows:
        return self

    def options(self, **_: str) -> Rows:
        return self

    def partitionBy(self, *_: str) -> Rows:
        return self

    def parquet(self, place: str) -> None:
        path = Path(place.removeprefix("file:"))
        path.mkdir(parents=True)
        pq.write_table(pa.table({"x": [1]}), path / "part-0.parquet")
        (path / ".part-0.parquet.crc").touch()


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(
    sizes=st.lists(st.integers(0, 3 * SMALL), min_size=1, max_size=8),
    window=st.integers(1, 400),
    shrinks=st.sampled_from([1, 2, 16]),
)
def test_pieces_are_few_small_ones_and_such_as_are_large(
    sizes: list[int], window: int, shrinks: int
) -> None:
    """A batch brings a piece, a piece leaves with its window; ``shrinks`` rows are one pane's."""
    pieces: list[Piece] = []
    for number in range(500):
        rows = sizes[number % len(sizes)]
        if rows:
            pieces.append(Piece(f"data/{number}", 1, 100, rows, last=number))
        chosen = alike(pieces)
        if chosen:
            together = sum(piece.rows for piece in chosen)
            merged = Piece(
                f"data/{number}m",
                1,
                100,
                max(together // shrinks, 1),
                last=max(p.last for p in chosen),
            )
            pieces = [merged, *(piece for piece in pieces if piece not in chosen)]
        pieces = [piece for piece in pieces if piece.last > number - window]
        small = [piece for piece in pieces if piece.rows < SMALL]
        assert len(small) <= CLASSES * TOGETHER
        assert len(pieces) - len(small) <= sum(p.rows for p in pieces) // SMALL


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_no_kept_manifest_names_is_gone_after_every_batch(
    quick: None, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Batches that write several pieces, and name any of theirs and of the last batch's."""
    place = tmp_path_factory.mktemp("store")
    (place / "ids").mkdir()
    store, rows = Store(files_at(place)), Rows()
    kept: list[Manifest] = []
    named: list[Piece] = []
    for number in range(12):
        kinds = data.draw(st.sets(st.sampled_from(["panes", "panes-merged", "windows", "waiting"])))
        written = [store.write(rows, number, kind) for kind in sorted(kinds)]  # type: ignore[arg-type]
        named = [piece for piece in [*named, *written] if data.draw(st.booleans())]
        kept = [*kept, Manifest(number, {}, {"panes": named})][-3:]
        store.commit(kept[-1])
        if data.draw(st.integers(0, 4)) == 0:  # a crash in the next batch, and a new start
            store.write(rows, number + 1, "panes")  # type: ignore[arg-type]
            store = Store(files_at(place))
            assert store.begin() == store.latest()
        needed = set().union(*(manifest.named() for manifest in kept))
        there = {f"data/{path.name}" for path in (place / "data").glob("*")}
        assert there == needed
        assert len(list((place / "ids").iterdir())) == len(kept)


def files_below(place: Path) -> dict[str, int]:
    """How many files each part of a checkpoint has, without Hadoop's checksums of them."""
    return {
        part.name: sum(path.is_file() and path.suffix != ".crc" for path in part.rglob("*"))
        for part in place.iterdir()
        if part.is_dir()
    }


@pytest.mark.slow
def test_forty_batches_leave_no_more_files_than_half_of_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = events(400, 60, 400)
    seen = []
    batches = iter(range(0, 400, 10))

    def take(many: int) -> None:
        for start in (next(batches) for _ in range(many)):
            arrive(table.slice(start, 10), tmp_path / "in", [], start // 10)
        run(spark, PAPER, tmp_path / "in")
        seen.append(files_below(tmp_path / "ck"))

    take(24)
    take(16)
    assert seen[1]["data"] <= 20, seen
    assert all(seen[1][part] <= seen[0][part] + 8 for part in seen[1]), seen
    assert sum(seen[1].values()) < 125, seen
