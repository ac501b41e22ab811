"""The command line. ``app`` lists the commands."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

__all__ = ["main"]


def main(app: typer.Typer | None = None, name: str = "ids") -> None:
    """Run ``ids``, or another app under its own name, and exit.

    Ctrl-C ends the process with code 130 at any time.
    """
    handled = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN  # ignored under nohup
    if handled:
        # nothing needs to be cleaned up during the imports and at the exit
        signal.signal(signal.SIGINT, _exit)
    from ids.cli.app import app as own
    from ids.cli.app import invoke

    try:
        if handled:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = invoke(sys.argv[1:], app or own, name)
        if handled:
            signal.signal(signal.SIGINT, _exit)
    except KeyboardInterrupt:
        _exit()
    sys.exit(code)


def _exit(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)
