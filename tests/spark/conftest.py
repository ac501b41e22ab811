"""What several tests on Spark share: a Kafka broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.spark.broker import Kafka, broker_jars, connector_jars, running
from tests.spark.maven import NoNetwork


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A broker, and Spark's connector to it; skips where the jars cannot be fetched."""
    try:
        connector, server = connector_jars(), broker_jars()
    except NoNetwork as error:
        pytest.skip(f"the jars of Kafka cannot be fetched: {error}")
    with running(server, connector, tmp_path_factory.mktemp("kafka")) as broker:
        yield broker
