"""Servers on loopback, each a process group of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["serving_at"]

_PATIENCE = 120  # seconds for a server to answer, before the tests give up on it


@contextmanager
def serving_at(
    port: int, command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A server in ``folder`` that answers at ``port``, for as long as the block lasts."""
    said = folder / "said"
    with said.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=folder,
            env=env,
            start_new_session=True,
        )
    try:
        _await(process, port, said)
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _await(process: subprocess.Popen[bytes], port: int, said: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"no server: {said.read_text(errors='replace')[-2000:]}")
