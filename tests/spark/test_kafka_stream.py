"""A stream out of a topic is killed -9 on its way: files get each emit once, a topic knows repeats.

The stream is the command line in a process group of its own, with the JVM it starts, and the whole
group is killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from time import sleep
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ids.sink import write_jsonl
from tests.spark.broker import Kafka
from tests.spark.cluster import JAVA_OPTIONS, LIGHT
from tests.spark.streams import events, expected

pytestmark = pytest.mark.slow

SCRIPT = """
REGISTER PREDICATE eu AS (region = 'EU') ON events;
SELECT SHAPLEY_ATTRIBUTE(AVG(latency), eu WITH (SHARE, LIFT)) AS a, COUNT(*) AS c
FROM events
WINDOW w AS (PARTITION BY tier ORDER BY event_time
             RANGE INTERVAL '30' SECOND PRECEDING SLIDE INTERVAL '10' SECOND)
EMIT CHANGES;
"""
SCHEMA = "event_time TIMESTAMP, region STRING, tier STRING, latency DOUBLE, size BIGINT"
LATENESS = "30 seconds"  # two partitions do not keep the order of event times
MALFORMED = ["{not json", '{"latency": "slow"}']

# ids.cli, but killed with its JVM when it has written to a topic for the n-th time
_DRIVER = """
import os, signal, sys
from pyspark.sql.readwriter import DataFrameWriter
from ids.cli import main

left, written = int(sys.argv.pop(1)), DataFrameWriter.save

def save(*arguments, **options):
    global left
    written(*arguments, **options)
    left -= 1
    if left == 0:
        os.killpg(0, signal.SIGKILL)

DataFrameWriter.save = save
main()
"""


class Message(NamedTuple):
    """An emit as it lies in the topic, and the batch and the row it was."""

    partition: int
    offset: int
    key: str
    value: str
    batch: int
    row: int


class Requests(NamedTuple):
    """A topic with a table's rows as messages, two of which are malformed."""

    kafka: Kafka
    topic: str
    table: pa.Table

    def stream(
        self, folder: Path, output: str, *, kill: Callable[[], bool] | None = None, saves: int = 0
    ) -> int:
        """Run the stream to its end, until ``kill`` says so, or to its n-th write to a topic."""
        (folder / "query.sql").write_text(SCRIPT, encoding="utf-8")
        place = f"kafka://{self.kafka.server}/{self.topic}?maxOffsetsPerTrigger=90"
        conf = {
            "spark.jars": ",".join(self.kafka.connector),
            "spark.driver.memory": "1g",
            JAVA_OPTIONS: LIGHT,
        }
        options = {
            "--table": f"events={place}",
            "--schema": f"events={SCHEMA}",
            "--checkpoint": "ck",
            "--lateness": LATENESS,
            "--bad-rows": "bad",
            "--output": output,
        }
        pairs = [*options.items(), *(("--conf", f"{name}={conf[name]}") for name in conf)]
        words = [word for pair in pairs for word in pair]
        program = [sys.executable, "-c", _DRIVER]
        with (folder / "said").open("ab") as out:
            process = subprocess.Popen(
                [*program, str(saves), "run", "query.sql", "--stream", "--available-now", *words],
                cwd=folder,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        try:
            while process.poll() is None:
                if kill is not None and kill():
                    os.killpg(process.pid, signal.SIGKILL)
                sleep(0.005)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        return process.wait()

    def emits(self) -> list[dict[str, Any]]:
        """What an undisturbed batch gives."""
        return _in_order(expected(SCRIPT, self.table, LATENESS).to_pylist())


@pytest.fixture(scope="module")
def requests(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Requests:
    table = events(600, 13)
    file = tmp_path_factory.mktemp("requests") / "requests.jsonl"
    with file.open("wb") as lines:
        write_jsonl(table, lines)
    rows = file.read_text(encoding="utf-8").splitlines()
    sent = [*rows[:100], MALFORMED[0], *rows[100:400], MALFORMED[1], *rows[400:]]
    file.write_text("\n".join(sent) + "\n", encoding="utf-8")
    assert kafka.run("send", "requests", str(file)) == len(sent) == 602
    return Requests(kafka, "requests", table)


def _in_order(emits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(emits, key=lambda emit: (emit["emit_at"], emit["tier"] or ""))


def _bad_rows(folder: Path) -> list[str]:
    return sorted(pq.read_table(folder / "bad")["ids_malformed"].to_pylist())


def _messages(kafka: Kafka, topic: str) -> list[Message]:
    return [
        Message(*message, *(int(headers[name]) for name in ("ids_batch", "ids_row")))
        for *message, headers in kafka.run("received", topic)
    ]


def _emit(message: Message) -> dict[str, Any]:
    value = json.loads(message.value)
    assert json.loads(message.key) == {"tier": value["tier"]}
    return {**value, "emit_at": datetime.fromisoformat(value["emit_at"])}


def test_after_kill_9_a_topic_has_every_emit_and_its_headers_tell_the_repeats(
    requests: Requests, tmp_path: Path
) -> None:
    kafka, output = requests.kafka, f"kafka://{requests.kafka.server}/emits"

    def growth() -> Callable[[], bool]:
        before = kafka.size("emits")
        return lambda: kafka.size("emits") > before

    codes = [
        requests.stream(tmp_path, output, saves=2),  # sent, and not yet noted as done
        requests.stream(tmp_path, output, kill=growth()),  # while it sends
        requests.stream(tmp_path, output, saves=1),
        requests.stream(tmp_path, output),
    ]
    said = (tmp_path / "said").read_text(encoding="utf-8")
    assert codes == [-signal.SIGKILL, -signal.SIGKILL, -signal.SIGKILL, 0], said
    messages = _messages(kafka, "emits")
    firsts: dict[tuple[int, int], Message] = {}
    for message in messages:
        first = firsts.setdefault((message.batch, message.row), message)
        assert message[-4:] == first[-4:]  # a repeat is the same message
        assert message.partition == first.partition
    assert len(messages) - len(firsts) >= 2
    assert _in_order([_emit(message) for message in firsts.values()]) == requests.emits()
    for partition in (0, 1):
        order = [place for place, first in firsts.items() if first.partition == partition]
        assert order == sorted(order)
    assert _bad_rows(tmp_path) == sorted(MALFORMED)


def test_after_kill_9_files_have_every_emit_of_a_topic_once(
    requests: Requests, tmp_path: Path
) -> None:
    out = tmp_path / "out"

    def grown() -> Callable[[], bool]:
        before = len(list(out.rglob("*.parquet")))
        return lambda: len(list(out.rglob("*.parquet"))) > before

    codes = [
        requests.stream(tmp_path, f"{out}/", kill=grown()),
        requests.stream(tmp_path, f"{out}/", kill=grown()),
        requests.stream(tmp_path, f"{out}/"),
    ]
    said = (tmp_path / "said").read_text(encoding="utf-8")
    assert codes == [-signal.SIGKILL, -signal.SIGKILL, 0], said
    assert _in_order(pq.read_table(out).to_pylist()) == requests.emits()
    assert _bad_rows(tmp_path) == sorted(MALFORMED)
    assert "602 rows" in said
    assert "0 late · 0 ahead · 2 bad" in said
