"""What the driver does in a batch of a large stream, timed on made-up manifests and files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import perf_counter

from ids.sink import LocalFiles
from ids.spark.stream_store import Manifest, Manifests, Piece, Store, encoded

__all__ = ["simulated"]

_READ = 10  # pieces that a batch reads: panes that have come and gone since windows were written


def simulated(panes: int, files: int) -> dict[str, float]:
    """Seconds to commit a manifest of so many panes, to load it, and to check what is read.

    files  of each piece
    """
    facts = {"parts": [[0, 3, 0]]}
    pieces = [
        Piece(f"data/{n:08d}-ab12-panes", files, 0, 10**8, 10**8, n, n, facts) for n in range(panes)
    ]
    manifest = Manifest(panes, {"step": {}}, {"panes": pieces})
    with tempfile.TemporaryDirectory(prefix="capacity-") as directory:
        root = Path(directory)
        for place in ("ids", "data"):
            (root / place).mkdir()
        for piece in pieces[-_READ:]:
            (root / piece.name).mkdir()
            for number in range(files):
                (root / piece.name / f"part-{number:05d}.parquet").touch()
        local = LocalFiles(root)
        store, started = Store(local), perf_counter()
        store.commit(manifest)
        committed = perf_counter()
        found = Manifests(local).latest()
        loaded = perf_counter()
        for piece in pieces[-_READ:]:
            store.check(piece)
        assert found is not None
        assert found.pieces == manifest.pieces
        return {
            "panes": panes,
            "files": files,
            "manifest_bytes": len(encoded(manifest)),
            "commit": committed - started,
            "read": loaded - committed,
            "check": perf_counter() - loaded,
        }
