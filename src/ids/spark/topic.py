"""``kafka://host:9092/topic``: a topic as a person writes it."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from ids.errors import SourceError

__all__ = ["Topic", "is_kafka", "undeclared"]

_SCHEME = "kafka://"
_PORT = 9092


class Topic(NamedTuple):
    """``kafka://host:9092,other:9092/topic?option=value``: options go to the connector."""

    servers: str
    name: str
    options: dict[str, str]

    @classmethod
    def parse(cls, place: str) -> Topic:
        """The topic at ``place``.

        >>> Topic.parse("kafka://one,two:9093/events?startingOffsets=latest")
        Topic(servers='one:9092,two:9093', name='events', options={'startingOffsets': 'latest'})
        """
        parts = urlsplit(place)
        hosts = [host for host in parts.netloc.split(",") if host]
        name = parts.path.strip("/")
        if not hosts or not name or "/" in name or parts.fragment:
            raise SourceError(f"{place} names no topic; write kafka://host:{_PORT}/topic")
        servers = ",".join(h if _has_port(h) else f"{h}:{_PORT}" for h in hosts)
        return cls(servers, name, dict(parse_qsl(parts.query, keep_blank_values=True)))


def _has_port(host: str) -> bool:
    return host.rpartition(":")[2].isdigit()


def is_kafka(place: object) -> bool:
    """Whether a table or an output is a Kafka topic."""
    return isinstance(place, str) and place.startswith(_SCHEME)


def undeclared(place: str) -> SourceError:
    """The error for a topic whose columns nobody has named."""
    return SourceError(
        f"{place} has no schema of its own; declare it with "
        "ids.spark.sources.read(spark, place, schema='a STRING, b DOUBLE')"
    )
