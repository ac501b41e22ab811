"""A real Spark standalone cluster on loopback: a master and workers, a process each."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from ids.spark.session import ensure_java

__all__ = ["JAVA_OPTIONS", "LIGHT", "Cluster", "free_port", "running"]

_PATIENCE = 90  # seconds for a process of the cluster to come up, before the tests give up on it
# Of Java: the second compiler costs minutes of the tests' small queries, and gains nothing.
JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
LIGHT = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"

_SPARK = Path(pyspark.__file__).parent


def free_port() -> int:
    """A port that nobody listens on, a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Cluster:
    """The processes; a worker and the executors it starts are a process group of their own.

    own  a directory of which every worker has one of its own, empty at first
    """

    folder: Path
    own: Path | None = None
    port: int = field(default_factory=free_port)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def master(self) -> str:
        """The address of the master."""
        return f"spark://127.0.0.1:{self.port}"

    def start_master(self) -> None:
        """Start the master, and wait until it answers."""
        process = self._start("master.Master", "--port", str(self.port))
        self._await(process, lambda said: "New state: ALIVE" in said)

    def workers(self, count: int) -> list[int]:
        """The process groups of ``count`` living workers, started where there are fewer."""
        self._workers = [worker for worker in self._workers if worker.poll() is None]
        fresh = [self._worker() for _ in range(count - len(self._workers))]
        for worker in fresh:
            self._await(worker, lambda said: "Successfully registered with master" in said)
        self._workers += fresh
        return [worker.pid for worker in self._workers]

    def _worker(self) -> subprocess.Popen[bytes]:
        work = self.folder / f"work-{len(self.processes)}"
        size = ["--cores", "1", "--memory", "1g", "--work-dir", str(work)]
        return self._start("worker.Worker", *size, self.master)

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        said = self._said(len(self.processes))
        command = [str(_SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        if self.own is not None and name == "worker.Worker":
            mounted = 'mount -t tmpfs ids "$0" && exec "$@"'
            command = ["unshare", "--mount", "sh", "-c", mounted, str(self.own), *command]
        place = ["--host", "127.0.0.1", "--webui-port", "0"]
        with said.open("wb") as out:
            process = subprocess.Popen(
                [*command, *place, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=_environment(),
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def _said(self, number: int) -> Path:
        return self.folder / f"said-{number}"

    def _await(self, process: subprocess.Popen[bytes], is_up: Callable[[str], bool]) -> None:
        """Wait until what the process says tells that it is up."""
        said = self._said(self.processes.index(process))
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline and process.poll() is None:
            if is_up(said.read_text(encoding="utf-8", errors="replace")):
                return
            time.sleep(0.1)
        raise RuntimeError(f"no cluster: {said.read_text(errors='replace')[-2000:]}")

    def stop(self) -> None:
        """End every process, and the executors with their workers."""
        for process in reversed(self.processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def running(folder: Path, own: Path | None = None) -> Iterator[Cluster]:
    """A cluster without workers, for as long as the block lasts."""
    cluster = Cluster(folder, own)
    try:
        cluster.start_master()
        yield cluster
    finally:
        cluster.stop()


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        "JAVA_HOME": str(ensure_java()),
        "SPARK_HOME": str(_SPARK),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": LIGHT,
    }
