"""A real Kafka broker on loopback: the server's own jars, one process, KRaft mode."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from ids.spark.java import ensure_java

__all__ = ["SERVER", "jars_of", "running"]

SERVER = "org.apache.kafka:kafka_2.13:4.1.2"
_PATIENCE = 120  # seconds for the broker to answer, before the tests give up on it

_RESOLVE = """
import sys
from ids.spark.session import local_session
spark = local_session("local[1]", packages=sys.argv[1:])
print(spark.sparkContext.getConf().get("spark.jars"))
spark.stop()
"""
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={logs}
num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


def jars_of(*packages: str) -> list[str] | str:
    """The jars of Maven ``packages`` as Spark fetches them; or in one line why they are not had."""
    command = [sys.executable, "-c", _RESOLVE, *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    return [jar.removeprefix("file://") for jar in done.stdout.strip().split(",")]


@contextmanager
def running(jars: list[str], folder: Path) -> Iterator[str]:
    """A broker's ``host:port``, for as long as the block lasts."""
    port, controller = _free_port(), _free_port()
    properties = folder / "server.properties"
    properties.write_text(
        _PROPERTIES.format(port=port, controller=controller, logs=folder / "logs")
    )
    # Spark fetches no Scala library, since it has one
    scala = map(str, (Path(pyspark.__file__).parent / "jars").glob("scala-library-*.jar"))
    classpath = os.pathsep.join([*jars, *scala])
    java = [str(ensure_java() / "bin" / "java"), "-Xmx256m", "-cp", classpath]
    cluster = "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]
    said = folder / "said"
    with said.open("wb") as out:
        format_ = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)]
        subprocess.run([*java, *format_], stdout=out, stderr=out, check=True)
        process = subprocess.Popen([*java, "kafka.Kafka", properties], stdout=out, stderr=out)
        try:
            _await(process, port, said)
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _await(process: subprocess.Popen[bytes], port: int, said: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"the broker did not start: {said.read_text(errors='replace')[-2000:]}")
