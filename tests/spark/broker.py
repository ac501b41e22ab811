"""A real Kafka broker on loopback, one process in KRaft mode, and the jars to run and reach it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ids.spark import packages_for
from tests.spark.cluster import free_port
from tests.spark.maven import NotFound, fetched, java
from tests.spark.server import serving_at

__all__ = ["Kafka", "broker_jars", "connector_jars", "running"]

_SERVER = "org.apache.kafka:kafka_2.13:4.1.2"

# Mirrors of Maven Central may hold the connector without this part of it, which fetches delegation
# tokens for Kerberos. The tests have none, so there an older one stands in for it.
_TOKENS = "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0"

_ROOT = Path(__file__).parents[2]
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={logs}
num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class Kafka(NamedTuple):
    """A broker that runs: its ``host:port``, Spark's jars to reach it, the folder of its topics."""

    server: str
    connector: list[str]
    logs: Path

    def size(self, topic: str) -> int:
        """How many bytes the topic holds, all its partitions together."""
        return sum(log.stat().st_size for log in self.logs.glob(f"{topic}-*/*.log"))

    def run(self, job: str, *arguments: str) -> Any:
        """What a job of ``kafka_jobs`` gives, in a process of its own."""
        program = [sys.executable, "-m", "tests.spark.kafka_jobs"]
        command = [*program, ",".join(self.connector), self.server, job, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=_ROOT, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def connector_jars() -> list[str]:
    """Spark's Kafka connector of Spark's own version; Spark itself has Hadoop."""
    (package,) = packages_for(["kafka://host/topic"])
    hadoop = ["org.apache.hadoop:*"]
    try:
        return fetched(package, without=hadoop)
    except NotFound as error:
        if "spark-token-provider" not in str(error):
            raise
        return fetched(package, without=hadoop, instead=[_TOKENS])


def broker_jars() -> list[str]:
    """The broker, and all it depends on."""
    return fetched(_SERVER)


@contextmanager
def running(jars: list[str], connector: list[str], folder: Path) -> Iterator[Kafka]:
    """A broker, for as long as the block lasts."""
    port, controller, logs = free_port(), free_port(), folder / "logs"
    properties = folder / "server.properties"
    properties.write_text(_PROPERTIES.format(port=port, controller=controller, logs=logs))
    program = [*java(), "-cp", os.pathsep.join(jars)]
    cluster = "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]
    format_ = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)]
    subprocess.run([*program, *format_], capture_output=True, check=True)
    with serving_at(port, [*program, "kafka.Kafka", str(properties)], folder):
        yield Kafka(f"127.0.0.1:{port}", connector, logs)
