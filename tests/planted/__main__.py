"""Plant each bug in a scratch copy of the tree, and see which test of the fast set fails.

    python -m tests.planted [WORD …] [--whole]

A WORD chooses the bugs whose name or file holds it. A bug is looked for by the tests expected to
see it, and by the whole set where those pass (``--whole``: by the whole set at once). Exit code 1
if one was seen by none. Takes an hour for all of them: Spark starts anew for many.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from tests.planted.bugs import ROOT, Bug, load

_LEFT_OUT = (".*", "__pycache__", "*-report", "build", "dist", "*.egg-info")
_RED = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+)", re.MULTILINE)


def main() -> int:
    """Plant what was asked for; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted")
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--whole", action="store_true", help="run the whole fast set at once")
    asked = parser.parse_args()
    bugs = [b for b in load() if not asked.words or any(w in b.name + b.file for w in asked.words)]
    with TemporaryDirectory(prefix="ids-planted-") as folder:
        tree = Path(folder, "tree")
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        # red must mean the bug; and kernels are compiled for what follows
        if fault := first_red(tree, [] if asked.whole else sorted({bug.first for bug in bugs})):
            print(f"without any bug {fault} fails")
            return 1
        caught = {bug: caught_by(tree, bug, asked.whole) for bug in bugs}
    print(table(caught))
    return 0 if all(caught.values()) else 1


def caught_by(tree: Path, bug: Bug, whole: bool) -> str | None:
    """The first test that fails with the bug in the tree."""
    started = perf_counter()
    with planted(tree, bug):
        found = None if whole else first_red(tree, [bug.first])
        found = found or first_red(tree, [])
    print(f"{perf_counter() - started:5.0f} s  {bug.name}: {found or 'NOT CAUGHT'}", flush=True)
    return found


@contextmanager
def planted(tree: Path, bug: Bug) -> Iterator[None]:
    """The tree with the bug in it, while inside."""
    path = tree / bug.path
    text, known = path.read_text(encoding="utf-8"), path.stat()
    path.write_text(bug.planted(text), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(known.st_atime_ns, known.st_mtime_ns))  # caches go by it


def first_red(tree: Path, where: Sequence[str]) -> str | None:
    """The first test that fails, of these files or (of none) of the fast set as it is run."""
    how = where or ["-n", "2", "--dist", "loadgroup"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", *how],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"},
        capture_output=True,
        text=True,
    )
    red = _RED.search(done.stdout)
    if done.returncode not in (0, 1) or (done.returncode == 1 and red is None):
        raise SystemExit(f"pytest {' '.join(how)} did not run:\n{done.stdout}{done.stderr}")
    return red[1] if red and done.returncode else None


def table(caught: dict[Bug, str | None]) -> str:
    """What was planted and what saw it, in Markdown."""
    lines = ["| bug | package | caught by |", "|---|---|---|"]
    for bug, found in caught.items():
        told = f"`{found}`" if found else "nothing"
        lines.append(f"| {bug.name} | {bug.package} | {told} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
