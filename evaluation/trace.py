"""How far a call walks through the package: ``python -m evaluation.trace``.

Prints, for each of four calls, the files of ``ids`` that it passes through, the functions, and how
deep they call each other. Each call is made twice and the second one is traced, so that imports
and compilation do not count; ``--cold`` traces the first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import ids

_PACKAGE = str(Path(ids.__file__).parent)
_ROWS = {
    "t": [1, 2, 3, 4, 5, 6],
    "region": ["EU", "US", "EU", "US", "EU", "US"],
    "latency": [40.0, 38.0, 44.0, 41.0, 180.3, 39.0],
}
_SCRIPT = """SELECT AVG(latency) AS mean, SHAPLEY_ATTRIBUTE(AVG(latency), region = 'EU') AS eu
FROM events WINDOW w AS (ORDER BY t ROWS 4 PRECEDING) EMIT CHANGES"""


def trace(call: Callable[[], object]) -> tuple[int, int, int]:
    """Files of the package that a call passes through, functions, and depth."""
    functions: set[tuple[str, int]] = set()
    depth = deepest = 0

    def watch(frame: FrameType, event: str, _: object) -> None:
        nonlocal depth, deepest
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE) or code.co_name.startswith("<"):
            return
        if event == "call":
            functions.add((code.co_filename, code.co_firstlineno))
            depth += 1
            deepest = max(deepest, depth)
        elif event == "return":
            depth -= 1

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len({file for file, _ in functions}), len(functions), deepest


def _main() -> None:
    engine = ids.Engine(window=ids.CountWindow(4), value="latency")
    engine.register("eu", "region = 'EU'")
    calls: dict[str, Callable[[], object]] = {
        "ids.sql on six rows": lambda: ids.sql(_SCRIPT, events=_ROWS),
        "Engine.ingest": lambda: engine.ingest(_ROWS),
        "a registered question": lambda: engine.attribute("AVG", "eu"),
        "an unregistered question": lambda: engine.attribute("AVG", "latency > 40"),
    }
    for name, call in calls.items():
        if "--cold" not in sys.argv:
            call()
            if "question" in name:
                engine.ingest(_ROWS)  # answers are remembered until the window slides
        files, functions, depth = trace(call)
        print(f"{name}: {files} files, {functions} functions, {depth} deep")


if __name__ == "__main__":
    _main()
