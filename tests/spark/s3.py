"""An S3 server on loopback, and what Spark needs to reach it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request, urlopen

from tests.spark.cluster import free_port
from tests.spark.maven import SPARK_JARS, fetched, java
from tests.spark.server import serving_at

__all__ = ["Bucket", "connector_jars", "running", "server_jar"]

_HADOOP = next(SPARK_JARS.glob("hadoop-client-api-*.jar")).stem.rpartition("-")[2]
_SDK = "2.35.4"  # what that Hadoop is built with
_MODULES = ("s3", "s3-transfer-manager", "sts", "netty-nio-client", "apache-client")
_SERVER = "org.gaul:s3proxy:4.1.0:jar-with-dependencies"
_PROPERTIES = """\
s3proxy.endpoint=http://127.0.0.1:{port}
s3proxy.authorization=none
jclouds.provider=transient-nio2
jclouds.identity=ids
jclouds.credential=ids
"""


def server_jar() -> str:
    """The server, with all it depends on."""
    (jar,) = fetched(_SERVER)
    return jar


def connector_jars() -> list[str]:
    """What Spark needs to reach ``s3a://``, of the SDK only the modules used: all are 690 MB."""
    hadoop = f"org.apache.hadoop:hadoop-aws:{_HADOOP}"
    sdk = [f"software.amazon.awssdk:{module}:{_SDK}" for module in _MODULES]
    return fetched(hadoop, *sdk, without=["software.amazon.awssdk:bundle"])


class Bucket:
    """A bucket of its own at a server's ``url``, and Spark's jars to reach it."""

    uri = "s3a://ids"

    def __init__(self, url: str, connector: list[str]) -> None:
        self._server, self._connector = url, connector
        self._ask("PUT", "")

    def put(self, key: str, content: bytes) -> None:
        self._ask("PUT", f"/{quote(key)}", content)

    def get(self, key: str) -> bytes:
        return self._ask("GET", f"/{quote(key)}")

    def keys(self, prefix: str = "") -> list[str]:
        """Without the empty objects by which Spark marks directories: their keys end in a slash."""
        listed = self._ask("GET", f"?list-type=2&prefix={quote(prefix, safe='')}").decode()
        return sorted(re.findall(r"<Key>([^<]*[^/<])</Key>", listed))

    def settings(self) -> dict[str, str]:
        """What a session needs to reach it."""
        return {
            "spark.jars": ",".join(self._connector),
            "spark.hadoop.fs.s3a.endpoint": self._server,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.access.key": "ids",
            "spark.hadoop.fs.s3a.secret.key": "ids",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        }

    def _ask(self, method: str, rest: str, content: bytes | None = None) -> bytes:
        # without a type urllib calls it a form, which servers parse
        headers = {"Content-Type": "application/octet-stream"}
        request = Request(f"{self._server}/ids{rest}", content, headers, method=method)
        with urlopen(request) as answer:
            read: bytes = answer.read()
            return read


@contextmanager
def running(jar: str, connector: list[str], folder: Path) -> Iterator[Bucket]:
    """A bucket of a server that keeps all in its memory, for as long as the block lasts."""
    port = free_port()
    properties = folder / "s3.properties"
    properties.write_text(_PROPERTIES.format(port=port), encoding="utf-8")
    command = [*java(), "-jar", jar, "--properties", str(properties)]
    with serving_at(port, command, folder):
        yield Bucket(f"http://127.0.0.1:{port}", connector)
