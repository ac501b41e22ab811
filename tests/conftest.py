"""What every test may ask for: hypothesis profiles, golden and real data, a Spark session."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent

# The same examples every time, so that red means the change; `--hypothesis-profile=explore` looks
# further, with new examples each time.
settings.register_profile(
    "fixed",
    max_examples=200,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "explore", settings.get_profile("fixed"), max_examples=3000, derandomize=False
)
settings.load_profile("fixed")
# Hypothesis also tries the numbers and texts that stand in the modules loaded so far, and which are
# loaded depends on the tests before: without these, examples depend on the test alone.
providers._get_local_constants = lambda: providers._local_constants


DATA = ROOT / "tests" / "data"
CASES = 110  # in the golden file


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is left to the slow set, and keep a file's tests of Spark in one process."""
    for item in items:
        if "tests/evaluation/" in item.nodeid:
            item.add_marker(pytest.mark.slow)
        if "spark" in getattr(item, "fixturenames", ()) or "tests/spark/" in item.nodeid:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """End with the number of skipped tests by reason: what a green run did not look at."""
    skipped = terminalreporter.getreports("skipped")
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"skipped {count}: {reason}")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The directory of real data too large to be committed; skips where it is absent."""
    path = Path(os.environ.get("IDS_DATA") or ROOT.parent / "shared" / "data")
    if not (path / "taxi_green").is_dir():
        pytest.skip("no taxi_green/ with ten months of trips: set IDS_DATA to what holds it")
    return path


@pytest.fixture(scope="session")
def taxi_month(shared_data: Path) -> Path:
    """A month of green taxi trips."""
    return shared_data / "taxi_green" / "green_tripdata_2024-01.parquet"


@pytest.fixture(scope="session")
def golden_cases() -> list[dict[str, Any]]:
    """Small windows with their exact attributions, by enumeration."""
    path = DATA / "golden" / "shapley_small_windows.json"
    cases: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cases"]
    assert len(cases) >= CASES, f"{path} holds {len(cases)} cases"
    return cases


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session for all tests of a process that need one."""
    from ids.spark import local_session
    from tests.spark.cluster import JAVA_OPTIONS, LIGHT

    # Planning anew after each stage takes longer than these stages run. What starts Spark by itself
    # (the demo, the command line, the slow set) has it on.
    settings = {JAVA_OPTIONS: LIGHT, "spark.sql.adaptive.enabled": "false"}
    session = local_session("local[2]", **settings, **{"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()
