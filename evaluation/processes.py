"""What a process of its own has to say: a module of ours run by the same Python, answering JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from ids.errors import StateError

__all__ = ["said_by"]


def said_by(module: str, *arguments: object) -> Any:
    """Run ``python -m module arguments`` to its end; what it printed, read as JSON."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        why = done.stderr.strip().rpartition("\n")[2]
        raise StateError(f"{' '.join(command[1:])} failed: {why}")
    return json.loads(done.stdout)
