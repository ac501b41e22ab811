"""A Spark Connect server on loopback, in a process of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from ids.spark.session import ensure_java
from tests.spark.cluster import LIGHT, free_port
from tests.spark.server import serving_at

__all__ = ["serving"]

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
    environment = {
        **os.environ,
        "JAVA_HOME": str(ensure_java()),
        "SPARK_HOME": str(_SPARK),
        "PYSPARK_PYTHON": sys.executable,
    }
    command += ["--driver-java-options", LIGHT, *options, "spark-internal"]
    with serving_at(port, command, folder, environment):
        yield f"sc://127.0.0.1:{port}"
