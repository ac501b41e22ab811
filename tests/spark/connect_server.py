"""A Spark Connect server on loopback, in a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from ids.spark.java import ensure_java
from tests.spark.cluster import LIGHT, free_port

__all__ = ["serving"]

_PATIENCE = 90  # seconds for the server to answer, before the tests give up on it
_SPARK = Path(pyspark.__file__).parent
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_SETTINGS = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "3",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The server's ``sc://`` address, for as long as the block lasts."""
    port = free_port()
    settings = {**_SETTINGS, "spark.connect.grpc.binding.port": str(port)}
    options = [word for item in settings.items() for word in ("--conf", "=".join(item))]
    command = [str(_SPARK / "bin" / "spark-submit"), "--master", "local[2]", "--class", _SERVER]
    said = folder / "said"
    with said.open("wb") as out:
        process = subprocess.Popen(
            [*command, "--driver-java-options", LIGHT, *options, "spark-internal"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=folder,
            env={
                **os.environ,
                "JAVA_HOME": str(ensure_java()),
                "SPARK_HOME": str(_SPARK),
                "PYSPARK_PYTHON": sys.executable,
            },
            start_new_session=True,
        )
    try:
        _await(process, port, said)
        yield f"sc://127.0.0.1:{port}"
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
