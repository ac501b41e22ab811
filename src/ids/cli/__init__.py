"""The command line: one file a verb."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

__all__ = ["main"]


def main(app: typer.Typer | None = None, name: str = "ids") -> None:
    """The entry point of ``ids``, or of another app under its own name.

    Ctrl-C ends it with code 130, at whatever moment it comes.
    """
    heeded = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN  # as it is under nohup
    if heeded:
        # while modules are imported, and on the way out, there is nothing to put in order
        signal.signal(signal.SIGINT, _leave)
    from ids.cli.app import app as own
    from ids.cli.app import invoke

    try:
        if heeded:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = invoke(sys.argv[1:], app or own, name)
        if heeded:
            signal.signal(signal.SIGINT, _leave)
    except KeyboardInterrupt:
        _leave()
    sys.exit(code)


def _leave(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)
